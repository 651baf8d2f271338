//! A process under debug: what wraps its clients and servers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use ddbx_central::driver::Session;
use ddbx_protocol::{ProcessIndex, ProcessName};
use ddbx_satellite::driver::Handle;
use tarpc::RequestName;
use tarpc::client::Channel;
use tarpc::server::Serve;

use crate::client::Client;
use crate::envelope::{TracedRequest, TracedResponse};
use crate::server::Server;

/// A process under debug. Cloning it gives another handle to the same one.
#[derive(Clone)]
pub struct Process(Arc<Inner>);

struct Inner {
    name: ProcessName,
    member: Option<Member>,
}

/// A process that takes part in a session.
struct Member {
    satellite: Handle,
    session: Session,
    /// Who has called this process already.
    callers: Mutex<BTreeSet<ProcessIndex>>,
}

impl Process {
    /// A process without a session: its wrapped services behave like plain ones.
    ///
    /// # Panics
    /// If the name is empty, too long, or has characters that names cannot have.
    pub fn without_session(name: &str) -> Self {
        Self(Arc::new(Inner { name: checked(name), member: None }))
    }

    pub(crate) fn in_session(name: &str, satellite: Handle, session: Session) -> Self {
        let member = Member { satellite, session, callers: Mutex::default() };
        Self(Arc::new(Inner { name: checked(name), member: Some(member) }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.0.name.as_str()
    }

    /// Wraps a client's channel: `WorldClient::from(process.client(channel))`.
    pub fn client<Req: RequestName, Resp>(
        &self,
        channel: Channel<TracedRequest<Req>, TracedResponse<Resp>>,
    ) -> Client<Req, Resp> {
        Client::new(channel, self.clone())
    }

    /// Wraps a service: `channel.execute(process.serve(server.serve()))`.
    pub fn serve<S: Serve>(&self, service: S) -> Server<S> {
        Server::new(service, self.clone())
    }

    pub(crate) fn satellite(&self) -> Option<&Handle> {
        self.0.member.as_ref().map(|member| &member.satellite)
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A call comes from another process: central must know before it is judged.
    pub(crate) fn called_by(&self, caller: ProcessIndex) {
        if let Some(member) = &self.0.member {
            let mut callers = member.callers.lock().unwrap_or_else(PoisonError::into_inner);
            if callers.insert(caller) {
                member.satellite.accepted(caller);
            }
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.session.leave(self.satellite.process());
    }
}

pub(crate) fn checked(name: &str) -> ProcessName {
    ProcessName::new(name).unwrap_or_else(|error| panic!("{error}"))
}
