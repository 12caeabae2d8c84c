//! `neuralcb show`: what a policy file is, and what is certain of it.

use std::path::PathBuf;

use neuralcb_logs::Choice;
use neuralcb_logs::policy::{Description, Policy};
use neuralcb_logs::tune::{Certified, Certifies};

use crate::out;

#[derive(clap::Args)]
pub struct Args {
    /// The policy file
    policy: PathBuf,
    /// Print JSON: all that the file says beside its arrays
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let policy = Policy::load(&args.policy)?;
    if args.json {
        out::print(&(serde_json::to_string_pretty(policy.description())? + "\n"))?;
    } else {
        out::print(&text(&policy))?;
    }
    Ok(())
}

fn text(policy: &Policy) -> String {
    let about: &Description = policy.description();
    let (layout, training) = (policy.preparation().layout(), &about.training);
    let numbers: usize = policy.arrays().values().map(|array| array.numbers.len()).sum();
    let beta = policy.beta().map_or(String::new(), |beta| format!(", β {beta}"));
    let mut text = format!(
        "{}{beta}: {} actions, {} features, {numbers} numbers, made by neuralcb {} with seed {}\n\
         learned from {} rounds (mean reward {:.4}) of {}\n  SHA-256 {}\n",
        about.method.name(),
        layout.n_actions,
        layout.dim,
        about.program,
        about.seed,
        training.rounds,
        training.mean_reward,
        about.log.files.join(", "),
        about.log.sha256
    );
    if let Some(choice) = &about.chosen {
        text.push_str(&format!("\n{}", chosen(choice)));
    }
    match &about.certified {
        None => {
            text.push_str("\nno certificate: `neuralcb tune` gives one, and --beta of another value takes it away\n")
        }
        Some(certified) => {
            let words = certified.certificate.words(about.method.name());
            text.push_str(&format!("\n{words}\n{}", granted(certified)));
        }
    }
    text
}

/// How `auto` came to its learner.
pub fn chosen(choice: &Choice) -> String {
    let mut text = "auto compared on rounds held out, by the lead over the first candidate beyond chance:\n".to_owned();
    text.push_str("     lead     value  learner\n");
    for tried in &choice.tried {
        let value = tried.value.map_or("-".to_owned(), |v| format!("{v:.4}"));
        let beta = if tried.beta > 0.0 { format!(", β {}", tried.beta) } else { String::new() };
        text.push_str(&format!("{:>9.4}  {value:>8}  {}{beta}\n", tried.lead, tried.name));
    }
    if choice.estimated_propensities {
        text.push_str("(the log has no propensities: they were estimated, and the comparison rests on that)\n");
    }
    text
}

/// What a certificate takes for granted, and how it came about.
pub fn granted(certified: &Certified) -> String {
    let Certified { certificate, settings, candidates, .. } = certified;
    let mut text = "\nwhat the certificate takes for granted:\n".to_owned();
    certificate.assumptions.words().iter().for_each(|words| text.push_str(&format!("- {words}\n")));
    text.push_str(&format!(
        "chosen from {candidates} candidates by other rounds, certified on {} % (method {}; {} of {} rounds agree; seed \
         {})\n",
        100.0 * settings.certify,
        certificate.method,
        certificate.agreeing,
        certificate.rounds,
        settings.base.seed
    ));
    text.push_str(match certified.certifies {
        Certifies::ThisFile => "it is of the very policy in the file\n",
        Certifies::Procedure => "it is of the procedure: the file itself was learned anew from all rounds\n",
    });
    text
}
