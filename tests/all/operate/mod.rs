//! What operators see and do.

pub mod check;
pub mod cli;
pub mod commands;
pub mod dead_and_paused;
pub mod doctor;
pub mod held_back;
pub mod history;
pub mod http;
pub mod init;
pub mod logins;
pub mod logs;
pub mod metrics;
pub mod otlp;
pub mod roles;
pub mod row_security;
pub mod status;
pub mod watch;
pub mod watched;
pub mod wrong_setups;
