//! With an OpenTelemetry subscriber `context::current()` is the context of the
//! request that is being handled; without one it is a new one.

use std::time::{Duration, Instant};

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tarpc::context::{self, Context};
use tarpc::trace::TraceId;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::settings::{connect, in_every_setting};

/// A subscriber that gives every request a span, and keeps none.
pub fn subscriber() -> tracing::Dispatch {
    let tracer = SdkTracerProvider::builder().build().tracer("as_tarpc");
    let layer = tracing_opentelemetry::layer().with_tracer(tracer);
    tracing::Dispatch::new(tracing_subscriber::registry().with(layer))
}

/// What a handler knows of where it comes from: the trace, and what is left until its
/// deadline.
type Origin = (String, Duration);

fn origin(context: &Context) -> Origin {
    let left = context.deadline.saturating_duration_since(Instant::now());
    (context.trace_id().to_string(), left)
}

#[tarpc::service]
trait Back {
    async fn origin() -> Origin;
    async fn never();
}

#[derive(Clone)]
struct End;

impl Back for End {
    async fn origin(self, context: Context) -> Origin {
        origin(&context)
    }

    async fn never(self, _: Context) {
        std::future::pending().await
    }
}

#[tarpc::service]
trait Front {
    async fn origins() -> (Origin, Origin);
    async fn never() -> bool;
}

#[derive(Clone)]
struct Between<Stub> {
    back: BackClient<Stub>,
}

impl<Stub: BackStub + Clone + Send + Sync + 'static> Front for Between<Stub> {
    async fn origins(self, context: Context) -> (Origin, Origin) {
        (origin(&context), self.back.origin(context::current()).await.unwrap())
    }

    async fn never(self, _: Context) -> bool {
        self.back.never(context::current()).await.is_ok()
    }
}

/// A handler calls another one with `context::current()`. Is that still its caller's
/// context? The same in every setting, and this is what it is.
pub async fn current_context() -> Vec<String> {
    let [(_, expected), wrapped @ ..] = in_every_setting!(|world| {
        let front = world.process("front");
        let back = BackClient::from(connect!(front, world.process("back"), End.serve()));
        let between = Between { back }.serve();
        let client = FrontClient::from(connect!(world.process("client"), front, between));
        let (origins, late) =
            tokio::join!(client.origins(world.soon()), client.never(world.soon()));
        let ((front_trace, front_left), (back_trace, back_left)) = origins.unwrap();
        let no_trace = TraceId::default().to_string();
        vec![
            format!("in time: {}", front_left > Duration::ZERO && front_left <= world.time()),
            format!("nested in time: {}", back_left > Duration::ZERO),
            format!("same trace: {}", front_trace == back_trace && front_trace != no_trace),
            format!("same deadline: {}", back_left <= front_left),
            // Inner and outer call end at the same time: either may be the first.
            format!("too late: {}", !late.unwrap_or(false)),
        ]
    });
    for (setting, seen) in wrapped {
        assert_eq!(seen, expected, "{setting}");
    }
    expected
}
