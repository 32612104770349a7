//! The trace of the request that wrote a row travels in its job, so that a pass can point back at it: W3C's `traceparent`.

use std::collections::HashSet;

use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;
#[cfg(feature = "otlp")]
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// A pass points back at this many requests at most: a span with thousands of links is shown by nobody.
const MOST: usize = 32;

/// The present span as a `traceparent`, if it is traced and sampled.
pub(crate) fn current() -> Option<String> {
    #[cfg(feature = "otlp")]
    let context = Span::current().context();
    #[cfg(not(feature = "otlp"))]
    let context = opentelemetry::Context::current();
    let span = context.span().span_context().clone();
    (span.is_valid() && span.is_sampled()).then(|| format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), span.trace_flags().to_u8()))
}

/// What somebody wrote into a job. Anyone may have: what does not look right is no trace.
pub(crate) fn parse(text: &str) -> Option<SpanContext> {
    let parts: Vec<&str> = text.split('-').collect();
    let [version, trace, span, flags] = parts[..] else { return None };
    let is_hex = |text: &str, length: usize| text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if version != "00" || !is_hex(trace, 32) || !is_hex(span, 16) || !is_hex(flags, 2) {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?);
    let context = SpanContext::new(TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?, flags, true, TraceState::default());
    context.is_valid().then_some(context)
}

/// The requests that a pass points back at: the first of them, each once.
#[derive(Debug, Default)]
pub(crate) struct Links(HashSet<String>);

impl Links {
    /// Lets `span` point back at these.
    pub fn add<'t>(&mut self, span: &Span, traceparents: impl Iterator<Item = &'t str>) {
        if span.is_disabled() {
            return;
        }
        for text in traceparents {
            if self.0.len() >= MOST {
                return;
            }
            if !self.0.contains(text)
                && let Some(context) = parse(text)
            {
                self.0.insert(text.to_owned());
                #[cfg(feature = "otlp")]
                span.add_link(context);
                #[cfg(not(feature = "otlp"))]
                let _ = context;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_taken_only_if_it_looks_right() {
        let right = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = parse(right).unwrap();
        assert_eq!(context.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span_id().to_string(), "00f067aa0ba902b7");
        assert!(context.is_remote() && context.is_sampled());
        for wrong in [
            "",
            "00",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-é",
            "'; drop table catchword; --",
        ] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn no_span_is_no_traceparent() {
        assert_eq!(current(), None);
    }
}
