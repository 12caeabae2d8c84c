//! The theory's figures from the public interface: a log without truth, and the exponents of the training times.

use neuralcb_experiments::Library;
use neuralcb_experiments::theory::{Figure, Settings, Study, exponent, run, run_study, table};

fn small(figures: &[Figure]) -> Settings {
    Settings { n: 32, width: 8, reps: 1, test_contexts: 20, figures: figures.to_vec(), ..Settings::default() }
}

#[test]
fn a_log_without_truth_gets_what_can_be_known_and_no_more() {
    let settings = small(&Figure::ALL[..4]);
    let drawn = Study::draw(&settings, &Library::default(), 0, 0.5).unwrap();
    let log = Study::of_log("my log", drawn.log.clone(), 1);
    let report = run_study(&settings, &log, None, &|_| ()).unwrap();
    let letters: Vec<&str> = report.figures.iter().map(|shown| shown.figure.letter()).collect();
    assert_eq!(letters, ["a", "b"], "the rate and the coverage need the truth");
    let text = table(&report);
    assert!(text.contains("at least, from") && !text.contains("S = "), "{text}");
    // ε-greedy with ε = 0.5 and K = 30: no ratio of a played action exceeds K/ε
    let (kappa, _) = report.quantities.kappa.clone().unwrap();
    assert!(kappa <= 60.0 + 1e-9, "{kappa}");
    let known = run_study(&settings, &drawn, None, &|_| ()).unwrap().quantities;
    assert!((known.kappa.unwrap().0 - 1.0 / (0.5 + 0.5 / 30.0)).abs() < 1e-9);
    assert!(known.s.unwrap() > 0.0 && known.theorem.is_some());
}

/// `cargo test --release -p neuralcb-experiments --test theory -- --ignored`, on a quiet machine.
#[test]
#[ignore = "a measurement: to be run alone and in release"]
fn one_pass_is_linear_and_retraining_quadratic() {
    let settings = Settings { n: 400, width: 20, figures: vec![Figure::Cost], ..Settings::default() };
    let report = run(&settings, &Library::default(), &|_| ()).unwrap();
    let lines = &report.figures[0].panels[0].lines;
    let (once, again) = (exponent(&lines[0].points), exponent(&lines[1].points));
    println!("one pass {once:.3}, retraining {again:.3}");
    assert!((once - 1.0).abs() <= 0.1 && (again - 2.0).abs() <= 0.2, "{once} {again}");
}
