//! The world of a test: a fresh database, fresh index names, and noise on both sides that must never be touched.

mod checker;
mod elastic;
mod gate;
mod noise;
mod poison;
mod process;
mod prometheus;
mod server;
mod traffic;
mod world;

pub use gate::Gate;
pub use poison::{Harm, Poison};
pub use process::{Running, launch, start};
pub use prometheus::Prometheus;
pub use server::Server;
pub use traffic::{OFFERED, Traffic};
pub use world::{Layout, World, environment, eventually};
