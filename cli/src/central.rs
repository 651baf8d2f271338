//! `ddbx central`: a session without processes of its own; and how a session opens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use ddbx_central::driver::Session;
use ddbx_central::server;
use ddbx_protocol::control::{ProcessState, Reply, Request};
use ddbx_protocol::link::{
    Address, BindError, CentralTls, ClientTls, KeyFiles, Keys, Listener, Locks, Secret,
};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

use crate::exit::Failure;
use crate::session::{print, print_json};

/// Open a session for services that you start by hand
///
/// Services take part if they run with DDBX_SESSION set to it. When it ends, nobody
/// stays held: they go on without a debugger, and join again if it comes back.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ddbx central                              a session called default
  DDBX_SESSION=default ./inventory          a service that takes part
  DDBX_SESSION=default DDBX_PROCESS=inventory#2 ./inventory
                                            the same under another name
  ddbx central --session shop               a session with another name
  ddbx central --session tcp:127.0.0.1:0 --secret-file /run/user/1000/shop.secret
                                            over TCP; the file is made if it is missing
  ddbx certs certs --host db1 && ddbx central --session tcp:0.0.0.0:4000 --tls certs
                                            for services on other machines too

Ctrl-C, SIGTERM or `ddbx stop` end it.")]
pub(crate) struct CentralArgs {
    /// Its name, or unix:PATH, or tcp:IP:PORT; beyond the loopback interface only with --tls
    #[arg(long, short = 'S', default_value = "default")]
    session: String,

    /// The secret that all must know, over TCP; made if it is missing
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,

    /// The directory with the certificates that `ddbx certs` has made, for services elsewhere
    #[arg(long, value_name = "DIR")]
    tls: Option<PathBuf>,

    /// Who applies the rule
    #[arg(long, value_enum, default_value_t)]
    mode: Mode,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Who applies the rule by which events wait
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Each process by itself, from what it must know: a call costs no message
    #[default]
    Permits,
    /// The session, which is asked at every event: slow, the protocol of the paper, to compare
    /// with. Only what you hold is shown among the holds, not who waits because of that
    Ask,
}

impl From<Mode> for ddbx_protocol::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Permits => Self::Permit,
            Mode::Ask => Self::Ask,
        }
    }
}

pub(crate) fn run(args: &CentralArgs) -> Result<(), Failure> {
    runtime()?.block_on(async {
        let files = KeyFiles { secret: args.secret_file.as_deref(), tls: args.tls.as_deref() };
        let open = Open::start(&args.session, files, args.mode).await?;
        if args.json {
            let variables: serde_json::Map<_, _> =
                open.environment.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect();
            print_json(&serde_json::json!({ "session": open.name, "environment": variables }))?;
        } else {
            let short = |(name, value): &(String, String)| match name.as_str() {
                "DDBX_SESSION" => format!("{name}={}", open.name),
                _ => format!("{name}={value}"),
            };
            let variables = open.environment.iter().map(short).collect::<Vec<_>>().join(" ");
            print(&format!(
                "session {} is open; services take part with\n  {variables}",
                open.name
            ))?;
            if let Some(port) = open.port_for_others {
                print(&format!(
                    "on other machines with DDBX_SESSION=tcp:HOST:{port}, where HOST is what \
                     `ddbx certs --host` was told, and DDBX_TLS=DIR, a copy of what it made for \
                     services"
                ))?;
            }
        }
        open.end().await;
        Ok(())
    })
}

/// A session that is open.
pub(crate) struct Open {
    /// What it is called.
    pub(crate) name: String,
    /// Where a screen finds it.
    pub(crate) at: (Address, Keys),
    /// Those who take part and those who hold them.
    pub(crate) session: Session,
    /// What a service needs in its environment to take part.
    pub(crate) environment: Vec<(String, String)>,
    /// With TLS, on which port others reach it.
    port_for_others: Option<u16>,
    served: JoinHandle<()>,
}

impl Open {
    pub(crate) async fn start(
        name: &str,
        files: KeyFiles<'_>,
        mode: Mode,
    ) -> Result<Self, Failure> {
        let address = Address::parse(name).map_err(|error| wrong(&error))?;
        let (locks, keys) = locks_and_keys(&address, files)?;
        let has_tls = locks.tls.is_some();
        let listener = Listener::bind(&address, locks).await;
        let listener = listener.map_err(|error| match error {
            BindError::NotAllowed(_) | BindError::Address(_) | BindError::Named(_) => wrong(&error),
            _ => Failure::Failed(error.to_string()),
        })?;
        let address = from_here(listener.address());
        let port_for_others = match &address {
            Address::Tcp(at) if has_tls => Some(at.port()),
            _ => None,
        };
        let name = address.session_name().map_or_else(|| address.to_string(), |n| n.to_string());
        let mut environment = vec![("DDBX_SESSION".to_owned(), address.to_string())];
        let mut also = |variable: &str, path: &Path| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            environment.push((variable.to_owned(), path.display().to_string()));
        };
        if address.is_tcp() {
            files.secret.inspect(|file| also("DDBX_SECRET_FILE", file));
            files.tls.inspect(|directory| also("DDBX_TLS", directory));
        }
        let session = Session::start_in(mode.into())?;
        let served = tokio::spawn(server::serve(listener, session.clone()));
        Ok(Self { name, at: (address, keys), session, environment, port_for_others, served })
    }

    /// Until Ctrl-C, SIGTERM, or until somebody asks for its end.
    pub(crate) async fn end(mut self) {
        tokio::select! {
            () = interrupted() => {}
            _ = &mut self.served => {}
        }
    }

    /// Until somebody asks for its end.
    pub(crate) async fn asked_to_end(&mut self) {
        let _ = (&mut self.served).await;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.served.abort();
    }
}

fn wrong(error: &dyn std::error::Error) -> Failure {
    Failure::BadInput(error.to_string())
}

/// What the session asks of others, and what its own screen shows it.
fn locks_and_keys(address: &Address, files: KeyFiles<'_>) -> Result<(Locks, Keys), Failure> {
    if !address.is_tcp() {
        return Ok((Locks::default(), Keys::default()));
    }
    let Some(file) = files.secret_file() else {
        return Err(Failure::BadInput(
            "a session over TCP needs a secret: say where with --secret-file FILE (it is made if \
             it is missing)"
                .to_owned(),
        ));
    };
    // Before a secret is made for nothing.
    let central = files.tls.map(CentralTls::read).transpose().map_err(|error| wrong(&error))?;
    let client = files.tls.map(ClientTls::read).transpose().map_err(|error| wrong(&error))?;
    let secret = if file.exists() { Secret::read(&file) } else { Secret::create(&file) };
    let secret = Some(secret.map_err(|error| wrong(&error))?);
    Ok((Locks { secret: secret.clone(), tls: central }, Keys { secret, tls: client }))
}

/// Where those on this machine reach a session: one that listens at all of its addresses
/// is reached at any.
fn from_here(address: &Address) -> Address {
    match address {
        Address::Tcp(at) if at.ip().is_unspecified() => {
            let mut at = *at;
            at.set_ip(match at.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
            Address::Tcp(at)
        }
        address => address.clone(),
    }
}

pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Ctrl-C, or a polite request to end.
pub(crate) async fn interrupted() {
    Interruptions::listen().next().await;
}

/// Each Ctrl-C and each polite request to end. Those that come while nobody waits
/// for the next one are not lost.
pub(crate) struct Interruptions([Option<Signal>; 3]);

impl Interruptions {
    /// From now on. Needs a runtime.
    pub(crate) fn listen() -> Self {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        Self(kinds.map(|kind| signal(kind).ok()))
    }

    pub(crate) async fn next(&mut self) {
        async fn heard(signals: &mut Option<Signal>) {
            match signals {
                Some(signals) => drop(signals.recv().await),
                None => std::future::pending().await,
            }
        }
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            () = heard(interrupt) => {}
            () = heard(terminate) => {}
            () = heard(hangup) => {}
        }
    }
}

/// Whether a process takes part.
pub(crate) fn is_attached(session: &Session, name: &str) -> bool {
    match session.request(Request::Processes) {
        Some(Reply::Processes(views)) => {
            views.iter().any(|view| view.name == name && view.state != ProcessState::Gone)
        }
        _ => false,
    }
}
