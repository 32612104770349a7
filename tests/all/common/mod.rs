//! The world of a test: a fresh database, fresh index names, and noise on both sides that must never be touched.

pub mod checker;
pub mod elastic;
pub mod gate;
pub mod noise;
pub mod poison;
pub mod pooler;
pub mod process;
pub mod prometheus;
pub mod server;
pub mod template;
pub mod traffic;
pub mod world;

pub use checker::Truth;
pub use gate::Gate;
pub use poison::{Harm, Poison};
pub use pooler::Pooler;
pub use process::{Running, launch, listening, serve, start};
pub use prometheus::Prometheus;
pub use server::Server;
pub use traffic::{OFFERED, Traffic};
pub use world::{Layout, World, environment, eventually};
