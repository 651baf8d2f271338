//! A process under debug: what wraps its clients and servers.

use std::future::Future;
use std::io;
use std::sync::Arc;

use ddbx_central::driver::{Membership, Session};
use ddbx_protocol::link::DialError;
use ddbx_protocol::session::LEASE;
use ddbx_protocol::{FromSatellite, ProcessIndex, ProcessName};
use ddbx_satellite::driver::{Handle, Report};
use ddbx_satellite::link::{self, FirstAttempt, Target};
use ddbx_satellite::logic::strand::StrandId;
use serde::Serialize;
use tarpc::RequestName;
use tarpc::client::Channel;
use tarpc::server::Serve;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::control::{self, Control, Newcomer};
use crate::controls::Controls;
use crate::course::Wanted;
use crate::envelope::{TracedRequest, TracedResponse};
use crate::naming;
use crate::seats::Key;
use crate::server::Server;

/// A process under debug. Cloning it gives another handle to the same one.
#[derive(Clone)]
pub struct Process(Arc<Inner>);

struct Inner {
    name: ProcessName,
    controls: Arc<Controls>,
    satellite: Option<Handle>,
    /// In a session inside the same program.
    _member: Option<Member>,
}

struct Member {
    session: Session,
    membership: Membership,
    satellite: Handle,
}

impl Process {
    /// A process without a session: its wrapped services behave like plain ones.
    pub fn without_session(name: &str) -> Self {
        Self(Arc::new(Inner {
            name: naming::process(name),
            controls: Arc::new(Controls::new(ProcessIndex(0))),
            satellite: None,
            _member: None,
        }))
    }

    /// A process of a session inside the same program.
    pub(crate) fn embedded(name: &str, session: &Session, wanted: &Wanted) -> io::Result<Self> {
        let (controls, satellite) = start(name)?;
        let inbox = satellite.inbox();
        // The session must be known before anything is said, and says welcome when
        // the satellite joins.
        let say = session.clone();
        let membership = Arc::new(std::sync::OnceLock::new());
        let own = membership.clone();
        let send = move |message| {
            if let Some(membership) = own.get() {
                say.hear(*membership, message);
            }
        };
        let attach = inbox.connected(Box::new(send)).ok_or(io::ErrorKind::Other)?;
        let deliver = Box::new(move |message| inbox.deliver(message));
        let joined = session.join(attach, deliver).ok_or(io::ErrorKind::Other)?;
        let _ = membership.set(joined);
        wanted.begin(&satellite);
        let member =
            Member { session: session.clone(), membership: joined, satellite: satellite.clone() };
        Ok(Self(Arc::new(Inner {
            name: satellite.name(),
            controls,
            satellite: Some(satellite),
            _member: Some(member),
        })))
    }

    /// A process of a session elsewhere. Waits until it takes part, or until it is
    /// clear that it does not yet; then it goes on alone, and joins when it can.
    pub(crate) fn linked(
        name: &str,
        own_name: &str,
        target: Target,
        wanted: &Wanted,
    ) -> io::Result<(Self, Option<DialError>)> {
        let (controls, satellite) = start(name)?;
        if own_name != name {
            satellite.set_own_name(naming::process(own_name));
        }
        let first = link::start(satellite.inbox(), target)?;
        let error = match first.recv_timeout(LEASE) {
            Ok(FirstAttempt::Alone(error)) => Some(error),
            Ok(FirstAttempt::Attached) | Err(_) => None,
        };
        wanted.begin(&satellite);
        let inner =
            Inner { name: satellite.name(), controls, satellite: Some(satellite), _member: None };
        Ok((Self(Arc::new(inner)), error))
    }

    /// A process that belongs to no session, and whose events are recorded or shaken.
    pub(crate) fn alone(name: &str, wanted: &Wanted) -> io::Result<Self> {
        let (controls, satellite) = start(name)?;
        wanted.begin(&satellite);
        let name = satellite.name();
        Ok(Self(Arc::new(Inner { name, controls, satellite: Some(satellite), _member: None })))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.0.name.as_str()
    }

    /// Hides the values of these fields, wherever they are, from breakpoints, their
    /// conditions and everything that shows arguments.
    pub fn redact(self, fields: &[&str]) -> Self {
        self.0.controls.set_redacted(fields.iter().map(|field| (*field).to_owned()));
        self
    }

    /// Wraps a client's channel: `WorldClient::from(process.client(channel))`.
    pub fn client<Req, Resp>(
        &self,
        channel: Channel<TracedRequest<Req>, TracedResponse<Resp>>,
    ) -> Client<Req, Resp>
    where
        Req: RequestName + Serialize + Send + 'static,
        Resp: Serialize + Send + 'static,
    {
        Client::new(channel, self.clone())
    }

    /// Wraps a service: `channel.execute(process.serve(server.serve()))`.
    pub fn serve<S: Serve>(&self, service: S) -> Server<S>
    where
        S::Req: RequestName + Serialize + 'static,
        S::Resp: Serialize + 'static,
    {
        Server::new(service, self.clone())
    }

    /// Starts a control of its own, such as a background task. Its calls, points and
    /// sleeps are those of one thread of control under this name. Without a session
    /// it is `tokio::spawn`.
    pub fn spawn<F>(&self, name: &str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let Some(satellite) = self.satellite() else { return tokio::spawn(future) };
        let name = self.controls().named_root(&satellite.name(), name);
        let new = Newcomer::named(self, name, satellite.floor(), false);
        control::run_in_task(Control::begin(new), None, future)
    }

    pub(crate) fn satellite(&self) -> Option<&Handle> {
        self.0.satellite.as_ref()
    }

    pub(crate) fn controls(&self) -> &Controls {
        &self.0.controls
    }

    /// A control has left.
    #[inline]
    pub(crate) fn has_lost(&self, key: Key, strand: StrandId) {
        self.controls().seats.has_lost(key);
        if let Some(satellite) = self.satellite() {
            satellite.ended(strand);
        }
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

fn start(name: &str) -> io::Result<(Arc<Controls>, Handle)> {
    let index = ProcessIndex(getrandom::u64().map_err(io::Error::from)?);
    let controls = Arc::new(Controls::new(index));
    let report: Arc<dyn Report> = controls.clone();
    let satellite = Handle::start(index, naming::process(name), report)?;
    Ok((controls, satellite))
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(progress) = self.satellite.progress() {
            self.session.hear(self.membership, FromSatellite::Replays(Box::new(progress)));
        }
        self.session.leave(self.membership);
    }
}
