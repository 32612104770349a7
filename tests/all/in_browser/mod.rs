//! The console, in a real browser.

mod browser;
mod desk;
mod down;
mod hostile;
mod pictures;
mod plain;
mod rights;
mod story;
