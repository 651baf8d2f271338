//! A future that goes on to its end by itself if whoever polls it drops it. Most are polled to
//! their end: those cost no task.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

pub(super) struct Carried<F: Future<Output: Send> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send> + Send + 'static> Carried<F> {
    pub(super) fn new(future: F) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for Carried<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for Carried<F> {
    fn drop(&mut self) {
        // Without a runtime it could not go on anyway.
        if let (Some(future), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(future);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn it_goes_on_if_it_is_dropped() {
        let (tell, told) = oneshot::channel();
        let mut carried = Carried::new(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            tell.send(7)
        });
        assert!((&mut carried).now_or_never().is_none());
        drop(carried);
        assert_eq!(told.await, Ok(7));
        assert_eq!(Carried::new(async { 8 }).await, 8);
    }
}
