//! Labelled places and watched values in user code.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use ddbx_protocol::{EventKind, Gate};
use ddbx_satellite::driver::{Captured, stands};
use serde_json::{Map, Value};

use crate::control;

/// Passes a labelled place: a breakpoint `process:point(label)` stops here. The
/// values are looked at only if one does; its condition sees them as `args`. Outside
/// a control, or without a session, it does nothing.
///
/// ```
/// # async fn reserve(item: &str) {
/// # let left = 1;
/// ddbx::point!("looked", item = item, left = left).await;
/// # }
/// ```
#[macro_export]
macro_rules! point {
    ($label:expr $(, $name:ident = $value:expr)* $(,)?) => {
        $crate::__private::point($label, || {
            $crate::__private::values([$((stringify!($name), $crate::__private::value(&$value))),*])
        })
    };
}

/// [`point!`] for code that is not async: it blocks the thread while it is held.
#[macro_export]
macro_rules! point_blocking {
    ($($point:tt)*) => {
        $crate::__private::block_on($crate::point!($($point)*))
    };
}

/// Shows a value of this process in `ddbx watch`, and to conditions as
/// `watch.name`. Outside a control, or without a session, it does nothing.
///
/// ```
/// # let left = 3;
/// ddbx::watch!(stock_left = left);
/// ```
#[macro_export]
macro_rules! watch {
    ($($name:ident = $value:expr),+ $(,)?) => {
        $($crate::__private::watch(stringify!($name), || $crate::__private::value(&$value));)+
    };
}

#[doc(hidden)]
pub fn point<F: FnOnce() -> Value>(
    label: &str,
    values: F,
) -> impl Future<Output = ()> + Send + use<F> {
    let passing = control::current().map(|control| {
        let controls = control.process().controls();
        let label = controls.passed(label, control.satellite().process());
        let gate = || Gate::Point(label.clone());
        let redact = |value| controls.redact(value);
        let capture = || Captured { args: Some(redact(values())), result: None };
        (control.arrive(gate, capture), label)
    });
    async move {
        if let Some((at_gate, label)) = passing {
            let control = at_gate.control().clone();
            let call = || control.call();
            let passes = || EventKind::Point { control: control.id(), call: call(), label };
            at_gate.pass(passes).await;
        }
    }
}

#[doc(hidden)]
pub fn watch(name: &str, value: impl FnOnce() -> Value) {
    if let Some(control) = control::current() {
        control.process().controls().watch(name, value());
    }
}

#[doc(hidden)]
pub fn values<const N: usize>(values: [(&str, Value); N]) -> Value {
    let fields = values.into_iter().map(|(name, value)| (name.to_owned(), value));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// Waits on this thread, also inside a runtime, where tokio's own way would panic.
#[doc(hidden)]
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => {
                stands();
                thread::park();
            }
        }
    }
}
