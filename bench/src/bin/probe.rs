//! `neuralcb-probe NAME RUNS`: runs one kernel so many times and nothing else, for a count of its instructions.

use std::process::ExitCode;

use neuralcb_bench::{PROBES, run_probe};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, runs] = &args[..] else { return refuse("usage: neuralcb-probe NAME RUNS") };
    let Some(probe) = PROBES.iter().find(|probe| probe.name == name) else { return refuse("no kernel of that name") };
    let Ok(runs) = runs.parse() else { return refuse("RUNS must be a number") };
    match run_probe(probe, runs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&error.to_string()),
    }
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::from(2)
}
