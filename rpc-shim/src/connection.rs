//! A connection to another process, as the end that dialled sees it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ddbx_protocol::{ConnectionId, EventKind, EventNumber, ProcessIndex};
use ddbx_recording::SentAs;
use ddbx_satellite::driver::Handle;
use tarpc::client::RpcError;

use crate::envelope::{Hello, ResponseMeta};
use crate::process::Process;

/// Lasts as long as any clone of a client.
pub(crate) struct Connection {
    process: Process,
    /// Counted by this end; 0 without a session.
    nth: u32,
    connected: EventNumber,
    /// Whether anything has ever come back.
    answered: AtomicBool,
    /// Which of this end's names the other end knows, and has answered with its own; 0 for
    /// none.
    met: AtomicU64,
    /// Who that is: of interest once it is met.
    other_end: AtomicU64,
}

impl Connection {
    pub(crate) fn new(process: &Process) -> Self {
        let mut new = Self {
            process: process.clone(),
            nth: process.satellite().map_or(0, |_| process.controls().next_connection()),
            connected: EventNumber::default(),
            answered: AtomicBool::new(false),
            met: AtomicU64::new(0),
            other_end: AtomicU64::new(0),
        };
        new.connected = new.note(|connection| EventKind::Connected { connection });
        new
    }

    /// Which of the connections of its process.
    pub(crate) fn nth(&self) -> u32 {
        self.nth
    }

    /// What a request says of the connection, as long as it may be new to the other end.
    #[inline]
    pub(crate) fn hello(&self, satellite: &Handle) -> Option<Box<Hello>> {
        let names_had = satellite.names_had();
        match self.met.load(Ordering::Acquire) == names_had {
            true => None,
            false => Some(self.introduction(satellite, names_had)),
        }
    }

    #[cold]
    fn introduction(&self, satellite: &Handle, names_had: u64) -> Box<Hello> {
        let (connection, connected) = (self.nth, self.connected);
        Box::new(Hello { name: satellite.name(), connection, connected, names_had })
    }

    /// The other end may have said who it is, to a request that said so of this end under this
    /// of its names.
    #[inline]
    pub(crate) fn meet(
        &self,
        satellite: &Handle,
        names_had: Option<u64>,
        answer: Option<&ResponseMeta>,
    ) {
        if let (Some(names_had), Some(answer)) = (names_had, answer)
            && let Some(name) = &answer.name
            && self.met.load(Ordering::Acquire) < names_had
        {
            let tell = || satellite.is_called(answer.from, name);
            self.process.controls().meet(answer.from, name, tell);
            satellite.connected(answer.from);
            self.other_end.store(answer.from.0, Ordering::Relaxed);
            // Only then: whoever sees this finds the name.
            self.met.fetch_max(names_had, Ordering::Release);
        }
    }

    /// As what an answer was sent, of which it says the number alone.
    #[inline]
    pub(crate) fn sent_as(&self, number: EventNumber) -> SentAs {
        SentAs { process: ProcessIndex(self.other_end.load(Ordering::Relaxed)), number }
    }

    /// Whether anything has come back.
    #[inline]
    pub(crate) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// Something came back, or nothing. An end that is not wrapped just closes the
    /// connection; tarpc's error cannot say that this may be behind it.
    #[inline]
    pub(crate) fn answered<T>(&self, response: &Result<T, RpcError>) {
        if !self.is_answered() {
            self.first_answered(response);
        }
    }

    fn first_answered<T>(&self, response: &Result<T, RpcError>) {
        let closed = matches!(response, Err(RpcError::Shutdown | RpcError::Channel(_)));
        let first_here = !self.answered.swap(true, Ordering::Relaxed);
        let ever = &self.process.controls().ever_answered;
        if !closed {
            ever.store(true, Ordering::Relaxed);
        } else if first_here && !ever.load(Ordering::Relaxed) {
            eprintln!(
                "ddbx: {}: a connection was closed before anything came back; if the server is \
                 not wrapped by ddbx, wrap both ends or none",
                self.process.name()
            );
        }
    }

    fn note(&self, kind: impl FnOnce(ConnectionId) -> EventKind) -> EventNumber {
        let Some(satellite) = self.process.satellite() else { return EventNumber::default() };
        let id = || ConnectionId { client: satellite.name(), nth: self.nth };
        satellite.note(satellite.floor(), || kind(id()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.note(|connection| EventKind::Closed { connection });
    }
}
