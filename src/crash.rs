//! Places where a test may end the process as kill -9 would: at once, with nothing tidied up. Only with the feature `crash-points`,
//! which no release has; without it a point is nothing at all. Or where a pass may panic, once.

#[cfg(feature = "crash-points")]
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the process here if the environment variable CATCHWORD_CRASH names this point; panics the first time if CATCHWORD_PANIC does.
#[cfg(feature = "crash-points")]
pub(crate) fn point(name: &str) {
    if std::env::var("CATCHWORD_CRASH").is_ok_and(|wanted| wanted == name) {
        std::process::abort();
    }
    if std::env::var("CATCHWORD_PANIC").is_ok_and(|wanted| wanted == name) && !PANICKED.swap(true, Ordering::Relaxed) {
        std::panic::resume_unwind(Box::new(name.to_owned()));
    }
}

/// Panics if the environment variable CATCHWORD_PANIC_AT names one of these keys, each time.
#[cfg(feature = "crash-points")]
pub(crate) fn key(keys: &[&str]) {
    if std::env::var("CATCHWORD_PANIC_AT").is_ok_and(|wanted| keys.contains(&wanted.as_str())) {
        std::panic::resume_unwind(Box::new("a key that panics".to_owned()));
    }
}

#[cfg(feature = "crash-points")]
static PANICKED: AtomicBool = AtomicBool::new(false);

#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub(crate) fn point(_name: &str) {}

#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub(crate) fn key(_keys: &[&str]) {}
