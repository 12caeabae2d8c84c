//! How many files and connections the system lets the process have open.

use std::fs;

/// What the log and the policies need beside connections.
const OTHERS: usize = 64;

/// As many connections as there can be: without a free descriptor the log could not begin its next segment.
pub(crate) fn connections(wanted: usize) -> usize {
    // Where it is not told, the system's own limit must do.
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    limit(&limits).map_or(wanted, |limit| wanted.min(limit.saturating_sub(OTHERS).max(1)))
}

/// The soft limit in `/proc/self/limits`; none where there is none.
fn limit(limits: &str) -> Option<usize> {
    limits.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_read() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max processes             95944                95944                processes\n\
                    Max open files            1024                 524288               files\n";
        assert_eq!(limit(text), Some(1024));
        assert_eq!(limit("Max open files            unlimited            unlimited            files\n"), None);
        assert_eq!(limit(""), None);
        assert!(connections(1) == 1 && connections(usize::MAX) > 1);
    }
}
