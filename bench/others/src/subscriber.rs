//! What hears of every call.

use std::io;

/// Spans go to a collector over OTLP, in batches, as they do by default.
#[cfg(not(feature = "console"))]
pub fn install(service: &'static str) -> io::Result<()> {
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing_subscriber::filter::LevelFilter;
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;

    let sink = std::env::var("BENCH_SINK").map_err(|_| {
        io::Error::other("BENCH_SINK must name the collector; `ddbx-bench rpc` starts one")
    })?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("http://{sink}/v1/traces"))
        .build()
        .map_err(io::Error::other)?;
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(Resource::builder().with_service_name(service).build())
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer(service));
    tracing_subscriber::registry().with(LevelFilter::INFO).with(layer).init();
    // It ends with the process.
    std::mem::forget(provider);
    Ok(())
}

/// The console's server waits for somebody to look, at a port that the system chooses.
#[cfg(feature = "console")]
pub fn install(_: &'static str) -> io::Result<()> {
    console_subscriber::ConsoleLayer::builder().server_addr(([127, 0, 0, 1], 0)).init();
    Ok(())
}
