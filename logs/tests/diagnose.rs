//! Diagnoses of the Open Bandit Dataset: real logs with known weaknesses. Skipped where the files are absent.

mod common;

use neuralcb_logs::diagnose::{Diagnosis, diagnose};
use neuralcb_logs::log::{Feature, Log, LogOptions, Want};

fn diagnosed(campaign: &str) -> Option<Diagnosis> {
    let folder = common::data_folder()?.join("obd").join(campaign);
    let log = Log::open(&[folder], &LogOptions::default(), Want::OUTCOMES).unwrap();
    let names = |features: &[Feature]| features.iter().map(|f| f.name.clone()).collect::<Vec<_>>();
    Some(diagnose(log.blocks(), &names(&log.schema().shared), &names(&log.schema().per_action), &[]).unwrap())
}

fn severe(diagnosis: &Diagnosis) -> Vec<(&str, &str)> {
    diagnosis.warnings.iter().map(|w| (w.code.as_str(), w.severity.name())).collect()
}

/// A weight of 1/(46·1e-6) outweighs 10,000 rounds.
#[test]
fn the_log_with_a_propensity_of_one_in_a_million_is_not_to_be_trusted() {
    let Some(diagnosis) = diagnosed("bts/women") else { return };
    let p = diagnosis.propensities.as_ref().unwrap();
    assert_eq!((diagnosis.rows, diagnosis.actions.len(), p.smallest), (10_000, 46, 1e-6));
    // The numbers are those of a plain sum over the file: Σw, Σw² of w = 1/p.
    assert!((diagnosis.ess.unwrap() - 2.0778226924836782).abs() < 1e-9, "{:?}", diagnosis.ess);
    assert!((p.mean_weight - 3.1341900208974396).abs() < 1e-9, "{p:?}");
    assert!(diagnosis.unwise());
    assert!(severe(&diagnosis).contains(&("tiny-ess", "unwise")), "{diagnosis}");
    let tiny = diagnosis.warnings.iter().find(|w| w.code == "tiny-ess").unwrap();
    assert!(tiny.message.contains("2.08 of 10000 (smallest propensity 1e-6)"), "{}", tiny.message);
    assert!(tiny.message.contains("not to be trusted"), "{}", tiny.message);
}

#[test]
fn a_log_of_random_choices_is_fit_to_learn_from() {
    let Some(diagnosis) = diagnosed("random/men") else { return };
    let p = diagnosis.propensities.as_ref().unwrap();
    assert_eq!((diagnosis.rows, diagnosis.actions.len()), (10_000, 34));
    assert!((diagnosis.ess.unwrap() - 10_000.0).abs() < 1e-6 && (p.mean_weight - 1.0).abs() < 1e-12);
    assert!((p.sum.unwrap() - 1.0).abs() < 1e-12);
    assert!(!diagnosis.unwise(), "{diagnosis}");
    assert_eq!(diagnosis.rewards.as_ref().unwrap().successes, Some(46));
    assert!(severe(&diagnosis).contains(&("few-successes", "warning")), "{diagnosis}");
    assert!((diagnosis.kappa.as_ref().unwrap().estimate - 34.0).abs() < 1e-9, "{diagnosis}");
}

#[test]
fn small_effective_samples_are_warned_of() {
    for (campaign, ess) in [("bts/men", 655.7098495873316), ("bts/all", 340.37834113263625)] {
        let Some(diagnosis) = diagnosed(campaign) else { return };
        assert!((diagnosis.ess.unwrap() - ess).abs() < 1e-6, "{:?}", diagnosis.ess);
        assert!(severe(&diagnosis).contains(&("small-ess", "warning")), "{diagnosis}");
    }
}
