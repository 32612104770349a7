//! Metrics and traces as a collector receives them: a small gRPC server of the test's own stands for it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use catchword::{Error, Stored};
use opentelemetry::trace::{SpanContext, TraceContextExt, TracerProvider};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{MetricsService, MetricsServiceServer};
use opentelemetry_proto::tonic::collector::metrics::v1::{ExportMetricsServiceRequest, ExportMetricsServiceResponse};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use sqlx::PgConnection;
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tracing::Instrument;
use tracing::instrument::WithSubscriber;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;

use crate::common::{Layout, World, eventually, launch};

/// What was received.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<(Vec<ExportMetricsServiceRequest>, Vec<ExportTraceServiceRequest>)>>);

impl Collector {
    async fn start() -> (Collector, SocketAddr) {
        let collector = Collector::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::builder()
            .add_service(MetricsServiceServer::new(collector.clone()))
            .add_service(TraceServiceServer::new(collector.clone()));
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        (collector, address)
    }

    fn metric_names(&self) -> Vec<String> {
        let received = self.0.lock().unwrap();
        let resources = received.0.iter().flat_map(|request| &request.resource_metrics);
        let metrics = resources.flat_map(|resource| &resource.scope_metrics).flat_map(|scope| &scope.metrics);
        metrics.map(|metric| metric.name.clone()).collect()
    }

    fn spans(&self) -> Vec<Span> {
        let received = self.0.lock().unwrap();
        let resources = received.1.iter().flat_map(|request| &request.resource_spans);
        resources.flat_map(|resource| &resource.scope_spans).flat_map(|scope| scope.spans.clone()).collect()
    }

    fn services(&self) -> Vec<String> {
        let received = self.0.lock().unwrap();
        let resources = received.1.iter().flat_map(|request| &request.resource_spans).filter_map(|r| r.resource.as_ref());
        let names = resources.flat_map(|resource| &resource.attributes).filter(|attribute| attribute.key == "service.name");
        names
            .filter_map(|name| match name.value.as_ref()?.value.as_ref()? {
                Value::StringValue(name) => Some(name.clone()),
                _ => None,
            })
            .collect()
    }
}

#[tonic::async_trait]
impl MetricsService for Collector {
    async fn export(&self, request: Request<ExportMetricsServiceRequest>) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.0.lock().unwrap().0.push(request.into_inner());
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(&self, request: Request<ExportTraceServiceRequest>) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.lock().unwrap().1.push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_receives_metrics_and_a_pass_that_points_back_at_the_writers() {
    let (collector, address) = Collector::start().await;
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    for traceparent in [&format!("00-{trace}-00f067aa0ba902b7-01"), "nonsense", &format!("00-{trace}-00f067aa0ba902b7-01")] {
        let insert = "insert into annotation (userid, target_uri, target_uri_normalized) values ('acct:a', 'u', 'u')";
        world.sql(&format!("begin; select set_config('catchword.traceparent', '{traceparent}', true); {insert}; commit")).await;
    }
    let mut command = world.binary();
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"));
    command.env("OTEL_METRIC_EXPORT_INTERVAL", "300").env("OTEL_BSP_SCHEDULE_DELAY", "100");
    let mut worker = launch(&mut command).await;

    let writer = |span: &Span| {
        span.links
            .iter()
            .any(|link| link.trace_id == (0..16).map(|n| u8::from_str_radix(&trace[2 * n..2 * n + 2], 16).unwrap()).collect::<Vec<_>>())
    };
    eventually("a pass points back", async || collector.spans().iter().any(writer)).await;
    let spans = collector.spans();
    let pass = spans.iter().find(|span| writer(span)).unwrap();
    assert_eq!(pass.name, "sync");
    assert_eq!(pass.links.len(), 1, "each writer once, and no nonsense");
    let inside: Vec<&str> = spans.iter().filter(|span| span.parent_span_id == pass.span_id).map(|span| span.name.as_str()).collect();
    for step in ["claim", "look", "compare", "write", "settle"] {
        assert!(inside.contains(&step), "{step} is not in {inside:?}");
    }
    // what only Postgres knows is read before each push; the same names as a scrape has
    for name in [
        "catchword_jobs",
        "catchword_jobs_settled_total",
        "catchword_jobs_scheduled_total",
        "catchword_pass_duration_seconds",
        "catchword_up",
    ] {
        eventually(name, async || collector.metric_names().iter().any(|found| found == name)).await;
    }
    assert!(collector.services().iter().all(|name| name == "catchword"), "{:?}", collector.services());

    worker.signal("-TERM").await;
    assert!(worker.child.wait().await.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_or_nonsense_is_said_and_holds_up_nothing() {
    let world = World::with(Layout { tick: "* * * * * *", ..Layout::default() }).await;
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", taken.local_addr().unwrap());
    let mut command = world.binary();
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1").env("OTEL_METRIC_EXPORT_INTERVAL", "100");
    let mut worker = launch(&mut command).await;
    world.annotate("acct:a", "x").await;
    eventually("it works", async || world.jobs().await == 0).await;
    let said = || worker.lines().iter().filter(|line| line.contains("metrics cannot be pushed")).count();
    eventually("it says so", async || said() > 0).await;
    eventually("some more pushes", async || worker.get(&world, "/healthz").await.0 == 200 && worker.lines().len() > 1).await;
    assert_eq!(said(), 1, "once");
    worker.signal("-TERM").await;
    assert!(worker.child.wait().await.unwrap().success());

    // one that takes connections and never answers: the end of the process waits some seconds and no longer
    let mut command = world.binary();
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", silent);
    let mut worker = launch(&mut command).await;
    worker.signal("-TERM").await;
    assert!(worker.child.wait().await.unwrap().success());

    let refused = world.binary().arg("worker").env("OTEL_EXPORTER_OTLP_ENDPOINT", "not an address").output().await.unwrap();
    let error = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("OTEL_EXPORTER_OTLP_ENDPOINT = \"not an address\" cannot be used; write "), "{error}");
}

/// Keeps the spans of this test's own subscriber.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Kept {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_traced_store_leaves_its_trace_in_the_job_and_a_span_of_its_direct_write() {
    let world = World::new().await;
    let kept = Kept::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(kept.clone()).build();
    // beside a single subscriber, what other tests' threads meet first is taken to interest nobody (tracing-core 0.1)
    let _another = tracing::Dispatch::new(tracing_subscriber::registry());
    let subscriber = tracing_subscriber::registry().with(tracing_opentelemetry::layer().with_tracer(provider.tracer("test")));
    let insert = "insert into annotation (userid, target_uri, target_uri_normalized) values ('acct:a', 'u', 'u') returning id";
    let store = async |request: bool| -> SpanContext {
        let span = if request { tracing::info_span!("request") } else { tracing::Span::none() };
        let stored = world.catchword.store_and_schedule("annotation", async |tx: &mut PgConnection| {
            let id: uuid::Uuid = sqlx::query_scalar(insert).fetch_one(tx).await?;
            Ok::<_, Error>(Stored::new(id, [id]))
        });
        stored.instrument(span.clone()).await.unwrap();
        span.context().span().span_context().clone()
    };
    let request = store(true).with_subscriber(subscriber).await;
    let (trace, span) = (request.trace_id().to_string(), request.span_id().to_string());
    let traceparent: String = world.one("select traceparent from catchword.job where collection = 'annotation'").await;
    assert_eq!(traceparent, format!("00-{trace}-{span}-01"));
    // on a busy machine the direct write may outlast the store
    let direct = || kept.0.lock().unwrap().iter().find(|span| span.name == "direct").cloned();
    eventually("the direct write has ended", async || direct().is_some()).await;
    assert_eq!(direct().unwrap().parent_span_id, request.span_id());

    // without OpenTelemetry nothing is set
    store(false).await;
    let without = "select count(*) from catchword.job where collection = 'annotation' and traceparent is null";
    assert_eq!(world.one::<i64>(without).await, 1);
}
