//! Places where a test may end the process as kill -9 would: at once, with nothing tidied up. Only with the feature `crash-points`,
//! which no release has; without it a point is nothing at all.

/// Ends the process here if the environment variable CATCHWORD_CRASH names this point.
#[cfg(feature = "crash-points")]
pub(crate) fn point(name: &str) {
    if std::env::var("CATCHWORD_CRASH").is_ok_and(|wanted| wanted == name) {
        std::process::abort();
    }
}

#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub(crate) fn point(_name: &str) {}
