//! `neuralcb evaluate`: what a policy would have earned, from a log that another policy made.

use std::path::PathBuf;

use neuralcb::ope::{Code, Estimator, Interval, OpeConfig, Report, Warning};
use neuralcb::policy::PropensityConfig;
use neuralcb_logs::card::Kind;
use neuralcb_logs::evaluate::{EvaluateOptions, Evaluated, evaluate, evaluate_columns};
use neuralcb_logs::log::{Log, LogOptions, Want};
use neuralcb_logs::policy::Policy;

use crate::card::CardArgs;
use crate::log_args::{LogArgs, LogBar};
use crate::{args, out, talk};

#[derive(clap::Args)]
pub struct Args {
    /// POLICY LOG…: a policy file and a log. With --policy-column: LOG… alone
    #[arg(required = true, value_name = "POLICY LOG")]
    inputs: Vec<PathBuf>,
    /// The log's column of the target policy's probability of the logged action, for a policy that lives elsewhere
    #[arg(long, value_name = "P")]
    policy_column: Option<String>,
    /// The log's column of a reward model's value of the logged action
    #[arg(long, value_name = "Q", requires_all = ["policy_column", "v_column"])]
    q_column: Option<String>,
    /// The log's column of that model's expected value under the target policy
    #[arg(long, value_name = "V", requires = "q_column")]
    v_column: Option<String>,
    /// Another β than the policy's own
    #[arg(long, allow_negative_numbers = true, value_parser = args::number)]
    beta: Option<f64>,
    /// Estimators, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_parser = args::estimator(), ignore_case = true)]
    estimators: Vec<Estimator>,
    /// Intervals, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_parser = args::interval(), ignore_case = true)]
    intervals: Vec<Interval>,
    /// 1 − δ: intervals err with δ/2 on each side, lower bounds with δ
    #[arg(long, default_value_t = 0.95, allow_negative_numbers = true)]
    confidence: f64,
    /// ips-clip, dr-clip: weights are cut at it
    #[arg(long, allow_negative_numbers = true, value_parser = args::number)]
    clip: Option<f64>,
    /// switch-dr: above this weight the model alone
    #[arg(long, allow_negative_numbers = true, value_parser = args::number)]
    switch: Option<f64>,
    /// dros: λ of the shrinkage
    #[arg(long, allow_negative_numbers = true, value_parser = args::number)]
    dros: Option<f64>,
    /// sg-ips, sg-dr: λ
    #[arg(long, allow_negative_numbers = true, value_parser = args::number)]
    sg: Option<f64>,
    /// hoeffding, bernstein: the bound of a round's |w·r|; by default the largest in the log, with a warning
    #[arg(long, allow_negative_numbers = true, value_parser = args::number)]
    x_max: Option<f64>,
    /// clopper-pearson, cressie-read, sequence: the least and the greatest reward possible, as LOW,HIGH
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true, value_parser = args::range)]
    reward_range: Option<[f64; 2]>,
    /// Bootstrap replicates
    #[arg(long)]
    replicates: Option<usize>,
    /// The seed of the bootstrap
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folds of the reward model behind dm and dr; 0 leaves them out
    #[arg(long)]
    folds: Option<usize>,
    /// How propensities are estimated where the log has none: logistic or empirical
    #[arg(long, value_parser = propensities)]
    estimate_propensities: Option<PropensityConfig>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    card: CardArgs,
    #[command(flatten)]
    log_args: LogArgs,
}

fn propensities(text: &str) -> Result<PropensityConfig, String> {
    match text {
        "logistic" => Ok(PropensityConfig::default()),
        "empirical" => Ok(PropensityConfig::Empirical { prior: 0.0 }),
        _ => Err("must be logistic or empirical".to_owned()),
    }
}

impl Args {
    fn options(&self) -> EvaluateOptions {
        let usual = OpeConfig::default();
        let ope = OpeConfig {
            estimators: if self.estimators.is_empty() { usual.estimators } else { self.estimators.clone() },
            intervals: if self.intervals.is_empty() { usual.intervals } else { self.intervals.clone() },
            confidence: self.confidence,
            clip: self.clip.unwrap_or(usual.clip),
            switch: self.switch.unwrap_or(usual.switch),
            dros: self.dros.unwrap_or(usual.dros),
            sg: self.sg.unwrap_or(usual.sg),
            x_max: self.x_max,
            reward_range: self.reward_range,
            replicates: self.replicates.unwrap_or(usual.replicates),
            seed: self.seed,
            ..usual
        };
        let usual = EvaluateOptions::default();
        EvaluateOptions {
            ope,
            folds: self.folds.unwrap_or(usual.folds),
            propensities: self.estimate_propensities.clone().unwrap_or(usual.propensities),
            segments: self.card.segment.clone(),
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let found = if args.policy_column.is_some() { of_columns(args)? } else { of_policy(args)? };
    let json = serde_json::to_value(&found)?;
    args.card.write(Kind::Evaluate, &json)?;
    let text =
        if args.json { serde_json::to_string_pretty(&json)? + "\n" } else { table(&found.report, args.confidence) };
    out::print(&text)
}

fn of_columns(args: &Args) -> anyhow::Result<Evaluated> {
    let columns = [&args.policy_column, &args.q_column, &args.v_column];
    let extra: Vec<String> = columns.into_iter().flatten().cloned().collect();
    let options = LogOptions { extra: extra.clone(), ..args.log_args.options()? };
    let log = Log::open(&args.inputs, &options, Want::OUTCOMES)?;
    args.card.check(log.paths())?;
    let mut bar = LogBar::new(&log);
    let report = evaluate_columns(&log, &extra, &args.options(), &mut |doing| bar.show(doing))?;
    bar.finish();
    Ok(report)
}

fn of_policy(args: &Args) -> anyhow::Result<Evaluated> {
    let [policy, logs @ ..] = &args.inputs[..] else { anyhow::bail!("give a policy file and a log") };
    if logs.is_empty() {
        anyhow::bail!("give a policy file and a log, or a log and --policy-column");
    }
    let mut policy = Policy::load(policy)?;
    if let Some(beta) = args.beta {
        policy = policy.with_beta(beta)?;
    }
    let log = Log::open_as(logs, &args.log_args.options()?, Want::OUTCOMES, policy.preparation().schema())?;
    args.card.check(log.paths())?;
    let mut bar = LogBar::new(&log);
    let evaluated = evaluate(&policy, None, &log, &args.options(), &mut |doing| bar.show(doing))?;
    bar.finish();
    if let Some(warning) = &evaluated.unseen_words {
        talk::warning!("{warning}");
    }
    Ok(evaluated)
}

/// The report for people.
fn table(report: &Report, confidence: f64) -> String {
    let number = |v: Option<f64>| v.map_or("-".to_owned(), |v| format!("{v:.6}"));
    let interval = |i: Option<&[f64; 2]>| i.map_or("-".to_owned(), |[low, high]| format!("[{low:.6}, {high:.6}]"));
    let mut rows = vec![["", "value", "interval", "by", "above", "against behaviour"].map(str::to_owned)];
    let percent = format!("{}", (confidence * 1000.0).round() / 10.0);
    rows[0][2] = format!("{percent} % interval");
    rows[0][4] = format!("{percent} % above");
    let own = &report.behaviour;
    rows.push([
        "behaviour policy".to_owned(),
        number(own.value),
        interval(own.intervals.get(&Interval::Normal)),
        Interval::Normal.name().to_owned(),
        number(own.lower_bounds.get(&Interval::Normal).copied()),
        String::new(),
    ]);
    for estimate in &report.estimates {
        let bounded = &estimate.bounded;
        // the first that the estimator has, in the order of the contract; cressie-read has its own
        let by =
            if bounded.intervals.contains_key(&Interval::Normal) { Interval::Normal } else { Interval::CressieRead };
        let difference = estimate
            .difference
            .map_or(String::new(), |d| format!("{:+.6} [{:+.6}, {:+.6}]", d.value, d.interval[0], d.interval[1]));
        rows.push([
            estimate.estimator.name().to_owned(),
            number(bounded.value),
            interval(bounded.intervals.get(&by)),
            by.name().to_owned(),
            number(bounded.lower_bounds.get(&by).copied()),
            difference,
        ]);
    }
    let mut text = format!(
        "{} rounds, effective sample size {}, mean weight {}, largest weight {:.4}\n\n",
        report.n,
        report.ess.map_or("-".to_owned(), |v| format!("{v:.1}")),
        report.mean_weight.map_or("-".to_owned(), |v| format!("{v:.4}")),
        report.max_weight
    );
    for row in &rows {
        let mut line = String::new();
        for (i, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
            line.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str(&format!("\n{}\n", report.verdict.words));
    for Warning { code, message } in &report.warnings {
        text.push_str(&format!("warning ({}): {message}\n", code_name(*code)));
    }
    text
}

fn code_name(code: Code) -> String {
    serde_json::to_value(code).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}
