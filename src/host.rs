//! This machine.

/// The name of this machine, for people.
pub(crate) fn host() -> String {
    let name = std::env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    name.map_or_else(|| "unknown".into(), |name| name.trim().to_owned())
}
