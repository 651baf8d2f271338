//! Channels with one receiver: `tokio::sync::mpsc`. In a replay it gets messages of the
//! same senders in the same order; senders outside controls count as one.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let (sender, mut receiver) = ddbx::sync::mpsc::channel(8);
//! ddbx::spawn("sender", async move { sender.send("hello").await });
//! assert_eq!(receiver.recv().await, Some("hello"));
//! assert_eq!(receiver.recv().await, None);
//! # }
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::future::{self, Future};
use std::task::{Context, Poll};

use ddbx_protocol::{ControlId, Shared};
use tokio::sync::mpsc;

pub use tokio::sync::mpsc::error;
use tokio::sync::mpsc::error::{SendError, TryRecvError, TrySendError};

use super::{Entry, Refused};
use crate::control;

/// A channel for so many messages: when it is full, senders wait.
///
/// # Panics
/// If that is zero.
pub fn channel<T>(messages: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel(messages);
    (Sender(sender), Receiver(Inbox::new(receiver)))
}

/// A channel for any number of messages.
///
/// ```
/// let (sender, mut receiver) = ddbx::sync::mpsc::unbounded_channel();
/// sender.send(1).unwrap();
/// assert_eq!(receiver.try_recv(), Ok(1));
/// ```
pub fn unbounded_channel<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (UnboundedSender(sender), UnboundedReceiver(Inbox::new(receiver)))
}

/// What goes through a channel.
struct Message<T> {
    /// The control that has sent it, if one has.
    from: Option<ControlId>,
    body: T,
}

impl<T> Message<T> {
    fn new(body: T) -> Self {
        Self { from: control::on_course().map(|control| control.id()), body }
    }
}

/// Sends into a [`channel`].
pub struct Sender<T>(mpsc::Sender<Message<T>>);

impl<T> Sender<T> {
    /// Sends a message, when there is room. The error gives it back: there is no
    /// receiver any more.
    pub async fn send(&self, message: T) -> Result<(), SendError<T>> {
        let sent = self.0.send(Message::new(message)).await;
        sent.map_err(|SendError(message)| SendError(message.body))
    }

    /// Sends a message if there is room.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let mut left = Some(Message::new(message));
        let mut attempt = || {
            let Some(message) = left.take() else { return Ok(()) };
            self.0.try_send(message).map_err(|error| {
                let (refused, message) = match error {
                    TrySendError::Full(message) => (Refused::NotNow, message),
                    TrySendError::Closed(message) => (Refused::Closed, message),
                };
                left = Some(message);
                refused
            })
        };
        let refused = match control::on_course() {
            Some(control) => super::as_recorded(&control, "try_send", attempt),
            None => attempt(),
        };
        match (refused, left) {
            (Err(Refused::NotNow), Some(message)) => Err(TrySendError::Full(message.body)),
            (Err(Refused::Closed), Some(message)) => Err(TrySendError::Closed(message.body)),
            _ => Ok(()),
        }
    }
}

/// Sends into an [`unbounded_channel`].
pub struct UnboundedSender<T>(mpsc::UnboundedSender<Message<T>>);

impl<T> UnboundedSender<T> {
    /// Sends a message. The error gives it back: there is no receiver any more.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        let sent = self.0.send(Message::new(message));
        sent.map_err(|SendError(message)| SendError(message.body))
    }
}

macro_rules! receivers {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        pub struct $name<T>(Inbox<mpsc::$name<Message<T>>>);

        impl<T> $name<T> {
            /// Waits for the next message; none when all senders are gone. Dropping what
            /// this returns loses no message.
            pub fn recv(&mut self) -> impl Future<Output = Option<T>> {
                self.0.recv()
            }

            /// The next message if there is one.
            pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
                self.0.try_recv()
            }

            /// Nobody can send from now on; what was sent is still received.
            pub fn close(&mut self) {
                self.0.source.close();
            }
        }

        impl<T> Source for mpsc::$name<Message<T>> {
            type Body = T;

            fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<Message<T>>> {
                self.poll_recv(context)
            }

            fn try_recv(&mut self) -> Result<Message<T>, TryRecvError> {
                self.try_recv()
            }
        }
    )*};
}

receivers! {
    /// Receives from a [`channel`].
    Receiver
    /// Receives from an [`unbounded_channel`].
    UnboundedReceiver
}

/// Where messages come from.
trait Source {
    type Body;
    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<Message<Self::Body>>>;
    fn try_recv(&mut self) -> Result<Message<Self::Body>, TryRecvError>;
}

/// The receiving end, with what it has taken out of the channel and not given yet: in
/// a replay that is what others have sent than the one whose turn it is.
struct Inbox<S: Source> {
    source: S,
    taken: VecDeque<Message<S::Body>>,
}

impl<S: Source> Inbox<S> {
    fn new(source: S) -> Self {
        Self { source, taken: VecDeque::new() }
    }

    fn recv(&mut self) -> impl Future<Output = Option<S::Body>> {
        let entry = Entry::next(Shared::Message);
        async move {
            match entry {
                Some(entry) => self.recv_in_turn(entry).await,
                None => self.next(None).await.map(|message| message.body),
            }
        }
    }

    /// That there is no message any more is no event: so it is not waited for.
    async fn recv_in_turn(&mut self, entry: Entry) -> Option<S::Body> {
        let sender = entry.sender();
        let turn = tokio::select! {
            biased;
            turn = entry.turn(sender.clone().flatten()) => turn,
            () = self.is_over(sender.is_some()) => return None,
        };
        let message = self.next(sender.as_ref()).await?;
        entry.happens(turn, message.from);
        Some(message.body)
    }

    /// Takes out what comes, so that nobody waits for room who did not when it was
    /// recorded, until nothing more will come and nothing is left.
    async fn is_over(&mut self, is_expected: bool) {
        while let Some(message) = self.take().await {
            self.taken.push_back(message);
        }
        if is_expected || !self.taken.is_empty() {
            future::pending().await
        }
    }

    /// The first message; or the first of that sender.
    async fn next(&mut self, sender: Option<&Option<ControlId>>) -> Option<Message<S::Body>> {
        let mut message = self.first(sender);
        while message.is_none() {
            let taken = self.take().await?;
            self.taken.push_back(taken);
            message = self.first(sender);
        }
        message
    }

    fn first(&mut self, sender: Option<&Option<ControlId>>) -> Option<Message<S::Body>> {
        let fits = |message: &Message<_>| sender.is_none_or(|sender| message.from == *sender);
        self.taken.iter().position(fits).and_then(|place| self.taken.remove(place))
    }

    async fn take(&mut self) -> Option<Message<S::Body>> {
        future::poll_fn(|context| self.source.poll_recv(context)).await
    }

    fn try_recv(&mut self) -> Result<S::Body, TryRecvError> {
        let entry = Entry::next(Shared::Message);
        let sender = entry.as_ref().and_then(Entry::sender);
        let mut attempt = || self.try_next(sender.as_ref());
        let got = match entry {
            Some(entry) => entry.attempt("try_recv", attempt, |message| message.from.clone()),
            None => attempt(),
        };
        got.map(|message| message.body).map_err(|refused| match refused {
            Refused::NotNow => TryRecvError::Empty,
            Refused::Closed => TryRecvError::Disconnected,
        })
    }

    fn try_next(
        &mut self,
        sender: Option<&Option<ControlId>>,
    ) -> Result<Message<S::Body>, Refused> {
        loop {
            if let Some(message) = self.first(sender) {
                return Ok(message);
            }
            match self.source.try_recv() {
                Ok(message) => self.taken.push_back(message),
                Err(TryRecvError::Disconnected) if self.taken.is_empty() => {
                    return Err(Refused::Closed);
                }
                Err(_) => return Err(Refused::NotNow),
            }
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Clone for UnboundedSender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Shows no messages.
macro_rules! debug {
    ($($type:ident)*) => {$(
        impl<T> fmt::Debug for $type<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($type)).finish_non_exhaustive()
            }
        }
    )*};
}

debug!(Sender UnboundedSender Receiver UnboundedReceiver);
