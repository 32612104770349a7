//! The three kinds of metrics, each made from its definition. A counter or a histogram finds the global meter at its first use, so an
//! application sets its provider before it opens a [`Catchword`](crate::Catchword).

use std::sync::OnceLock;

use opentelemetry::metrics::{Counter, Histogram, Meter};
use opentelemetry::{KeyValue, global};

/// What a metric is called, and what it means.
#[derive(Debug)]
pub struct Metric {
    /// As Prometheus shows it.
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

/// How a metric's value moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Metric {
    const fn new(kind: Kind, name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
        Metric { name, kind, labels, help }
    }

    /// The base unit that the name ends with.
    pub fn unit(&self) -> &'static str {
        match self.name.trim_end_matches("_total").rsplit('_').next() {
            Some("seconds") => "s",
            Some("bytes") => "By",
            _ => "",
        }
    }
}

/// Counts events of this process.
pub(crate) struct Count {
    pub metric: Metric,
    instrument: OnceLock<Counter<u64>>,
}

impl Count {
    pub const fn new(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Count {
        Count { metric: Metric::new(Kind::Counter, name, labels, help), instrument: OnceLock::new() }
    }

    pub fn add(&self, count: u64, labels: &[KeyValue]) {
        let instrument = self.instrument.get_or_init(|| {
            let Metric { name, help, .. } = self.metric;
            meter().u64_counter(name).with_unit(self.metric.unit()).with_description(help).build()
        });
        instrument.add(count, labels);
    }
}

/// Sorts sizes and durations into buckets.
pub(crate) struct Spread {
    pub metric: Metric,
    bounds: &'static [f64],
    instrument: OnceLock<Histogram<f64>>,
}

impl Spread {
    pub const fn new(name: &'static str, labels: &'static [&'static str], bounds: &'static [f64], help: &'static str) -> Spread {
        Spread { metric: Metric::new(Kind::Histogram, name, labels, help), bounds, instrument: OnceLock::new() }
    }

    pub fn record(&self, value: f64, labels: &[KeyValue]) {
        let instrument = self.instrument.get_or_init(|| {
            let Metric { name, help, .. } = self.metric;
            let meter = meter();
            let builder = meter.f64_histogram(name).with_unit(self.metric.unit()).with_description(help);
            builder.with_boundaries(self.bounds.to_vec()).build()
        });
        instrument.record(value, labels);
    }
}

/// What is so at the moment of the scrape: it is asked for then.
pub(crate) struct Level {
    pub metric: Metric,
}

impl Level {
    pub const fn new(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Level {
        Level { metric: Metric::new(Kind::Gauge, name, labels, help) }
    }

    /// The same for a number that somebody else counts.
    pub const fn counted(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Level {
        Level { metric: Metric::new(Kind::Counter, name, labels, help) }
    }

    /// `ask` is called at each scrape and says each series' value; what it does not name is absent.
    pub fn watch(&self, ask: impl Fn(&mut dyn FnMut(f64, &[KeyValue])) + Send + Sync + 'static) {
        let Metric { name, help, .. } = self.metric;
        let (unit, meter) = (self.metric.unit(), meter());
        if self.metric.kind == Kind::Counter {
            let builder = meter.f64_observable_counter(name).with_unit(unit).with_description(help);
            builder.with_callback(move |observer| ask(&mut |value, labels| observer.observe(value, labels))).build();
        } else {
            let builder = meter.f64_observable_gauge(name).with_unit(unit).with_description(help);
            builder.with_callback(move |observer| ask(&mut |value, labels| observer.observe(value, labels))).build();
        }
    }
}

fn meter() -> Meter {
    global::meter("catchword")
}
