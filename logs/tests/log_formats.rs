//! The same log in every format gives the same rounds; what is wrong with a file is said in one sentence.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use neuralcb_logs::log::{
    Block, Format, Kind, Log, LogOptions, Missing, Need, Offered, Place, Preparation, PreparationConfig, Roles, Values,
    Want,
};
use parquet::arrow::ArrowWriter;

const N: usize = 9000;

/// Round i of the log that every format tells.
struct Row {
    action: &'static str,
    reward: f64,
    propensity: f64,
    age: f64,
    member: bool,
    city: Option<&'static str>,
    eligible: Vec<&'static str>,
}

fn row(i: usize) -> Row {
    let action = ["red", "green", "blue"][i % 3];
    let other = ["red", "green", "blue"][(i + 1 + i / 3 % 2) % 3];
    Row {
        action,
        reward: (i as f64 * 0.37).sin(),
        propensity: [0.25, 1.0, 1.0 / 3.0][i / 2 % 3],
        age: 20.0 + (i % 50) as f64 + 0.125,
        member: i % 7 < 3,
        city: [Some("Oslo"), Some("Lima, Perú"), None, Some("\"Bern\"")][i % 4],
        eligible: vec![other, action],
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

fn csv(separator: char) -> String {
    let mut text = ["action", "reward", "propensity", "age", "member", "city", "eligible"].join(&separator.to_string());
    for r in (0..N).map(row) {
        let city = r.city.map(quoted).unwrap_or_default();
        let fields = [
            r.action.to_string(),
            r.reward.to_string(),
            r.propensity.to_string(),
            r.age.to_string(),
            r.member.to_string(),
            city,
            r.eligible.join("|"),
        ];
        text += "\n";
        text += &fields.join(&separator.to_string());
    }
    text
}

fn json_lines() -> String {
    let line = |r: Row| {
        let mut object = serde_json::json!({
            "age": r.age, "member": r.member, "action": r.action, "reward": r.reward,
            "propensity": r.propensity, "eligible": r.eligible,
        });
        if let Some(city) = r.city {
            object["city"] = city.into();
        }
        object.to_string() + "\n"
    };
    (0..N).map(row).map(line).collect()
}

fn parquet(path: &Path) {
    let rows: Vec<Row> = (0..N).map(row).collect();
    let mut lists = ListBuilder::new(StringBuilder::new());
    for r in &rows {
        r.eligible.iter().for_each(|name| lists.values().append_value(name));
        lists.append(true);
    }
    let numbers = |f: fn(&Row) -> f64| Arc::new(Float64Array::from_iter_values(rows.iter().map(f))) as ArrayRef;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("action", Arc::new(StringArray::from_iter_values(rows.iter().map(|r| r.action)))),
        ("reward", numbers(|r| r.reward)),
        ("propensity", numbers(|r| r.propensity)),
        ("age", numbers(|r| r.age)),
        ("member", Arc::new(BooleanArray::from(rows.iter().map(|r| r.member).collect::<Vec<_>>()))),
        ("city", Arc::new(StringArray::from_iter(rows.iter().map(|r| r.city)))),
        ("eligible", Arc::new(lists.finish())),
    ];
    write_batch(path, columns);
}

fn write_batch(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn gzip(path: &Path, text: &str) {
    let mut file = flate2::write::GzEncoder::new(fs::File::create(path).unwrap(), flate2::Compression::fast());
    file.write_all(text.as_bytes()).unwrap();
    file.finish().unwrap();
}

/// All blocks of a log, without their lines, which differ by format.
fn blocks(paths: &[PathBuf], options: &LogOptions) -> Vec<Block> {
    let log = Log::open(paths, options, Want { outcome: true, propensity: Need::Required }).unwrap();
    let strip = |block: Block| Block { places: vec![Place { file: 0, line: 0 }; block.n_rounds()], ..block };
    let blocks = log.blocks().map(|block| strip(block.unwrap())).collect();
    assert_eq!(log.bytes_read(), log.bytes());
    blocks
}

#[test]
fn every_format_gives_the_same_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("log.csv"), csv(',')).unwrap();
    fs::write(at("log.tsv"), csv('\t')).unwrap();
    fs::write(at("log.jsonl"), json_lines()).unwrap();
    parquet(&at("log.parquet"));
    gzip(&at("log.csv.gz"), &csv(','));
    gzip(&at("log.ndjson.gz"), &json_lines());
    // JSON tells columns in an order of its own.
    let features = Some(["age", "member", "city"].map(String::from).to_vec());
    let options = LogOptions { features, ..LogOptions::default() };
    let expected = blocks(&[at("log.csv")], &options);
    assert_eq!(expected.iter().map(Block::n_rounds).collect::<Vec<_>>(), [8192, N - 8192]);
    for (i, r) in (0..N).map(row).enumerate() {
        let (block, i) = (&expected[i / 8192], i % 8192);
        assert_eq!(block.chosen.as_ref().unwrap().get(i), Some(r.action));
        assert_eq!(block.rewards.as_ref().unwrap()[i], r.reward);
        assert_eq!(block.propensities.as_ref().unwrap()[i], r.propensity);
        let [Values::Numbers(age), Values::Numbers(member), Values::Categories(city)] = &block.shared[..] else {
            panic!("{:?}", block.shared)
        };
        assert_eq!((age[i], member[i], city.get(i)), (r.age, f64::from(u8::from(r.member)), r.city));
        let Offered::Listed { offsets, actions, .. } = &block.offered else { panic!("eligible actions") };
        let offered: Vec<_> = (offsets[i]..offsets[i + 1]).map(|k| actions.get(k).unwrap()).collect();
        assert_eq!(offered, r.eligible);
    }
    for name in ["log.tsv", "log.jsonl", "log.parquet", "log.csv.gz", "log.ndjson.gz"] {
        assert!(blocks(&[at(name)], &options) == expected, "{name}");
    }
}

#[test]
fn a_log_in_parts_gives_the_blocks_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let text = csv(',');
    let (header, rows) = text.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    let parts = folder.path().join("parts");
    fs::create_dir(&parts).unwrap();
    for (i, part) in rows.chunks(1234).enumerate() {
        fs::write(parts.join(format!("part-{i}.csv")), format!("{header}\n{}\n", part.join("\n"))).unwrap();
    }
    fs::write(parts.join("_SUCCESS"), "").unwrap();
    let whole = folder.path().join("log.csv");
    fs::write(&whole, &text).unwrap();
    assert!(blocks(&[parts], &LogOptions::default()) == blocks(&[whole], &LogOptions::default()));
}

fn open(folder: &Path, name: &str, text: &str, options: &LogOptions) -> Result<Log, String> {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    Log::open(&[path], options, Want::OUTCOMES).map_err(|error| error.to_string())
}

/// The message of the first error, in opening or in reading, with the folder taken out.
fn refusal(name: &str, text: &str, options: &LogOptions) -> String {
    let folder = tempfile::tempdir().unwrap();
    let message = open(folder.path(), name, text, options)
        .and_then(|log| log.blocks().try_for_each(|block| block.map(|_| ())).map_err(|error| error.to_string()));
    let message = message.expect_err("must be refused");
    message.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn each_refusal_names_file_line_column_value_and_cure() {
    let plain = LogOptions::default();
    let cases: &[(&str, &str, &str)] = &[
        (
            "a.csv",
            "action,reward,x\nup,1,2\ndown,0,3\nup,one,4\n",
            "`a.csv`, line 4: column `reward` must be a number, got `one`",
        ),
        (
            "a.csv",
            "action,reward,x\nup,1,2\ndown,0,3\nup,1,wide\n",
            "`a.csv`, line 4: column `x` must be a number, got `wide`: or make it a category by `kinds` (--categories)",
        ),
        (
            "a.csv",
            "action,reward,x\nup,1,2\ndown,0,\nup,1,5\n",
            "`a.csv`, line 3: column `x` must be a number, got nothing (an empty field, NaN or NA): fill it in, or take the mean of the column by `missing = \"mean\"` (--fill-missing)",
        ),
        (
            "a.csv",
            "action,reward,x\nup,1,2\ndown,0,inf\n",
            "`a.csv`, line 3: column `x` must be a finite number, at most 3.4e38 in size, got `inf`",
        ),
        (
            "a.csv",
            "action,reward,x\nup,1,2\ndown,0\n",
            "`a.csv`, line 3: must be as many fields as the header has, got `2 instead of 3`",
        ),
        (
            "a.csv",
            "action,reward,x\nup,,2\n",
            "`a.csv`, line 2: column `reward` must be a finite number, got nothing (an empty field, NaN or NA)",
        ),
        (
            "a.csv",
            "action,reward,x\n,1,2\n",
            "`a.csv`, line 2: column `action` must be the name or number of an action, got nothing (an empty field, NaN or NA)",
        ),
        (
            "a.csv",
            "action,reward,pscore,x\nup,1,0.5,1\nup,1,0,2\n",
            "`a.csv`, line 3: column `pscore` must be a probability above 0 and at most 1, got `0`: correct it, or leave the column out of `propensity`",
        ),
        (
            "a.csv",
            "action,reward,eligible,x\nup,1,left|right,2\n",
            "`a.csv`, line 2: column `action` must be one of the eligible actions, got `up`",
        ),
        (
            "a.csv",
            "action,reward,eligible,x\nup,1,up|up,2\n",
            "`a.csv`, line 2: column `eligible` must be a list that names each action once, got `up`",
        ),
        (
            "a.csv",
            "act,reward,x\nup,1,2\n",
            "`a.csv` has no column for the action (looked for `action`, `decision`, `decisions`); it has `act`, `reward`, `x`: name the column by `action` (--action)",
        ),
        (
            "a.csv",
            "action,reward,rewards,x\nup,1,1,2\n",
            "`a.csv` has two columns for the reward, `reward` and `rewards`: say which by `reward` (--reward), and ignore or rename the other",
        ),
        ("a.csv", "action,reward,x,x\nup,1,2,3\n", "`a.csv` has two columns `x`: rename one"),
        ("a.csv", "", "`a.csv` has no rows"),
        ("a.csv", "action,reward,x\n", "`a.csv` has no rows"),
        (
            "a.log",
            "action,reward,x\n",
            "cannot tell the format of `a.log` by its ending: name it .csv, .tsv, .jsonl, .ndjson, .json, .dsjson or .parquet (text also with .gz or .zst), or say it by `format` (--format)",
        ),
        (
            "a.csv",
            "round,action,chosen,reward,x\n1,a,0,,1\n1,b,0,,2\n",
            "`a.csv`, line 2: column `chosen` must be 1 in exactly one row of the round, got `0 of 2 rows`",
        ),
        (
            "a.csv",
            "round,action,chosen,reward,x\n1,a,1,3,1\n1,a,0,,2\n",
            "`a.csv`, line 3: column `action` must be an action that its round has not yet named, got `a`",
        ),
        (
            "a.jsonl",
            "{\"action\":1,\"reward\":0,\"x\":1}\n{\"action\":1,\"reward\":\n",
            "`a.jsonl`, line 2: byte 21: not JSON: EOF while parsing a value",
        ),
        (
            "a.jsonl",
            "{\"action\":1,\"reward\":0,\"x\":1}\n{\"action\":2,\"reward\":0,\"x\":1}\n{\"action\":1,\"reward\":1,\"x\":true}\n",
            "`a.jsonl`, line 3: column `x` must be a number, got `true`: or make it a category by `kinds` (--categories)",
        ),
        (
            "a.parquet",
            "no parquet at all",
            "cannot read `a.parquet` as Parquet: it does not end as Parquet does: it may be cut off",
        ),
    ];
    for (name, text, expected) in cases {
        assert_eq!(&refusal(name, text, &plain), expected);
    }
    let asked = LogOptions { features: Some(vec!["y".into()]), ..plain.clone() };
    assert_eq!(
        refusal("a.csv", "action,reward,x\nup,1,2\n", &asked),
        "`a.csv` has no column `y`; it has `action`, `reward`, `x`"
    );
}

#[test]
fn bad_rows_are_skipped_and_counted_up_to_the_number_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let text = "action,reward,x\nup,1,2\ndown,?,3\nup,1\nup,1,5\n";
    let options = LogOptions { max_bad_rows: 2, ..LogOptions::default() };
    let log = open(folder.path(), "a.csv", text, &options).unwrap();
    let rounds: usize = log.blocks().map(|block| block.unwrap().n_rounds()).sum();
    assert_eq!(rounds, 2);
    let skipped = log.skipped();
    assert_eq!(skipped.bad_rows, 2);
    assert!(skipped.first[0].ends_with("line 3: column `reward` must be a number, got `?`"), "{:?}", skipped.first);
    let options = LogOptions { max_bad_rows: 1, ..LogOptions::default() };
    let message = refusal("a.csv", text, &options);
    assert!(message.starts_with("more than 1 bad rows: raise `max_bad_rows`"), "{message}");
    // A bad row of a long table takes its round with it.
    let long = "round,action,chosen,reward,x\n1,a,1,3,1\n1,b,0,,wide\n2,a,0,,5\n2,b,1,4,6\n";
    let log = open(folder.path(), "long.csv", long, &options).unwrap();
    let blocks: Vec<Block> = log.blocks().map(Result::unwrap).collect();
    assert_eq!((blocks[0].n_rounds(), log.skipped().bad_rows), (1, 1));
    assert_eq!(blocks[0].rewards, Some(vec![4.0]));
}

#[test]
fn the_schema_tells_numbers_booleans_categories_and_what_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = ",Decision,rewards,PScore,price,vip,city,id,empty\n".to_string();
    for i in 0..200 {
        let city = ["Oslo", "Lima"][i % 2];
        text += &format!("{i},{},1,0.5,{}.5,{},{city},user-{i},\n", i % 3, i, i % 2 == 0);
    }
    let log = open(folder.path(), "a.csv", &text, &LogOptions::default()).unwrap();
    assert_eq!(
        log.schema().to_string(),
        "column    role        kind\n\
         Decision  action\n\
         rewards   reward\n\
         PScore    propensity\n\
         price     feature     number\n\
         vip       feature     boolean\n\
         city      feature     category\n\
         \x20         ignored     an index: a column without a name\n\
         id        ignored     texts that hardly ever repeat: an identifier or a time\n\
         empty     ignored     no values in the first rows"
    );
    // The schema as options reads the same log in the same way.
    let path = folder.path().join("schema.toml");
    fs::write(&path, log.schema().to_options().to_toml()).unwrap();
    let options = LogOptions::from_toml(&path).unwrap();
    assert_eq!(options.kinds["city"], Kind::Category);
    assert_eq!(options.format, Some(Format::Csv));
    let again = open(folder.path(), "a.csv", &text, &options).unwrap();
    assert_eq!(again.schema().shared, log.schema().shared);
    fs::write(&path, "max_bad_row = 1\n").unwrap();
    let message = LogOptions::from_toml(&path).unwrap_err().to_string();
    assert!(message.contains("unknown field `max_bad_row`"), "{message}");
}

#[test]
fn a_log_opened_for_a_policy_finds_its_columns_in_another_format_and_order() {
    let folder = tempfile::tempdir().unwrap();
    let text = "action,reward,x,city\n10,1,1.5,Oslo\n9,0,2.5,Lima\n10,1,3.5,Oslo\n";
    let log = open(folder.path(), "train.csv", text, &LogOptions::default()).unwrap();
    let config = PreparationConfig { standardise: false, unit_norm: Some(false), ..PreparationConfig::default() };
    let (preparation, summary) = Preparation::fit(&log, &config).unwrap();
    assert_eq!(preparation.actions(), ["9", "10"]);
    assert_eq!(preparation.places(), ["x", "city=Lima", "city=Oslo", "1"]);
    assert_eq!((summary.rounds, summary.min_reward, summary.max_reward), (3, 0.0, 1.0));
    assert_eq!(summary.actions[1].count, 2);
    let path = folder.path().join("score.jsonl");
    fs::write(&path, "{\"city\":\"Oslo\",\"x\":7}\n{\"x\":8,\"city\":\"Rome\"}\n{\"x\":9}\n").unwrap();
    let score = Log::open_as(&[path], &LogOptions::default(), Want::CONTEXTS, preparation.schema()).unwrap();
    let block = score.blocks().next().unwrap().unwrap();
    let contexts = preparation.contexts(&block).unwrap();
    assert_eq!(contexts.rows(0..3), [7.0, 0.0, 1.0, 1.0, 8.0, 0.0, 0.0, 1.0, 9.0, 0.0, 0.0, 1.0]);
    assert_eq!(preparation.unseen(&block).categories, 1);
    // The preparation survives its file, and a broken one is refused.
    let stored = serde_json::to_string(&preparation).unwrap();
    assert_eq!(serde_json::from_str::<Preparation>(&stored).unwrap(), preparation);
    for (from, to) in
        [("\"Lima\",\"Oslo\"", "\"Oslo\",\"Lima\""), ("[\"9\",\"10\"]", "[]"), ("\"scale\":1.0", "\"scale\":-1.0")]
    {
        assert!(stored.contains(from), "{stored}");
        assert!(serde_json::from_str::<Preparation>(&stored.replace(from, to)).is_err(), "{from}");
    }
}

#[test]
fn missing_numbers_become_the_mean_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let options = LogOptions { missing: Missing::Mean, ..LogOptions::default() };
    let log = open(folder.path(), "a.csv", "action,reward,x\na,1,1\nb,0,\na,1,4\n", &options).unwrap();
    let (raw, _) = Preparation::fit(&log, &PreparationConfig::raw()).unwrap();
    let block = log.blocks().next().unwrap().unwrap();
    assert_eq!(raw.contexts(&block).unwrap().rows(0..3), [1.0, 2.5, 4.0]);
    let config = PreparationConfig { intercept: false, unit_norm: Some(false), ..PreparationConfig::default() };
    let (standard, _) = Preparation::fit(&log, &config).unwrap();
    assert_eq!(standard.contexts(&block).unwrap().rows(0..3), [-1.0, 0.0, 1.0]);
}

#[test]
fn json_rounds_and_a_long_table_give_the_same_contexts_even_with_new_actions() {
    let folder = tempfile::tempdir().unwrap();
    let json = "{\"age\":30,\"actions\":[{\"id\":\"a\",\"price\":1},{\"id\":\"b\",\"price\":2}],\"chosen\":\"b\",\"reward\":1}\n\
                {\"age\":40,\"actions\":[{\"id\":\"b\",\"price\":3}],\"chosen\":0,\"reward\":0.5}\n";
    let log = open(folder.path(), "a.jsonl", json, &LogOptions::default()).unwrap();
    assert_eq!(log.schema().format, Format::JsonRounds);
    let (preparation, summary) = Preparation::fit(&log, &PreparationConfig::raw()).unwrap();
    assert_eq!(summary.actions.iter().map(|a| a.count).collect::<Vec<_>>(), [0, 2]);
    let block = log.blocks().next().unwrap().unwrap();
    let logged = preparation.logged(&block).unwrap();
    assert_eq!(logged.contexts().rows(0..2), [30.0, 1.0, 30.0, 2.0, 40.0, 3.0]);
    assert_eq!(logged.actions(), [1, 1]);

    let path = folder.path().join("long.csv");
    fs::write(&path, "round,action,price,age\n7,b,2,30\n7,a,1,30\n8,new,3,40\n8,b,4,40\n").unwrap();
    let long = Log::open_as(&[path], &LogOptions::default(), Want::CONTEXTS, preparation.schema()).unwrap();
    let block = long.blocks().next().unwrap().unwrap();
    let contexts = preparation.contexts(&block).unwrap();
    // Actions in their order; the new one stands in for `a`, which its round does not offer.
    assert_eq!(contexts.rows(0..2), [30.0, 1.0, 30.0, 2.0, 40.0, 3.0, 40.0, 4.0]);
    assert_eq!(preparation.action_name(&block, 0, 0), "a");
    assert_eq!(preparation.action_name(&block, 1, 0), "new");
    assert_eq!(preparation.unseen(&block).offered, 1);
}

#[test]
fn dsjson_gives_rounds_and_lines_that_are_no_decisions_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let text = concat!(
        r#"{"_label_cost":-1,"_label_probability":0.8,"_label_Action":1,"_labelIndex":0,"a":[1,2],"p":[0.8,0.2],"c":{"user":{"age":3,"city":"Oslo"},"_multi":[{"item":{"price":1.5}},{"item":{"price":2}}]},"pdrop":0.5}"#,
        "\n",
        r#"{"RewardValue":1,"EventId":"x"}"#,
        "\n",
        r#"{"_label_cost":0,"_label_probability":0.2,"_label_Action":2,"_labelIndex":1,"a":[2,1],"p":[0.2,0.8],"c":{"user":{"age":4},"_multi":[{"item":{"price":1,"new":1}},{"item":{"price":3}}]}}"#,
        "\n",
    );
    let log = open(folder.path(), "a.dsjson", text, &LogOptions { missing: Missing::Mean, ..LogOptions::default() });
    let log = log.unwrap();
    let (preparation, _) = Preparation::fit(&log, &PreparationConfig::raw()).unwrap();
    assert_eq!(preparation.places(), ["user.age", "user.city=Oslo", "item.price", "item.new"]);
    let block = log.blocks().next().unwrap().unwrap();
    assert_eq!(log.skipped().not_decisions, 1);
    assert_eq!(block.counts, Some(vec![2.0, 1.0]));
    let logged = preparation.logged(&block).unwrap();
    assert_eq!(logged.rewards(), [1.0, 0.0]);
    assert_eq!(logged.propensities(), Some(&[0.8, 0.2][..]));
    assert_eq!(logged.actions(), [0, 1]);
    let rows = logged.contexts().rows(0..2);
    assert_eq!(rows, [3., 1., 1.5, 1., 3., 1., 2., 1., 4., 0., 1., 1., 4., 0., 3., 1.]);
}

#[test]
fn keys_of_json_rounds_may_have_any_accepted_name_or_one_that_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"actions":[{"id":"a","v":1},{"id":"b","v":2}],"decision":"b","gain":1,"pscore":0.5}"#;
    let roles = Roles { reward: Some("gain".into()), ..Roles::default() };
    let options = LogOptions { roles, ..LogOptions::default() };
    let log = open(folder.path(), "a.jsonl", text, &options).unwrap();
    let block = log.blocks().next().unwrap().unwrap();
    assert_eq!((block.rewards, block.propensities), (Some(vec![1.0]), Some(vec![0.5])));
    // What the schema says is enough to read the log again, as it is and for a policy.
    let stored = log.schema().to_options();
    assert_eq!(stored.roles, options.roles);
    let path = folder.path().join("a.jsonl");
    let again = Log::open_as(&[path], &LogOptions::default(), Want::OUTCOMES, log.schema()).unwrap();
    assert_eq!(again.blocks().next().unwrap().unwrap().rewards, Some(vec![1.0]));
}

#[test]
fn integers_of_a_parquet_log_are_actions_and_nulls_are_no_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    write_batch(
        &path,
        vec![
            ("arm", Arc::new(Int64Array::from(vec![3, 20, 3])) as ArrayRef),
            ("reward", Arc::new(BooleanArray::from(vec![true, false, true]))),
            ("x", Arc::new(Float64Array::from(vec![Some(1.0), None, Some(3.0)]))),
        ],
    );
    let roles = Roles { action: Some("arm".into()), ..Roles::default() };
    let options = LogOptions { roles, max_bad_rows: 1, ..LogOptions::default() };
    let log = Log::open(&[path], &options, Want::OUTCOMES).unwrap();
    let block = log.blocks().next().unwrap().unwrap();
    assert_eq!(block.chosen.as_ref().unwrap().get(1), Some("3"));
    assert_eq!(block.rewards, Some(vec![1.0, 1.0]));
    assert_eq!(block.places.iter().map(|place| place.line).collect::<Vec<_>>(), [1, 3]);
    assert!(log.skipped().first[0].contains("row 2: column `x` must be a number"), "{:?}", log.skipped());
}

#[test]
fn reading_does_not_run_ahead_of_its_user() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "action,reward,x\n".to_string();
    (0..400_000).for_each(|i| text += &format!("{},1,{}.125\n", i % 3, 1000 + i % 1000));
    let log = open(folder.path(), "a.csv", &text, &LogOptions::default()).unwrap();
    let mut blocks = log.blocks();
    assert_eq!(blocks.next().unwrap().unwrap().n_rounds(), 8192);
    // Time for the reader to run away, if it could: two blocks wait, one is being read, one is handed over, and each
    // thread that parses has a piece of half a megabyte, with a few that wait.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let row = text.len() as u64 / 400_000;
    let pieces = std::thread::available_parallelism().map_or(1, |n| n.get() as u64) + 4;
    assert!(log.bytes_read() < 6 * 8192 * row + (pieces << 19), "{} of {}", log.bytes_read(), log.bytes());
    drop(blocks);
    assert_eq!(log.blocks().map(|block| block.unwrap().n_rounds()).sum::<usize>(), 400_000);
}

#[test]
fn a_row_without_an_end_is_refused_before_it_fills_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv.gz");
    gzip(&path, &format!("action,reward,x\nup,1,2\nup,1,\"{}", "x".repeat(70 << 20)));
    let error = Log::open(&[path], &LogOptions::default(), Want::OUTCOMES).unwrap_err().to_string();
    assert!(error.contains("must be a row of at most 64 MiB, got `more`: a quotation mark may be open"), "{error}");
}

#[test]
fn empty_parts_of_a_folder_are_no_fault() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("a.csv", ""), ("b.csv", "x,action,reward\n"), ("c.csv", "x,action,reward\n1,a,0\n")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    // Columns are found by name in each file.
    fs::write(folder.path().join("d.csv"), "reward,x,action\n1,2,b\n").unwrap();
    let log = Log::open(&[folder.path().to_path_buf()], &LogOptions::default(), Want::OUTCOMES).unwrap();
    let block = log.blocks().next().unwrap().unwrap();
    assert_eq!(block.shared, [Values::Numbers(vec![1.0, 2.0])]);
    assert_eq!(block.places[1], Place { file: 3, line: 2 });
    assert_eq!(log.path(block.places[1]).unwrap().file_name().unwrap(), "d.csv");
    assert_eq!(log.sha256().unwrap(), sha256("x,action,reward\nx,action,reward\n1,a,0\nreward,x,action\n1,2,b\n"));
}

#[test]
fn the_sum_is_that_of_the_bytes_whatever_has_been_read_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |n: usize| (0..n).map(|i| format!("{i},a{},0.{i}\n", i % 3)).collect::<String>();
    fs::write(folder.path().join("a.csv"), format!("x,action,reward\n{}", rows(30_000))).unwrap();
    gzip(&folder.path().join("b.csv.gz"), &format!("x,action,reward\n{}", rows(20_000)));
    let bytes = ["a.csv", "b.csv.gz"].map(|name| fs::read(folder.path().join(name)).unwrap()).concat();
    for blocks in [0, 1, 5, usize::MAX] {
        let log = Log::open(&[folder.path().to_path_buf()], &LogOptions::default(), Want::OUTCOMES).unwrap();
        log.blocks().take(blocks).for_each(|block| _ = block.unwrap());
        assert_eq!(log.sha256().unwrap(), sha256(&bytes), "after {blocks} blocks");
        assert_eq!(log.sha256().unwrap(), sha256(&bytes), "asked again");
    }
}

fn sha256(bytes: impl AsRef<[u8]>) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_second_reward_is_no_feature_and_a_role_that_is_not_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = "action,reward,gain,propensity,x\na,1,5,,2\n";
    let roles = Roles { reward: Some("gain".into()), ..Roles::default() };
    let options = LogOptions { roles, ..LogOptions::default() };
    let log = open(folder.path(), "a.csv", text, &options).unwrap();
    assert_eq!(log.schema().shared.iter().map(|feature| feature.name.as_str()).collect::<Vec<_>>(), ["x"]);
    let ignored: Vec<_> =
        log.schema().ignored.iter().map(|column| format!("{}: {}", column.name, column.why)).collect();
    assert_eq!(ignored, ["reward: the name of a reward or propensity", "propensity: no values in the first rows"]);
    let block = log.blocks().next().unwrap().unwrap();
    assert_eq!((block.rewards, block.propensities), (Some(vec![5.0]), None));
    let roles = Roles { eligible: Some("elligible".into()), ..Roles::default() };
    let options = LogOptions { roles, ..LogOptions::default() };
    let message = refusal("a.csv", text, &options);
    assert!(message.starts_with("`a.csv` has no column `elligible`; it has `action`,"), "{message}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_kept_so_that_it_can_be_read_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let writer = std::thread::spawn({
        let path = path.clone();
        move || fs::write(path, "action,reward,x\na,1,2\nb,0,3\n").unwrap()
    });
    let log = Log::open(&[path], &LogOptions::default(), Want::OUTCOMES).unwrap();
    writer.join().unwrap();
    for _ in 0..2 {
        assert_eq!(log.blocks().next().unwrap().unwrap().rewards, Some(vec![1.0, 0.0]));
    }
}
