//! A diagnosis as a table of text.

use std::fmt;

use super::Diagnosis;

/// Actions that are shown one by one.
const SHOWN: usize = 20;

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "rounds         {}", self.rows)?;
        if let Some(r) = &self.rewards {
            let more = if r.different >= super::COUNTED { " or more" } else { "" };
            write!(
                f,
                "rewards        {} to {}, mean {}, {}{more} different",
                short(r.min),
                short(r.max),
                short(r.mean),
                r.different
            )?;
            match r.successes {
                Some(n) => writeln!(f, ", {n} times {}", short(r.max))?,
                None => writeln!(f)?,
            }
        }
        match (&self.propensities, self.ess) {
            (Some(p), Some(ess)) => {
                writeln!(f, "propensities   {} to {}", short(p.smallest), short(p.largest))?;
                if let Some(sum) = p.sum {
                    writeln!(f, "               one for each action, sum {}", short(sum))?;
                }
                let (mean, error, max) = (short(p.mean_weight), short(p.mean_weight_error), short(p.max_weight));
                writeln!(f, "weights        mean {mean} ± {error}, largest {max} (towards the uniform policy)")?;
                writeln!(f, "effective      {} of {} rounds (towards the uniform policy)", short(ess), self.rows)?;
            }
            _ => writeln!(f, "propensities   none")?,
        }
        if let Some(kappa) = &self.kappa {
            let (estimate, n) = (short(kappa.estimate), kappa.plausible);
            writeln!(f, "kappa          about {estimate} (action {}; {n} may be best)", kappa.action)?;
        }
        let least = if self.duplicates.complete { "" } else { "at least " };
        writeln!(f, "repeated       {least}{} rounds", self.duplicates.count)?;
        let constant = self.constant_features.len();
        writeln!(f, "features       {}, of which {constant} constant", self.features.len())?;
        let [first, second] = self.halves.rounds;
        let (found, tests) = (self.halves.drift.len(), self.halves.tests);
        writeln!(
            f,
            "drift          {found} of {tests} comparisons of the first {first} rounds with the last {second}"
        )?;
        self.write_actions(f)?;
        for w in &self.warnings {
            write!(f, "\n{} [{}]: {}\n  cure: {}\n", w.severity.name(), w.code, w.message, w.cure)?;
        }
        Ok(())
    }
}

impl Diagnosis {
    /// The actions, the most frequent first.
    fn write_actions(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut actions: Vec<_> = self.actions.iter().collect();
        actions.sort_by(|a, b| b.count.total_cmp(&a.count));
        let width = actions.iter().take(SHOWN).map(|a| a.name.chars().count()).max().unwrap_or(0).clamp(6, 40);
        let optional = |v: Option<f64>| v.map_or("-".to_owned(), short);
        writeln!(
            f,
            "\n{:<width$} {:>10} {:>8} {:>11} {:>11} {:>11} {:>11} {:>11}",
            "action", "rounds", "share", "mean reward", "value", "smallest p", "mean weight", "effective"
        )?;
        for a in actions.iter().take(SHOWN) {
            let name: String = a.name.chars().take(40).collect();
            writeln!(
                f,
                "{name:<width$} {:>10} {:>7.2}% {:>11} {:>11} {:>11} {:>11} {:>11}",
                short(a.count),
                100.0 * a.share,
                optional(a.mean_reward),
                optional(a.value),
                optional(a.smallest_propensity),
                optional(a.mean_weight),
                optional(a.ess),
            )?;
        }
        match actions.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            rest => writeln!(f, "… and {rest} more actions"),
        }
    }
}

/// A number in at most five digits.
fn short(v: f64) -> String {
    if v == 0.0 || (v.fract() == 0.0 && v.abs() < 1e9) {
        return format!("{v}");
    }
    match v.abs() {
        a if !(1e-4..1e6).contains(&a) => format!("{v:.3e}"),
        a => {
            let digits = (4 - a.log10().floor() as i32).clamp(0, 8) as usize;
            let text = format!("{v:.digits$}");
            if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
        }
    }
}
