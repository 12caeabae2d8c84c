//! Names and settings of an off-policy evaluation.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::tape::Tape;
use crate::error::{Error, positive};

/// An estimator of the target policy's value. With w = π(a|x)/μ(a|x), e = r − q̂(x, a), v̂ = Σ_a π(a|x) q̂(x, a) and
/// ⟨·⟩ the mean over the log:
///
/// | name | V̂ | reference |
/// |---|---|---|
/// | `dm` | ⟨v̂⟩ | direct method |
/// | `ips` | ⟨w r⟩ | Horvitz & Thompson 1952 |
/// | `ips-clip` | ⟨min(w, clip) r⟩ | Strehl et al. 2010 |
/// | `snips` | ⟨w r⟩ / ⟨w⟩ | Swaminathan & Joachims 2015 |
/// | `dr` | ⟨v̂ + w e⟩ | Dudík et al. 2011 |
/// | `dr-clip` | ⟨v̂ + min(w, clip) e⟩ | |
/// | `sndr` | ⟨v̂⟩ + ⟨w e⟩ / ⟨w⟩ | |
/// | `switch-dr` | ⟨v̂ + 1[w ≤ switch] w e⟩ | Wang et al. 2017 |
/// | `dros` | ⟨v̂ + (λ w / (w² + λ)) e⟩, λ = `dros` | Su et al. 2020 |
/// | `sg-ips` | ⟨(w / (1 − λ + λ w)) r⟩, λ = `sg` | Metelli et al. 2021 |
/// | `sg-dr` | ⟨v̂ + (w / (1 − λ + λ w)) e⟩, λ = `sg` | |
/// | `cressie-read` | the likeliest value if E\[w\] = 1 (empirical likelihood) | Karampatziakis et al. 2020 |
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// The reward model alone.
    Dm,
    /// Inverse propensity scores.
    Ips,
    /// IPS with weights cut at `clip`.
    IpsClip,
    /// Self-normalised IPS.
    Snips,
    /// Doubly robust.
    Dr,
    /// DR with weights cut at `clip`.
    DrClip,
    /// Self-normalised DR.
    Sndr,
    /// DR that trusts the model alone where the weight is above `switch`.
    SwitchDr,
    /// DR with optimistic shrinkage.
    Dros,
    /// Sub-Gaussian IPS.
    SgIps,
    /// Sub-Gaussian DR.
    SgDr,
    /// Empirical likelihood by the Cressie–Read divergence.
    CressieRead,
}

/// A confidence interval.
///
/// | name | holds | rests on |
/// |---|---|---|
/// | `normal` | for many rounds | the central limit theorem (delta method for ratios) |
/// | `student-t` | for many rounds, more careful with few | the same |
/// | `bootstrap` | for many rounds | Poisson bootstrap, percentiles |
/// | `hoeffding` | for any n | the range of w·r |
/// | `bernstein` | for any n | the range and the spread seen (Maurer & Pontil 2009) |
/// | `clopper-pearson` | where rewards are rare | Σ w r / max w as successes among n / max w trials |
/// | `cressie-read` | for many rounds | E\[w\] = 1 and the range of rewards |
/// | `sequence` | for all n at once, also if the log is adaptive or looked at often | the range of rewards |
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interval {
    /// Normal approximation.
    Normal,
    /// Student's t.
    StudentT,
    /// Percentiles of the Poisson bootstrap.
    Bootstrap,
    /// Hoeffding's inequality.
    Hoeffding,
    /// The empirical Bernstein inequality.
    Bernstein,
    /// Clopper and Pearson's, on Σ w r / max w successes. The variance of w r is at most max w·V − V², of which this
    /// takes max w·(V − V²): the same for small V alone.
    ClopperPearson,
    /// Empirical likelihood by the Cressie–Read divergence.
    CressieRead,
    /// A confidence sequence: valid at all rounds at once.
    Sequence,
}

impl Estimator {
    /// All estimators, in the order of reports.
    pub const ALL: [Estimator; 12] = {
        use Estimator::*;
        [Dm, Ips, IpsClip, Snips, Dr, DrClip, Sndr, SwitchDr, Dros, SgIps, SgDr, CressieRead]
    };

    const NAMES: [&str; 12] = [
        "dm",
        "ips",
        "ips-clip",
        "snips",
        "dr",
        "dr-clip",
        "sndr",
        "switch-dr",
        "dros",
        "sg-ips",
        "sg-dr",
        "cressie-read",
    ];

    /// Its name in settings and reports.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether it needs a reward model's q and v.
    pub fn needs_model(self) -> bool {
        use Estimator::*;
        matches!(self, Dm | Dr | DrClip | Sndr | SwitchDr | Dros | SgDr)
    }
}

impl Interval {
    /// All intervals, in the order of reports.
    pub const ALL: [Interval; 8] = {
        use Interval::*;
        [Normal, StudentT, Bootstrap, Hoeffding, Bernstein, ClopperPearson, CressieRead, Sequence]
    };

    const NAMES: [&str; 8] =
        ["normal", "student-t", "bootstrap", "hoeffding", "bernstein", "clopper-pearson", "cressie-read", "sequence"];

    /// Its name in settings and reports.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl fmt::Display for Estimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Estimator {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let known = "dm, ips, ips-clip, snips, dr, dr-clip, sndr, switch-dr, dros, sg-ips, sg-dr, cressie-read";
        let unknown = || Error::Name { what: "estimator", known, got: name.to_owned() };
        Self::ALL.into_iter().find(|e| e.name() == name).ok_or_else(unknown)
    }
}

impl FromStr for Interval {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let known = "normal, student-t, bootstrap, hoeffding, bernstein, clopper-pearson, cressie-read, sequence";
        let unknown = || Error::Name { what: "interval", known, got: name.to_owned() };
        Self::ALL.into_iter().find(|i| i.name() == name).ok_or_else(unknown)
    }
}

/// Settings of an off-policy evaluation.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `estimators` | all | what to estimate with | |
/// | `intervals` | all | what to bound with | |
/// | `confidence` | 0.95 | 1 − δ: intervals err with δ/2 on each side, lower bounds with δ | in (0, 1) |
/// | `clip` | 10 | `ips-clip`, `dr-clip`: weights are cut at it; ∞ cuts none | > 0 |
/// | `switch` | 10 | `switch-dr`: above this weight the model alone; 0 is `dm`, ∞ is `dr` | ≥ 0 |
/// | `dros` | 100 | `dros`: λ of the shrinkage; 0 is `dm`, ∞ is `dr` | ≥ 0 |
/// | `sg` | 0.1 | `sg-ips`, `sg-dr`: λ; 0 leaves the weights as they are, 1 makes them all 1 | in \[0, 1\] |
/// | `x_max` | from the log | `hoeffding`, `bernstein`: bound of a round's \|w r\| | > 0 |
/// | `reward_range` | from the log | least and greatest reward possible, for `cressie-read`, … | least < greatest |
/// | `replicates` | 200 | bootstrap replicates | 20 to 1,000,000 |
/// | `seed` | 0 | seed of the bootstrap | |
/// | `estimated_propensities` | false | the propensities were estimated, which a warning repeats | |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OpeConfig {
    /// What to estimate with.
    pub estimators: Vec<Estimator>,
    /// What to bound with.
    pub intervals: Vec<Interval>,
    /// 1 − δ.
    pub confidence: f64,
    /// Weights of `ips-clip` and `dr-clip` are cut at it.
    pub clip: f64,
    /// Above this weight `switch-dr` trusts the model alone.
    pub switch: f64,
    /// λ of `dros`.
    pub dros: f64,
    /// λ of `sg-ips` and `sg-dr`.
    pub sg: f64,
    /// Bound of |w r|.
    pub x_max: Option<f64>,
    /// Least and greatest reward possible.
    pub reward_range: Option<[f64; 2]>,
    /// Bootstrap replicates.
    pub replicates: usize,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// Whether the propensities behind the weights were estimated from the log.
    pub estimated_propensities: bool,
}

impl Default for OpeConfig {
    fn default() -> Self {
        OpeConfig {
            estimators: Estimator::ALL.to_vec(),
            intervals: Interval::ALL.to_vec(),
            confidence: 0.95,
            clip: 10.0,
            switch: 10.0,
            dros: 100.0,
            sg: 0.1,
            x_max: None,
            reward_range: None,
            replicates: 200,
            seed: 0,
            estimated_propensities: false,
        }
    }
}

impl OpeConfig {
    /// Refuses settings out of range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let inside = |name, range, got, ok: bool| if ok { Ok(()) } else { Err(Error::Param { name, range, got }) };
        inside("confidence", "in (0, 1)", self.confidence, self.confidence > 0.0 && self.confidence < 1.0)?;
        inside("clip", "a number > 0, or infinite", self.clip, self.clip > 0.0)?;
        inside("switch", "a number >= 0, or infinite", self.switch, self.switch >= 0.0)?;
        inside("dros", "a number >= 0, or infinite", self.dros, self.dros >= 0.0)?;
        inside("sg", "in [0, 1]", self.sg, (0.0..=1.0).contains(&self.sg))?;
        self.x_max.map_or(Ok(()), |x_max| positive("x_max", x_max))?;
        if let Some([low, high]) = self.reward_range {
            let ok = low < high && low.is_finite() && high.is_finite();
            inside("reward_range", "two finite numbers, the least reward first", low, ok)?;
        }
        let replicates = (20..=1_000_000).contains(&self.replicates);
        inside("replicates", "between 20 and 1,000,000", self.replicates as f64, replicates)
    }

    /// Keeps all settings.
    pub(crate) fn keep(&mut self, tape: &mut Tape<'_>) -> Result<(), Error> {
        let place = |tape: &mut Tape<'_>, place: &mut u64, of: usize| tape.number(place, of as u64 - 1);
        let mut estimators: Vec<u64> = self.estimators.iter().map(|&e| e as u64).collect();
        tape.list(&mut estimators, |tape, at| place(tape, at, Estimator::ALL.len()))?;
        self.estimators = estimators.into_iter().map(|at| Estimator::ALL[at as usize]).collect();
        let mut intervals: Vec<u64> = self.intervals.iter().map(|&i| i as u64).collect();
        tape.list(&mut intervals, |tape, at| place(tape, at, Interval::ALL.len()))?;
        self.intervals = intervals.into_iter().map(|at| Interval::ALL[at as usize]).collect();
        for number in [&mut self.confidence, &mut self.clip, &mut self.switch, &mut self.dros, &mut self.sg] {
            tape.double(number)?;
        }
        tape.option(&mut self.x_max, |tape, bound| tape.double(bound))?;
        tape.option(&mut self.reward_range, |tape, ends| ends.iter_mut().try_for_each(|end| tape.double(end)))?;
        let mut replicates = self.replicates as u64;
        tape.number(&mut replicates, u64::from(u32::MAX))?;
        self.replicates = replicates as usize;
        tape.number(&mut self.seed, u64::MAX)?;
        tape.flag(&mut self.estimated_propensities)
    }

    pub(crate) fn wants(&self, interval: Interval) -> bool {
        self.intervals.contains(&interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_settings_file() {
        for estimator in Estimator::ALL {
            assert_eq!(serde_json::to_value(estimator).unwrap(), estimator.name());
            assert_eq!(estimator.name().parse::<Estimator>().unwrap(), estimator);
        }
        for interval in Interval::ALL {
            assert_eq!(serde_json::to_value(interval).unwrap(), interval.name());
            assert_eq!(interval.name().parse::<Interval>().unwrap(), interval);
        }
        let unknown = "ipw".parse::<Estimator>().unwrap_err().to_string();
        assert!(unknown.starts_with("unknown estimator `ipw`: use one of dm, ips, "), "{unknown}");
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let refuse = |c: OpeConfig| c.check().unwrap_err().to_string();
        assert_eq!(
            refuse(OpeConfig { confidence: 1.0, ..Default::default() }),
            "`confidence` must be in (0, 1), got 1"
        );
        assert_eq!(refuse(OpeConfig { sg: 1.5, ..Default::default() }), "`sg` must be in [0, 1], got 1.5");
        assert!(refuse(OpeConfig { clip: f64::NAN, ..Default::default() }).starts_with("`clip`"));
        assert!(
            refuse(OpeConfig { reward_range: Some([1.0, 0.0]), ..Default::default() }).starts_with("`reward_range`")
        );
        assert!(OpeConfig { switch: f64::INFINITY, ..Default::default() }.check().is_ok());
    }
}
