//! Where the processor's time went: the servers' and our own, read from /proc. Ratios of rates suffer from whoever else is on the
//! machine; seconds of processor time per document do not.

use std::fs;

use crate::world::Bench;

/// Seconds of processor time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    pub postgres: f64,
    pub elasticsearch: f64,
    pub own: f64,
}

/// The kernel counts in hundredths of a second.
const TICKS: f64 = 100.0;

impl Bench {
    /// What has been used up to now. Nothing of a server on another machine.
    pub fn cpu(&self) -> Cpu {
        let (postgres, elasticsearch) = self.servers;
        Cpu { postgres: tree(postgres), elasticsearch: tree(elasticsearch), own: ticks(std::process::id()).map_or(0.0, |t| t.own) }
    }
}

impl Cpu {
    pub fn since(self, before: Cpu) -> Cpu {
        Cpu {
            postgres: self.postgres - before.postgres,
            elasticsearch: self.elasticsearch - before.elasticsearch,
            own: self.own - before.own,
        }
    }

    pub fn add(&mut self, more: Cpu) {
        self.postgres += more.postgres;
        self.elasticsearch += more.elasticsearch;
        self.own += more.own;
    }

    /// Microseconds for each of so many.
    pub fn per(self, count: f64) -> String {
        let each = |seconds: f64| seconds / count * 1e6;
        let Cpu { postgres, elasticsearch, own } = self;
        let all = each(postgres + elasticsearch + own);
        format!("{all:.0} µs ({:.0} elasticsearch, {:.0} postgres, {:.0} own)", each(elasticsearch), each(postgres), each(own))
    }
}

struct Ticks {
    parent: u32,
    own: f64,
    /// Of children that have ended.
    ended: f64,
}

fn ticks(pid: u32) -> Option<Ticks> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // the name may hold blanks and brackets: what counts begins behind the last one
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |n: usize| fields.get(n)?.parse::<f64>().ok();
    let seconds = |a: usize, b: usize| Some((number(a)? + number(b)?) / TICKS);
    Some(Ticks { parent: number(1)? as u32, own: seconds(11, 12)?, ended: seconds(13, 14)? })
}

/// Seconds that one process has used.
pub fn used(pid: u32) -> f64 {
    ticks(pid).map_or(0.0, |ticks| ticks.own)
}

pub fn parent(pid: u32) -> Option<u32> {
    Some(ticks(pid)?.parent)
}

/// A process and its children.
fn tree(root: u32) -> f64 {
    let Some(of_root) = ticks(root) else { return 0.0 };
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let children = pids.filter_map(ticks).filter(|ticks| ticks.parent == root);
    of_root.own + of_root.ended + children.map(|ticks| ticks.own + ticks.ended).sum::<f64>()
}
