//! Whether the memory that work will need is there, asked before the work: an allocation that fails ends the process.

use std::fs;

use neuralcb::{Layout, Learner, ModelConfig, Seed};

use crate::policy::PolicyError;

/// Refuses work that needs more bytes than are free. Where the system does not tell what is free, nothing is refused.
pub(crate) fn check(need: u128, what: &'static str, cure: &'static str) -> Result<(), PolicyError> {
    match free() {
        Some(free) if need > u128::from(free) => {
            Err(PolicyError::Memory { what, need: shown(need), free: shown(free.into()), cure })
        }
        _ => Ok(()),
    }
}

/// A learner, if its numbers have room.
pub(crate) fn learner(config: &ModelConfig, layout: Layout, seed: Seed) -> Result<Box<dyn Learner>, PolicyError> {
    let need = config.n_numbers(layout).saturating_mul(8);
    check(need, "the model", "choose another algorithm, or fewer features or actions (--features, --ignore)")?;
    Ok(config.learner(layout, seed)?)
}

/// Bytes that the process may still take. In builds with debug assertions, as tests are, `NEURALCB_FREE` says it.
fn free() -> Option<u64> {
    let said = cfg!(debug_assertions).then(|| std::env::var("NEURALCB_FREE").ok()?.parse().ok()).flatten();
    said.or_else(left)
}

/// What the machine has free, and what its limits leave.
#[cfg(target_os = "linux")]
fn left() -> Option<u64> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let kilobytes = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|n| n * 1024)
    };
    let machine = kilobytes(&read("/proc/meminfo")?, "MemAvailable:");
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    let group = || Some(number("/sys/fs/cgroup/memory.max")?.saturating_sub(number("/sys/fs/cgroup/memory.current")?));
    let process = || {
        let limits = read("/proc/self/limits")?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
        let most: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(most.saturating_sub(kilobytes(&read("/proc/self/status")?, "VmSize:")?))
    };
    [machine, group(), process()].into_iter().flatten().min()
}

#[cfg(not(target_os = "linux"))]
fn left() -> Option<u64> {
    None
}

fn shown(bytes: u128) -> String {
    const UNITS: [(u128, &str); 4] =
        [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match UNITS.into_iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", bytes as f64 / size as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_beyond_any_memory_is_refused_with_need_and_cure() {
        if free().is_none() {
            println!("skipped: this system does not tell its free memory");
            return;
        }
        check(1 << 10, "the model", "").unwrap();
        let refused = check(2_400_000_000_000_000, "the model", "choose fewer features").unwrap_err().to_string();
        assert!(refused.starts_with("the model needs 2400.0 TB of memory, and "), "{refused}");
        assert!(refused.ends_with(" are free: choose fewer features"), "{refused}");
    }

    #[test]
    fn bytes_are_shown_in_units() {
        assert_eq!([12, 1500, 2_500_000, 1_300_000_000].map(shown), ["12 bytes", "1.5 kB", "2.5 MB", "1.3 GB"]);
    }
}
