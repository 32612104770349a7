//! What Linux knows of this process. Elsewhere the series are absent.

use std::fs::read_to_string;

/// Clock ticks per second in `/proc`: 100 on every Linux, whatever the kernel's own clock.
const TICKS: f64 = 100.0;

/// Memory held, in bytes.
pub(super) fn resident_bytes() -> Option<f64> {
    let status = read_to_string("/proc/self/status").ok()?;
    let kibibytes: f64 = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024.0)
}

/// Time computed, in seconds.
pub(super) fn cpu_seconds() -> Option<f64> {
    let stat = read_to_string("/proc/self/stat").ok()?;
    // the program's name comes second, in brackets, and may hold anything
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |n: usize| fields.get(n)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_and_computes() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 100_000.0));
        let mut sum = 0_u64;
        while cpu_seconds().is_some_and(|seconds| seconds == 0.0) {
            sum = (0..1_000_000_u64).fold(sum, u64::wrapping_add);
        }
        assert!(cpu_seconds().is_some_and(|seconds| seconds > 0.0), "{sum}");
    }
}
