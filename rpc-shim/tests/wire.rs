//! What goes over the wire: a wrapped end and a plain one never understand each
//! other by mistake, and without a session a wrapped service is like a plain one.

#![allow(clippy::unwrap_used, missing_docs)]

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{self, Poll};

use ddbx::Process;
use futures::StreamExt as _;
use tarpc::client::{self, RpcError};
use tarpc::context::{self, Context};
use tarpc::serde_transport;
use tarpc::server::{BaseChannel, Channel as _};
use tarpc::tokio_serde::formats::{Bincode, Json};
use tarpc::tokio_util::codec::{Framed, LengthDelimitedCodec};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[tarpc::service]
trait Bank {
    async fn balance(account: u8) -> u64;
    async fn transfer(from: u8, to: u8);
    /// What is left of its deadline, in milliseconds; never, if so.
    async fn patience(forever: bool) -> u64;
}

#[derive(Clone, Default)]
struct Ledger {
    executed: Arc<AtomicU32>,
    dropped: Arc<AtomicU32>,
}

struct CountsDrops(Arc<AtomicU32>);

impl Drop for CountsDrops {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Bank for Ledger {
    async fn balance(self, _: Context, account: u8) -> u64 {
        self.executed.fetch_add(1, Ordering::SeqCst);
        u64::from(account) * 100
    }

    async fn transfer(self, _: Context, _: u8, _: u8) {
        self.executed.fetch_add(1, Ordering::SeqCst);
    }

    async fn patience(self, ctx: Context, forever: bool) -> u64 {
        let _counts = CountsDrops(self.dropped.clone());
        self.executed.fetch_add(1, Ordering::SeqCst);
        if forever {
            std::future::pending::<()>().await;
        }
        let left = ctx.deadline.saturating_duration_since(std::time::Instant::now());
        left.as_millis() as u64
    }
}

/// A server and a client over TCP; each wrapped by whatever `$wrap` says.
macro_rules! over_tcp {
    ($format:expr, $server:expr, $client:expr) => {{
        let mut listener =
            tarpc::serde_transport::tcp::listen("127.0.0.1:0", $format).await.unwrap();
        let address = listener.local_addr();
        let server = $server;
        tokio::spawn(async move {
            let transport = listener.next().await.unwrap().unwrap();
            let calls = BaseChannel::with_defaults(transport).execute(server);
            calls.for_each(|call| async { drop(tokio::spawn(call)) }).await;
        });
        let transport = tarpc::serde_transport::tcp::connect(address, $format).await.unwrap();
        BankClient::from($client(client::new(client::Config::default(), transport).spawn()))
    }};
}

/// Calls both methods; true if any came through.
macro_rules! anything_comes_through {
    ($client:expr) => {{
        let balance: Result<u64, RpcError> = $client.balance(soon(), 7).await;
        let transfer: Result<(), RpcError> = $client.transfer(soon(), 1, 7).await;
        balance.is_ok() || transfer.is_ok()
    }};
}

#[tokio::test]
async fn a_wrapped_client_and_a_plain_server_refuse_each_other() {
    for in_session in [false, true] {
        let session = ddbx::test::session().await;
        let process =
            if in_session { session.process("client") } else { Process::without_session("client") };
        let bank = Ledger::default();
        let wrap = |channel| process.client(channel);
        let client = over_tcp!(Bincode::default, bank.clone().serve(), wrap);
        assert!(!anything_comes_through!(client));
        let wrap = |channel| process.client(channel);
        let client = over_tcp!(Json::default, bank.clone().serve(), wrap);
        assert!(!anything_comes_through!(client));
        assert_eq!(bank.executed.load(Ordering::SeqCst), 0, "nothing was executed");
    }
}

#[tokio::test]
async fn a_plain_client_and_a_wrapped_server_refuse_each_other() {
    let session = ddbx::test::session().await;
    for process in [session.process("bank"), Process::without_session("bank")] {
        let bank = Ledger::default();
        let plain = |channel| channel;
        let client = over_tcp!(Bincode::default, process.serve(bank.clone().serve()), plain);
        assert!(!anything_comes_through!(client));
        let process = process.clone();
        let client = over_tcp!(Json::default, process.serve(bank.clone().serve()), plain);
        assert!(!anything_comes_through!(client));
        assert_eq!(bank.executed.load(Ordering::SeqCst), 0, "nothing was executed");
    }
}

/// Every mixture of ends with and without a session works, over both formats.
#[tokio::test]
async fn wrapped_ends_understand_each_other() {
    let session = ddbx::test::session().await;
    for (caller, bank) in [
        (Process::without_session("caller"), Process::without_session("bank")),
        (session.process("caller"), session.process("bank")),
        (session.process("caller"), Process::without_session("bank")),
        (Process::without_session("caller"), session.process("bank")),
    ] {
        let wrap = |channel| caller.client(channel);
        let server = bank.serve(Ledger::default().serve());
        let client = over_tcp!(Bincode::default, server, wrap);
        assert_eq!(client.balance(context::current(), 7).await.unwrap(), 700);
        let wrap = |channel| caller.client(channel);
        let server = bank.serve(Ledger::default().serve());
        let client = over_tcp!(Json::default, server, wrap);
        assert_eq!(client.balance(context::current(), 7).await.unwrap(), 700);
    }
}

/// A deadline that need not be waited for long.
fn soon() -> Context {
    within(300)
}

/// Counts what one end writes.
struct Counts<T>(T, Arc<AtomicU32>);

impl<T: AsyncRead + Unpin> AsyncRead for Counts<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Counts<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.0).poll_write(cx, bytes);
        if let Poll::Ready(Ok(number)) = written {
            self.1.fetch_add(number as u32, Ordering::SeqCst);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// A call over counted pipes: how many bytes the request and the response took.
macro_rules! bytes_of_a_call {
    ($server:expr, $client:expr) => {{
        let (client_end, server_end) = tokio::io::duplex(4_096);
        let (sent, answered) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let framed = |io| Framed::new(io, LengthDelimitedCodec::new());
        let transport =
            serde_transport::new(framed(Counts(server_end, answered.clone())), Bincode::default());
        let calls = BaseChannel::with_defaults(transport).execute($server);
        tokio::spawn(calls.for_each(|call| async { drop(tokio::spawn(call)) }));
        let transport =
            serde_transport::new(framed(Counts(client_end, sent.clone())), Bincode::default());
        let channel = client::new(client::Config::default(), transport).spawn();
        let client = BankClient::from($client(channel));
        // What is left of a deadline is written in as many bytes as it takes.
        assert_eq!(client.balance(within(3_600_000), 7).await.unwrap(), 700);
        (sent.load(Ordering::SeqCst), answered.load(Ordering::SeqCst))
    }};
}

/// Without a session a message is longer by the marker, and by nothing else.
#[tokio::test]
async fn without_a_session_the_marker_is_all_that_is_added() {
    let plain = bytes_of_a_call!(Ledger::default().serve(), |channel| channel);
    for process in [Process::without_session("bank"), ddbx::init("bank")] {
        let server = process.serve(Ledger::default().serve());
        let wrapped = bytes_of_a_call!(server, |channel| process.client(channel));
        assert_eq!(wrapped, (plain.0 + 1, plain.1 + 1));
    }
}

/// A handler sees the deadline of its caller, whoever of the two is in a session;
/// and if it takes too long, its caller gives it up and it is dropped.
#[tokio::test]
async fn deadlines_and_cancellations_are_those_of_the_caller() {
    let session = ddbx::test::session().await;
    let alone = Process::without_session;
    for (caller, bank) in [
        (alone("caller"), alone("bank")),
        (ddbx::init("caller"), ddbx::init("bank")),
        (session.process("caller"), alone("bank")),
        (alone("caller"), session.process("bank")),
        (session.process("caller"), session.process("bank")),
    ] {
        let ledger = Ledger::default();
        let (executed, dropped) = (ledger.executed.clone(), ledger.dropped.clone());
        let wrap = |channel| caller.client(channel);
        let client = over_tcp!(Bincode::default, bank.serve(ledger.serve()), wrap);
        let left = client.patience(within(20_000), false).await.unwrap();
        assert!((1..=20_000).contains(&left), "{left}");
        let outcome = client.patience(within(100), true).await;
        assert!(matches!(outcome, Err(RpcError::DeadlineExceeded)), "{outcome:?}");
        until(|| dropped.load(Ordering::SeqCst) == 2).await;
        let cancelled = client.clone();
        let call = tokio::spawn(async move { cancelled.patience(within(60_000), true).await });
        until(|| executed.load(Ordering::SeqCst) == 3).await;
        call.abort();
        until(|| dropped.load(Ordering::SeqCst) == 3).await;
    }
}

/// Errors of the server come through as they are, with and without a session.
#[tokio::test]
async fn errors_come_through() {
    let session = ddbx::test::session().await;
    let alone = Process::without_session;
    for (caller, bank) in [
        (alone("caller"), alone("bank")),
        (session.process("caller"), alone("bank")),
        (alone("caller"), session.process("bank")),
        (session.process("caller"), session.process("bank")),
    ] {
        let refuse = tarpc::server::serve(|_, _: BankRequest| async {
            // The only kind that tarpc itself passes on unchanged as bincode.
            let kind = io::ErrorKind::NotFound;
            Err::<BankResponse, _>(tarpc::ServerError::new(kind, "closed".to_owned()))
        });
        let wrap = |channel| caller.client(channel);
        let client = over_tcp!(Bincode::default, bank.serve(refuse), wrap);
        let wrap = |channel| caller.client(channel);
        let in_words = over_tcp!(Json::default, bank.serve(refuse), wrap);
        for outcome in
            [client.balance(within(20_000), 7).await, in_words.balance(within(20_000), 7).await]
        {
            let Err(RpcError::Server(error)) = outcome else { panic!("{outcome:?}") };
            assert_eq!((error.kind, error.detail.as_str()), (io::ErrorKind::NotFound, "closed"));
        }
    }
}

/// How often a runtime waits for sockets, per call of a session in it.
macro_rules! waits_per_call {
    ($format:expr) => {{
        const CALLS: u64 = 200;
        let session = ddbx::test::session().await;
        let (caller, bank) = (session.process("caller"), session.process("bank"));
        let wrap = |channel| caller.client(channel);
        let client = over_tcp!($format, bank.serve(Ledger::default().serve()), wrap);
        // The first one introduces the two.
        client.balance(within(20_000), 7).await.unwrap();
        let waits = || tokio::runtime::Handle::current().metrics().worker_park_count(0);
        let before = waits();
        for _ in 0..CALLS {
            client.balance(within(20_000), 7).await.unwrap();
        }
        (waits() - before) as f64 / CALLS as f64
    }};
}

/// It waits for a request and for its response, and no timer that tarpc sets meanwhile makes it
/// look around in vain.
#[tokio::test]
async fn timers_of_a_session_wake_nobody_when_they_are_set() {
    let waits = waits_per_call!(Bincode::default);
    assert!(waits < 2.5, "{waits}");
}

#[tokio::test]
async fn nor_do_they_where_messages_are_text() {
    let waits = waits_per_call!(Json::default);
    assert!(waits < 2.5, "{waits}");
}

fn within(millis: u64) -> Context {
    let mut context = context::current();
    context.deadline = std::time::Instant::now() + std::time::Duration::from_millis(millis);
    context
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}
