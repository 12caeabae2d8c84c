//! The Open Bandit Dataset as it is published.

mod common;

use neuralcb::Encoding;
use neuralcb_logs::log::{Format, Kind, Log, LogOptions, Need, Preparation, PreparationConfig, Want};

#[test]
fn a_campaign_reads_with_its_roles_and_one_position_alone() {
    let Some(data) = common::data_folder() else { return };
    let want = Want { outcome: true, propensity: Need::Required };
    let folder = data.join("obd/random/men");
    let log = Log::open(std::slice::from_ref(&folder), &LogOptions::default(), want).unwrap();
    let schema = log.schema();
    assert_eq!(schema.format, Format::OpenBandit);
    // Position, four features of the user, affinities to 34 items.
    assert_eq!(schema.shared.len(), 1 + 4 + 34);
    assert_eq!(schema.shared.iter().filter(|feature| feature.kind == Kind::Category).count(), 5);
    let (preparation, summary) = Preparation::fit(&log, &PreparationConfig::default()).unwrap();
    assert_eq!(summary.rounds, 10_000);
    assert_eq!(preparation.actions().len(), 34);
    assert_eq!(preparation.actions()[10], "10");
    assert_eq!(preparation.layout().encoding, Encoding::Disjoint);
    let propensities = summary.propensities.unwrap();
    assert_eq!((propensities.min, propensities.max), (1.0 / 34.0, 1.0 / 34.0));
    let block = log.blocks().next().unwrap().unwrap();
    let logged = preparation.logged(&block).unwrap();
    let norm: f32 = logged.round(0).chosen.x.iter().map(|v| v * v).sum();
    assert!((norm - 1.0).abs() < 1e-5, "{norm}");

    // The file alone is known by its columns; rows at other positions are left out without being bad.
    let file = folder.join("men.csv");
    let options = LogOptions { position: Some(2), ..LogOptions::default() };
    let log = Log::open(std::slice::from_ref(&file), &options, want).unwrap();
    let rounds: usize = log.blocks().map(|block| block.unwrap().n_rounds()).sum();
    let text = std::fs::read_to_string(&file).unwrap();
    let at_two = text.lines().skip(1).filter(|line| line.split(',').nth(3) == Some("2")).count();
    assert_eq!(rounds, at_two);
    assert_eq!(log.skipped().bad_rows, 0);
    assert!(log.schema().shared.iter().all(|feature| feature.name != "position"));
}
