//! A connection after its handshake: messages both ways.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use futures::{SinkExt, StreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::AsyncWrite;
use tokio_util::codec::{FramedRead, FramedWrite};

use super::Role;
use super::frames::{Codec, FrameError};
use super::stream::{Reader, Stream, Writer};

/// A connection between central and whoever dialled it.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    role: Role,
    side: Side,
}

/// Which end of a connection this is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Dialler,
    Listener,
}

impl Connection {
    pub(super) fn new(stream: Stream, role: Role, side: Side) -> Self {
        Self { stream, role, side }
    }

    /// Both directions, to be used by different tasks.
    pub fn split(self) -> (Sender, Receiver) {
        let (dialler, listener) = (Codec::from_dialler, Codec::from_listener);
        let (outgoing, incoming) = match self.side {
            Side::Dialler => (dialler(self.role), listener(self.role)),
            Side::Listener => (listener(self.role), dialler(self.role)),
        };
        let (reader, writer) = self.stream.split();
        (
            Sender { frames: FramedWrite::new(writer, outgoing) },
            Receiver { frames: Some(FramedRead::new(reader, incoming)) },
        )
    }
}

/// The sending direction. When it is dropped, the other end sees the end of the
/// messages.
///
/// A future of these methods may be dropped: its message is then queued whole or
/// not at all, and what is queued goes out with the next `flush` or `send`.
pub struct Sender {
    frames: FramedWrite<Writer, Codec>,
}

impl Sender {
    /// Sends a message.
    pub async fn send<T: Serialize>(&mut self, message: &T) -> Result<(), FrameError> {
        self.frames.send(message).await
    }

    /// Queues a message, to be sent together with others by [`Sender::flush`].
    /// Waits when much is queued already.
    pub async fn feed<T: Serialize>(&mut self, message: &T) -> Result<(), FrameError> {
        self.frames.feed(message).await
    }

    /// Queues a message and sends what can be sent without waiting: true if that is all.
    /// Nobody is woken for the rest, which goes out with the next `flush` or `send`.
    pub fn send_at_once<T: Serialize>(&mut self, message: &T) -> Result<bool, FrameError> {
        self.frames.start_send_unpin(message)?;
        let mut context = Context::from_waker(Waker::noop());
        match SinkExt::<&T>::poll_flush_unpin(&mut self.frames, &mut context) {
            Poll::Ready(sent) => sent.map(|()| true),
            Poll::Pending => Ok(false),
        }
    }

    /// Sends all that is queued.
    pub async fn flush(&mut self) -> Result<(), FrameError> {
        SinkExt::<&()>::flush(&mut self.frames).await
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // TLS does not end by itself. One attempt: its last word has a few bytes, for
        // which there is room unless the other end has long stopped reading.
        let mut context = Context::from_waker(Waker::noop());
        let _ = Pin::new(self.frames.get_mut()).poll_shutdown(&mut context);
    }
}

/// The receiving direction.
pub struct Receiver {
    /// None after an error: what follows a bad frame means nothing.
    frames: Option<FramedRead<Reader, Codec>>,
}

impl Receiver {
    /// The next message; none when the other end has sent its last one, and after
    /// an error. Cancel-safe: a future that is dropped has taken nothing.
    ///
    /// An end that was killed may show as a clean end, as [`FrameError::Truncated`] or
    /// as a reset: which of them depends on what it had not read or sent yet.
    pub async fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        match self.receive_unread().await? {
            Some(body) => self.read(&body).map(Some),
            None => Ok(None),
        }
    }

    /// The same, to be [read](Self::read) only if it is not one that is known already.
    pub async fn receive_unread(&mut self) -> Result<Option<BytesMut>, FrameError> {
        let Some(frames) = &mut self.frames else {
            return Ok(None);
        };
        let body = frames.next().await.transpose();
        self.or_no_more(body)
    }

    /// What a message says.
    pub fn read<T: DeserializeOwned>(&mut self, body: &[u8]) -> Result<T, FrameError> {
        let ended = || FrameError::Malformed("nothing comes after an error".to_owned());
        let read = self.frames.as_ref().ok_or_else(ended).and_then(|it| it.decoder().read(body));
        self.or_no_more(read)
    }

    fn or_no_more<T>(&mut self, came: Result<T, FrameError>) -> Result<T, FrameError> {
        if came.is_err() {
            self.frames = None;
        }
        came
    }
}
