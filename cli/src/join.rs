//! `neuralcb join`: decisions and rewards become a log.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use neuralcb_server::join::{Aggregate, JoinConfig, Joined, join, late_path};

use crate::{args, out, talk};

#[derive(clap::Args)]
pub struct Args {
    /// The folders of the decision logs, of one server or of many
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// The log to write: .jsonl or .parquet
    #[arg(long)]
    out: PathBuf,
    /// How long a decision waits for its rewards
    #[arg(long, default_value = "10m", value_parser = args::time)]
    wait: Duration,
    /// The reward of a decision that earned none by then
    #[arg(long, default_value_t = 0.0, value_parser = args::number, allow_negative_numbers = true)]
    default_reward: f64,
    /// What many rewards of one decision become: first, last, sum, mean, min or max
    #[arg(long, default_value = "first")]
    aggregate: Aggregate,
    /// The present, in milliseconds since 1970: what is decided within the window before it is left for a later run. By
    /// default now
    #[arg(long, value_name = "MS")]
    until: Option<u64>,
    /// MiB to sort in; what is more goes through files beside the output
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..))]
    memory_mib: u64,
    /// Go on as the logs grow: write the whole log again whenever there is more
    #[arg(long)]
    follow: bool,
    /// With --follow, how often to look
    #[arg(long, default_value = "60s", value_parser = args::time)]
    every: Duration,
    /// The counts as JSON on standard output
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(args.default_reward.is_finite(), "`--default-reward` must be finite, got {}", args.default_reward);
    let mut last = None;
    loop {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let config = JoinConfig {
            wait: args.wait,
            default_reward: args.default_reward,
            aggregate: args.aggregate,
            until: args.until.unwrap_or(now),
            memory: (args.memory_mib as usize) << 20,
        };
        let joined = join(&args.folders, &args.out, &config)?;
        if last.as_ref() != Some(&joined) {
            match args.json {
                true => out::print(&format!("{}\n", serde_json::to_string(&joined)?))?,
                false => tell(&joined, args),
            }
        }
        if !args.follow {
            return Ok(());
        }
        last = Some(joined);
        std::thread::sleep(args.every);
    }
}

fn tell(joined: &Joined, args: &Args) {
    let side = late_path(&args.out);
    talk::say!("{} rows, {} of them rewarded: {}", joined.rows, joined.rewarded, args.out.display());
    for (count, what) in [
        (joined.open, "decisions still wait for rewards: join again later, or wait less by --wait".to_owned()),
        (joined.inactive, "deferred decisions were never activated".to_owned()),
        (
            joined.repeated,
            format!("decisions came again under the same event ({} chose otherwise)", joined.contradicted),
        ),
        (joined.late, format!("rewards came too late: {}", side.display())),
        (joined.unknown, format!("rewards belong to no known decision: {}", side.display())),
    ] {
        if count > 0 {
            talk::say!("{count} {what}");
        }
    }
}
