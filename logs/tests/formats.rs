//! Every example of `docs/FORMATS.md` is what it says.

#[path = "common/reading.rs"]
mod reading;

use std::fs;
use std::path::{Path, PathBuf};

use neuralcb_logs::log::LogOptions;

/// An example: its file's name, what is said of it, its content, and the text block after it.
struct Example {
    name: String,
    claim: String,
    content: String,
    after: String,
}

fn examples() -> Vec<Example> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/FORMATS.md");
    let text = fs::read_to_string(path).unwrap();
    let fenced = |text: &str| -> String {
        let mut lines = text.lines().skip_while(|line| !line.starts_with("```")).skip(1);
        lines.by_ref().take_while(|line| !line.starts_with("```")).map(|line| format!("{line}\n")).collect()
    };
    let parts = text.split("<!-- ").skip(1);
    let example = parts.map(|part| {
        let (head, body) = part.split_once(" -->").unwrap();
        let (name, claim) = head.split_once(": ").unwrap();
        let content = fenced(body);
        let rest = body.split_once(&content).unwrap().1;
        let after = rest.split_once("```text").map(|(_, rest)| fenced(&format!("```\n{}", rest.trim_start())));
        Example { name: name.to_owned(), claim: claim.to_owned(), content, after: after.unwrap_or_default() }
    });
    example.collect()
}

fn written(example: &Example, folder: &Path) -> PathBuf {
    let path = folder.join(&example.name);
    fs::write(&path, &example.content).unwrap();
    path
}

#[test]
fn the_examples_are_read_as_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let mut read = 0;
    for example in examples() {
        let path = written(&example, folder.path());
        let words: Vec<&str> = example.claim.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        match words[..] {
            [rounds, "rounds", ..] => {
                let got = reading::read_path(&path, &LogOptions::default());
                assert_eq!(got.map_err(|e| e.to_string()), Ok(rounds.parse().unwrap()), "{}", example.name);
            }
            ["refused"] => {
                let error = reading::read_path(&path, &LogOptions::default()).unwrap_err().to_string();
                let error = error.replace(path.to_str().unwrap(), &example.name);
                assert_eq!(error, example.after.trim_end(), "{}", example.name);
            }
            ["options"] => {
                let options = LogOptions::from_toml(&path).unwrap();
                assert_eq!(options.roles.action.as_deref(), Some("shown"));
                assert_eq!((options.max_bad_rows, options.kinds.len()), (10, 2));
            }
            _ => panic!("`{}` claims `{}`", example.name, example.claim),
        }
        read += 1;
    }
    assert_eq!(read, 9);
}
