//! Off-policy evaluation against Open Bandit Pipeline's and VowpalWabbit's own numbers, and its invariants.

use std::path::{Path, PathBuf};

use neuralcb::ope::{Answer, Code, Estimator, Evaluation, Interval, OpeConfig, Report, Sample, evaluate};
use proptest::prelude::*;
use serde_json::Value;

/// `$NEURALCB_SHARED`, else `../shared` seen from the repository; `None`, and a line that says so, where it is absent.
fn shared() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = std::env::var_os("NEURALCB_SHARED").map_or(here.join("../shared"), PathBuf::from);
    if shared.join("data/obd").is_dir() {
        return Some(shared);
    }
    println!("skipped: the Open Bandit Dataset is not in `{}`", shared.join("data/obd").display());
    None
}

/// A log of the Open Bandit Dataset: action, position from 0, click, propensity.
fn log(shared: &Path, policy: &str, campaign: &str) -> Vec<(usize, usize, f64, f64)> {
    let path = shared.join(format!("data/obd/{policy}/{campaign}/{campaign}.csv"));
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let place = |name: &str| header.iter().position(|h| *h == name).unwrap();
    let [action, position, click, propensity] = ["item_id", "position", "click", "propensity_score"].map(place);
    let parse = |l: Vec<&str>| {
        let number = |i: usize| l[i].parse::<f64>().unwrap();
        (number(action) as usize, number(position) as usize - 1, number(click), number(propensity))
    };
    lines.map(parse).collect()
}

/// The samples of the rule in `tests/golden/off_policy.py`.
fn samples(shared: &Path, behaviour: &str, target: &str, campaign: &str) -> Vec<Sample> {
    let rounds = log(shared, behaviour, campaign);
    let shown = if target == "uniform" { Vec::new() } else { log(shared, target, campaign) };
    let n_actions = rounds.iter().chain(&shown).map(|r| r.0).max().unwrap() + 1;
    let mut pi = vec![[1.0; 3]; n_actions];
    shown.iter().for_each(|&(action, position, ..)| pi[action][position] += 1.0);
    let (mut clicks, mut shows) = (vec![[1.0; 3]; n_actions], vec![[100.0; 3]; n_actions]);
    for &(action, position, click, _) in &rounds {
        clicks[action][position] += click;
        shows[action][position] += 1.0;
    }
    let total: [f64; 3] = std::array::from_fn(|l| pi.iter().map(|p| p[l]).sum());
    pi.iter_mut().for_each(|p| (0..3).for_each(|l| p[l] /= total[l]));
    let q = |a: usize, l: usize| clicks[a][l] / shows[a][l];
    let v: [f64; 3] = std::array::from_fn(|l| (0..n_actions).map(|a| pi[a][l] * q(a, l)).sum());
    rounds.iter().map(|&(a, l, r, p)| Sample::new(pi[a][l] / p, r).with_model(q(a, l), v[l])).collect()
}

/// The hyper-parameters of the golden values.
fn config(x_max: f64) -> OpeConfig {
    OpeConfig { clip: 2.0, switch: 2.0, dros: 1.0, sg: 0.1, x_max: Some(x_max), ..OpeConfig::default() }
}

fn value(report: &Report, estimator: Estimator) -> f64 {
    report.estimate(estimator).unwrap().bounded.value.unwrap()
}

fn relative(got: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((got - expected).abs() <= tolerance * expected.abs(), "{what}: {got} against {expected}");
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn estimates_of_men_are_those_of_the_shared_golden_file() {
    let Some(shared) = shared() else { return };
    let text = std::fs::read_to_string(shared.join("golden/obd_men.json")).unwrap();
    let golden: Value = serde_json::from_str(&text).unwrap();
    let samples = samples(&shared, "random", "bts", "men");
    let report = evaluate(&config(10.0), samples.iter().copied()).unwrap();
    use Estimator::*;
    let names = [
        (Ips, "ipw"),
        (IpsClip, "ipw_clip2"),
        (Snips, "snipw"),
        (Dm, "dm"),
        (Dr, "dr"),
        (DrClip, "dr_clip2"),
        (Sndr, "sndr"),
        (SwitchDr, "switch_dr_tau2"),
        (Dros, "dros_1"),
        (SgIps, "sgipw_0.1"),
        (SgDr, "sgdr_0.1"),
    ];
    for (estimator, name) in names {
        relative(value(&report, estimator), number(&golden["estimators"][name]), 1e-12, name);
    }
    let other = OpeConfig { dros: 100.0, ..config(10.0) };
    let dros = value(&evaluate(&other, samples.iter().copied()).unwrap(), Dros);
    relative(dros, number(&golden["estimators"]["dros_100"]), 1e-12, "dros_100");
    let vw = &golden["vw_estimators"];
    relative(value(&report, CressieRead), number(&vw["cressieread"]), 1e-12, "cressieread");
    relative(report.behaviour.value.unwrap(), number(&golden["behavior_mean"]), 1e-12, "behaviour");
    relative(report.ess.unwrap(), number(&golden["ess"]), 1e-12, "ess");
    relative(report.mean_weight.unwrap(), number(&golden["mean_w"]), 1e-12, "mean_w");
    relative(report.max_weight, number(&golden["max_w"]), 1e-12, "max_w");
    let ips = &report.estimate(Ips).unwrap().bounded;
    let lower = [
        (Interval::Hoeffding, "hoeffding_xmax10"),
        (Interval::Bernstein, "bernstein_xmax10"),
        (Interval::StudentT, "student_t"),
    ];
    for (interval, name) in lower {
        relative(ips.lower_bounds[&interval], number(&golden["lower_bounds"][name]), 1e-9, name);
    }
    let two_sided = [
        (Interval::Normal, "gaussian_95"),
        (Interval::ClopperPearson, "clopper_pearson_95"),
        (Interval::CressieRead, "cressieread_95"),
        (Interval::Sequence, "cs_95"),
    ];
    for (interval, name) in two_sided {
        for end in 0..2 {
            relative(ips.intervals[&interval][end], number(&vw[name][end]), 1e-9, name);
        }
    }
}

#[test]
fn estimates_of_all_campaigns_are_those_of_the_other_packages() {
    let Some(shared) = shared() else { return };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/off_policy.json");
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for case in &cases {
        let text = |name: &str| case[name].as_str().unwrap();
        let (behaviour, target, campaign) = (text("behaviour"), text("target"), text("campaign"));
        let samples = samples(&shared, behaviour, target, campaign);
        let report = evaluate(&config(number(&case["x_max"])), samples).unwrap();
        let name = |what: &str| format!("{behaviour} to {target}, {campaign}, {what}");
        for (estimator, expected) in case["value"].as_object().unwrap() {
            if let Ok(estimator) = estimator.parse() {
                relative(value(&report, estimator), number(expected), 1e-12, &name(estimator.name()));
            }
        }
        relative(
            value(&report, Estimator::CressieRead),
            number(&case["vw"]["cressie-read"]),
            1e-12,
            &name("cressie-read"),
        );
        relative(report.ess.unwrap(), number(&case["ess"]), 1e-12, &name("ess"));
        let ips = &report.estimate(Estimator::Ips).unwrap().bounded;
        for (interval, expected) in case["lower_bounds"].as_object().unwrap() {
            relative(ips.lower_bounds[&interval.parse().unwrap()], number(expected), 1e-9, &name(interval));
        }
        for (interval, expected) in case["intervals"].as_object().unwrap() {
            for end in 0..2 {
                let (got, expected) = (ips.intervals[&interval.parse().unwrap()][end], number(&expected[end]));
                // the root finders of the other packages stop at an absolute 2e-12
                assert!(
                    (got - expected).abs() < 1e-9 * expected.abs() + 1e-11,
                    "{}: {got}, {expected}",
                    name(interval)
                );
            }
        }
    }
}

#[test]
fn a_log_whose_smallest_propensity_is_a_millionth_is_not_to_be_trusted() {
    let Some(shared) = shared() else { return };
    let report = evaluate(&OpeConfig::default(), samples(&shared, "bts", "uniform", "women")).unwrap();
    assert!((report.ess.unwrap() - 2.08).abs() < 0.005);
    assert_eq!(report.verdict().answer, Answer::NotToBeTrusted);
    assert!(
        report.verdict().words.contains("effective sample size is 2.08 of 10000 rounds"),
        "{}",
        report.verdict().words
    );
    assert!(report.warning(Code::MaxWeight).is_some());
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["warnings"][0]["code"], "tiny-sample-size");
    assert_eq!(json["verdict"]["answer"], "not-to-be-trusted");
}

#[test]
fn the_report_keeps_to_its_json_contract() {
    let samples = (0..500).map(|t| Sample::new(f64::from(t % 3), f64::from(t % 2)).with_model(0.4, 0.5));
    let report = evaluate(&OpeConfig::default(), samples).unwrap();
    let json = serde_json::to_value(&report).unwrap();
    for name in ["n", "ess", "mean_weight", "max_weight", "behaviour", "estimates", "verdict", "warnings"] {
        assert!(!json[name].is_null(), "{name}");
    }
    assert!(json["behaviour"]["value"].is_f64());
    let names: Vec<&str> =
        json["estimates"].as_array().unwrap().iter().map(|e| e["estimator"].as_str().unwrap()).collect();
    assert_eq!(names, Estimator::ALL.map(|e| e.name()));
    let ips = &json["estimates"][1];
    let intervals: Vec<&String> = ips["intervals"].as_object().unwrap().keys().collect();
    assert_eq!(intervals.len(), Interval::ALL.len(), "{intervals:?}");
    assert!(Interval::ALL.iter().all(|i| ips["lower_bounds"][i.name()].is_f64()));
    assert_eq!(serde_json::from_value::<Report>(json).unwrap(), report);
}

#[test]
fn empty_and_hopeless_logs_are_answered_without_numbers() {
    let empty = evaluate(&OpeConfig::default(), []).unwrap();
    assert_eq!((empty.n, empty.verdict().answer), (0, Answer::NotToBeTrusted));
    assert!(empty.estimates.iter().all(|e| e.bounded.value.is_none() && e.bounded.intervals.is_empty()));
    let apart = evaluate(&OpeConfig::default(), vec![Sample::new(0.0, 1.0); 50]).unwrap();
    assert!(apart.warning(Code::NoOverlap).is_some());
    assert_eq!(apart.estimate(Estimator::Snips).unwrap().bounded.value, None);
    let one = evaluate(&OpeConfig::default(), [Sample::new(1.0, 0.5).with_model(0.4, 0.4)]).unwrap();
    assert_eq!(one.estimate(Estimator::Ips).unwrap().bounded.value, Some(0.5));
    let bare = evaluate(&OpeConfig::default(), vec![Sample::new(1.0, 0.5); 50]).unwrap();
    assert!(bare.estimate(Estimator::Dr).is_none());
    let message = &bare.warning(Code::NoModel).unwrap().message;
    assert!(message.starts_with("50 of 50 rounds have no q and v of a reward model, so dm, dr, "), "{message}");
}

#[test]
fn bad_samples_name_their_round_and_leave_the_state_alone() {
    let mut evaluation =
        Evaluation::new(OpeConfig { reward_range: Some([0.0, 1.0]), ..Default::default() }, 10).unwrap();
    let bad = [Sample::new(1.0, 0.0), Sample::new(f64::NAN, 0.0)];
    let refused = evaluation.extend(&bad).unwrap_err().to_string();
    assert_eq!(refused, "round 11, importance weight: must be in [0, 1e100], got NaN");
    let refused = evaluation.extend(&[Sample::new(1.0, 1.5)]).unwrap_err().to_string();
    assert_eq!(refused, "round 10, reward: must be within `reward_range`, got 1.5");
    assert_eq!(evaluation.report().n, 0);
}

/// Any sample that a log might hold.
fn any_sample() -> impl Strategy<Value = Sample> {
    let weight = prop_oneof![Just(0.0), 0.0..5.0, 0.0..1e4];
    let reward = prop_oneof![Just(0.0), Just(1.0), -10.0..10.0];
    (weight, reward, -2.0..2.0, -2.0..2.0).prop_map(|(w, r, q, v)| Sample::new(w, r).with_model(q, v))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_log_in_parts_gives_the_bits_of_the_log_in_one(
        log in prop::collection::vec(any_sample(), 1..400),
        cuts in prop::collection::vec(0usize..400, 0..6),
        order in any::<u64>(),
        drop in prop_oneof![Just(0.0), 0.0..0.9],
    ) {
        let mut log = log;
        log[0].drop = drop;
        let config = OpeConfig { replicates: 20, ..OpeConfig::default() };
        let whole = evaluate(&config, log.iter().copied()).unwrap();
        let mut ends: Vec<usize> = cuts.into_iter().map(|c| c.min(log.len())).chain([0, log.len()]).collect();
        ends.sort_unstable();
        let part = |ends: &[usize]| {
            let mut part = Evaluation::new(config.clone(), ends[0] as u64).unwrap();
            part.extend(&log[ends[0]..ends[1]]).unwrap();
            part
        };
        let mut parts: Vec<Evaluation> = ends.windows(2).map(part).collect();
        let mut state = order;
        while parts.len() > 1 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let taken = parts.swap_remove((state >> 33) as usize % parts.len());
            let taken = Evaluation::from_bytes(&taken.to_bytes()).unwrap();
            let into = (state >> 40) as usize % parts.len();
            parts[into].merge(&taken).unwrap();
        }
        let merged = Evaluation::from_bytes(&parts[0].to_bytes()).unwrap();
        prop_assert_eq!(merged.to_bytes(), parts[0].to_bytes());
        let merged = merged.report();
        prop_assert_eq!(serde_json::to_string(&merged).unwrap(), serde_json::to_string(&whole).unwrap());
    }

    #[test]
    fn hostile_bytes_are_refused_or_do_no_harm(
        log in prop::collection::vec(any_sample(), 1..40),
        first in prop_oneof![Just(0u64), 0..1u64 << 53],
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let part = |first| {
            let mut part = Evaluation::new(OpeConfig { replicates: 20, ..OpeConfig::default() }, first).unwrap();
            part.extend(&log).unwrap();
            part
        };
        let mut bytes = part(first.min((1 << 53) - 40)).to_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
            prop_assert!(Evaluation::from_bytes(&bytes).is_err());
        } else if let Ok(mut read) = Evaluation::from_bytes(&bytes) {
            read.report();
            let _ = read.merge(&part(0));
            let _ = read.extend(&log);
            read.report();
            prop_assert!(Evaluation::from_bytes(&read.to_bytes()).is_ok());
        }
    }

    #[test]
    fn limits_of_the_settings_are_the_estimators_they_approach(log in prop::collection::vec(any_sample(), 2..60)) {
        let at = |clip: f64, switch: f64, dros: f64, sg: f64| {
            evaluate(&OpeConfig { clip, switch, dros, sg, ..OpeConfig::default() }, log.iter().copied()).unwrap()
        };
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + a.abs());
        let far = at(f64::INFINITY, f64::INFINITY, f64::INFINITY, 0.0);
        use Estimator::*;
        for (limit, of) in [(IpsClip, Ips), (SgIps, Ips), (DrClip, Dr), (SwitchDr, Dr), (Dros, Dr), (SgDr, Dr)] {
            prop_assert!(close(value(&far, limit), value(&far, of)), "{limit} against {of}");
        }
        let near = at(1.0, 0.0, 0.0, 0.0);
        for limit in [SwitchDr, Dros] {
            prop_assert!(close(value(&near, limit), value(&near, Dm)), "{limit} against dm");
        }
        // with a model that says 0 the doubly robust estimators are the plain ones
        let blind = log.iter().map(|s| s.with_model(0.0, 0.0));
        let blind = evaluate(&OpeConfig::default(), blind).unwrap();
        for (dr, ips) in [(Dr, Ips), (DrClip, IpsClip), (SgDr, SgIps)] {
            prop_assert!(close(value(&blind, dr), value(&blind, ips)), "{dr} against {ips}");
        }
    }
}

#[test]
fn parts_that_overlap_or_differ_are_refused_and_missing_ones_are_told() {
    let part = |first: u64, n: usize, seed: u64| {
        let mut part = Evaluation::new(OpeConfig { seed, ..OpeConfig::default() }, first).unwrap();
        part.extend(&vec![Sample::new(1.0, 0.5); n]).unwrap();
        part
    };
    let mut early = part(0, 100, 0);
    let refused = early.merge(&part(90, 20, 0)).unwrap_err().to_string();
    assert!(refused.starts_with("parts of an evaluation overlap: rounds 90 to 100 are in both"), "{refused}");
    assert!(early.merge(&part(100, 20, 1)).unwrap_err().to_string().contains("same settings"));
    early.merge(&part(150, 50, 0)).unwrap();
    let message = early.report().warning(Code::NoSequence).unwrap().message.clone();
    assert!(message.contains("lack rounds from 100 on"), "{message}");
    early.merge(&part(100, 50, 0)).unwrap();
    assert!(early.report().warning(Code::NoSequence).is_none());
    // a part goes on where it stopped itself
    let refused = early.extend(&[Sample::new(1.0, 0.5)]).unwrap_err().to_string();
    assert!(refused.contains("rounds 100 to 101 are in both"), "{refused}");
    let mut first = part(0, 0, 0);
    first.merge(&part(50, 50, 0)).unwrap();
    first.extend(&vec![Sample::new(1.0, 0.5); 50]).unwrap();
    assert_eq!(first.report(), part(0, 100, 0).report());
}

#[test]
fn bytes_are_few_and_of_one_version() {
    let mut evaluation = Evaluation::new(OpeConfig { clip: f64::INFINITY, ..OpeConfig::default() }, 7).unwrap();
    let log: Vec<Sample> = (0..60_000u32).map(|t| Sample::new(f64::from(t % 3), f64::from(t % 2))).collect();
    evaluation.extend(&log).unwrap();
    let bytes = evaluation.to_bytes();
    // six terms and the count, 200 replicates of some seven bytes each, and the largest weights
    assert!(bytes.len() < 50_000, "{} bytes", bytes.len());
    assert_eq!(Evaluation::from_bytes(&bytes).unwrap().report(), evaluation.report());
    let mut later = bytes.clone();
    later[3] = 3;
    let refused = Evaluation::from_bytes(&later).unwrap_err().to_string();
    assert_eq!(refused, "saved evaluation, byte 4: must be a saved evaluation of version 2; save it anew");
    let longer = [&bytes[..], &[0]].concat();
    assert!(Evaluation::from_bytes(&longer).unwrap_err().to_string().contains("must be the end"));
    assert!(Evaluation::new(OpeConfig::default(), u64::MAX).unwrap_err().to_string().contains("first_round"));
}

#[test]
fn a_long_log_in_parallel_blocks_gives_the_bits_of_short_ones() {
    let log: Vec<Sample> = (0..400_000u32)
        .map(|t| Sample::new(f64::from(t % 7) / 3.0, f64::from(t % 11) / 10.0).with_model(0.1, 0.3))
        .collect();
    let config = OpeConfig { replicates: 20, ..OpeConfig::default() };
    let mut whole = Evaluation::new(config.clone(), 0).unwrap();
    whole.extend(&log).unwrap();
    let mut single = Evaluation::new(config, 0).unwrap();
    log.chunks(7999).for_each(|block| single.extend(block).unwrap());
    assert_eq!(single.report(), whole.report());
}

#[test]
fn dropped_rounds_count_as_rounds_without_weight() {
    // every second round of a kind is dropped: each that is kept stands for two
    let kept = |w: f64, r: f64| Sample { drop: 0.5, ..Sample::new(w, r).with_model(0.2, 0.4) };
    let report = evaluate(&OpeConfig::default(), (0..100).map(|t| kept(f64::from(t % 3), f64::from(t % 2)))).unwrap();
    let full = evaluate(
        &OpeConfig::default(),
        (0..100).map(|t| Sample { drop: 0.0, ..kept(f64::from(t % 3), f64::from(t % 2)) }),
    )
    .unwrap();
    for estimator in [Estimator::Ips, Estimator::Dr, Estimator::Snips, Estimator::Sndr, Estimator::Dm] {
        relative(value(&report, estimator), value(&full, estimator), 1e-14, estimator.name());
    }
    assert!(report.warning(Code::NoSequence).is_some());
}
