//! What goes over the wire: a wrapped end and a plain one never understand each
//! other by mistake, and without a session a wrapped service is like a plain one.

#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ddbx::Process;
use futures::StreamExt as _;
use tarpc::client::{self, RpcError};
use tarpc::context::{self, Context};
use tarpc::server::{BaseChannel, Channel as _};
use tarpc::tokio_serde::formats::{Bincode, Json};

#[tarpc::service]
trait Bank {
    async fn balance(account: u8) -> u64;
    async fn transfer(from: u8, to: u8);
}

#[derive(Clone, Default)]
struct Ledger {
    executed: Arc<AtomicU32>,
}

impl Bank for Ledger {
    async fn balance(self, _: Context, account: u8) -> u64 {
        self.executed.fetch_add(1, Ordering::SeqCst);
        u64::from(account) * 100
    }

    async fn transfer(self, _: Context, _: u8, _: u8) {
        self.executed.fetch_add(1, Ordering::SeqCst);
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
    let mut soon = context::current();
    soon.deadline = std::time::Instant::now() + std::time::Duration::from_millis(300);
    soon
}
