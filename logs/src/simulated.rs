//! Logs as CSV.
//!
//! One context per round (shared): `action,reward,propensity,x0,x1,…`, a line per round. One context per action: the
//! long table `round,action,chosen,reward,propensity,x0,x1,…`, a line per action of a round; reward and propensity
//! stand in the line of the chosen action and are empty in the others. Numbers are written in the shortest form that
//! reads back to the same bits.

use std::io::{self, Write};

use neuralcb::{Encoding, LoggedData};

/// Writes a log as CSV.
pub fn write_log(log: &LoggedData, to: &mut dyn Write) -> io::Result<()> {
    let contexts = log.contexts();
    let layout = contexts.layout();
    let long = layout.encoding == Encoding::PerAction;
    write!(to, "{}", if long { "round,action,chosen,reward,propensity" } else { "action,reward,propensity" })?;
    for j in 0..layout.dim {
        write!(to, ",x{j}")?;
    }
    writeln!(to)?;
    for t in 0..log.n_rounds() {
        let round = log.round(t);
        let outcome = match round.propensity {
            Some(p) => format!("{},{p}", round.reward),
            None => format!("{},", round.reward),
        };
        if !long {
            write!(to, "{},{outcome}", round.chosen.action)?;
            write_features(round.chosen.x, to)?;
            continue;
        }
        for place in 0..contexts.pairs(t).len() {
            let pair = contexts.pair(t, place);
            let chosen = pair.action == round.chosen.action;
            let outcome = if chosen { &outcome } else { "," };
            write!(to, "{t},{},{},{outcome}", pair.action, u8::from(chosen))?;
            write_features(pair.x, to)?;
        }
    }
    Ok(())
}

fn write_features(x: &[f32], to: &mut dyn Write) -> io::Result<()> {
    for v in x {
        write!(to, ",{v}")?;
    }
    writeln!(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use neuralcb::{Contexts, Eligible, Layout};

    fn text(encoding: Encoding, x: Vec<f32>, eligible: Eligible) -> String {
        let contexts = Contexts::new(Layout { dim: 2, n_actions: 2, encoding }, x, eligible).unwrap();
        let log = LoggedData::new(contexts, vec![1, 0], vec![0.25, -1.0], Some(vec![0.5, 1.0])).unwrap();
        let mut out = Vec::new();
        write_log(&log, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_shared_context_is_one_line_per_round() {
        assert_eq!(
            text(Encoding::Disjoint, vec![0.1, 2.0, 3.0, -4.5], Eligible::All),
            "action,reward,propensity,x0,x1\n1,0.25,0.5,0.1,2\n0,-1,1,3,-4.5\n"
        );
    }

    #[test]
    fn own_contexts_are_one_line_per_eligible_action() {
        let eligible = Eligible::Some { offsets: vec![0, 2, 3], actions: vec![0, 1, 0] };
        assert_eq!(
            text(Encoding::PerAction, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], eligible),
            "round,action,chosen,reward,propensity,x0,x1\n0,0,0,,,1,2\n0,1,1,0.25,0.5,3,4\n1,0,1,-1,1,5,6\n"
        );
    }
}
