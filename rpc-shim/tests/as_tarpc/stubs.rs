//! tarpc's own stubs over wrapped ones.

use std::hash::{BuildHasherDefault, DefaultHasher};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::join_all;
use tarpc::ServerError;
use tarpc::client::RpcError;
use tarpc::client::stub::load_balance::{ConsistentHash, RoundRobin};
use tarpc::client::stub::{Stub as _, retry::Retry};
use tarpc::context;
use tarpc::server::{self, BaseChannel};

use crate::settings::{connect, everywhere, over_tcp, serve, show, stub};

/// Stubs for servers that answer with their own number and what they were asked.
macro_rules! three_servers {
    ($world:expr) => {{
        let client = $world.process("client");
        let mut servers = Vec::new();
        for number in 1..=3 {
            let service =
                server::serve(
                    move |_, asked: String| async move { Ok(format!("{asked} at {number}")) },
                );
            servers.push(connect!(client, $world.process(&format!("server-{number}")), service));
        }
        servers
    }};
}

pub async fn round_robin() {
    let expected = ["\"a at 1\"", "\"b at 2\"", "\"c at 3\"", "\"d at 1\""];
    everywhere!(expected, |world| {
        let balanced = RoundRobin::new(three_servers!(world));
        let call = |asked: &str| balanced.call(world.soon(), asked.to_owned());
        join_all(["a", "b", "c", "d"].map(call)).await.into_iter().map(show).collect()
    });
}

/// The same question goes to the same server.
pub async fn consistent_hash() {
    everywhere!(["true"], |world| {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let balanced = ConsistentHash::with_hasher(three_servers!(world), hasher).unwrap();
        let call = |asked: &str| balanced.call(world.soon(), asked.to_owned());
        let answers = join_all(["a", "b", "a", "b"].map(call)).await;
        let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
        vec![(answers[..2] == answers[2..] && answers[0].starts_with("a at ")).to_string()]
    });
}

/// A stub for a server that fails as often as said and then answers.
macro_rules! fails_first {
    ($world:expr, $client:expr, $times:expr) => {{
        let attempts = Arc::new(AtomicU32::new(0));
        let service = server::serve(move |_, asked: String| async move {
            let attempt = attempts.fetch_add(1, Ordering::SeqCst);
            let failure = ServerError::new(io::ErrorKind::NotFound, "once more".into());
            if attempt < $times { Err(failure) } else { Ok(format!("{asked} after {attempt}")) }
        });
        let (near, far) = over_tcp!(Bincode);
        serve!(BaseChannel::with_defaults(far), $world.process("unsteady").serve(service));
        let again = |outcome: &Result<String, RpcError>, attempts| outcome.is_err() && attempts < 3;
        Retry::new(stub!($client, near), again)
    }};
}

pub async fn retry() {
    everywhere!(["\"a after 1\""], |world| {
        let stub = fails_first!(world, world.process("client"), 1);
        vec![show(stub.call(context::current(), "a".to_owned()).await)]
    });
}

pub async fn retry_in_vain() {
    everywhere!(["NotFound: once more"], |world| {
        let stub = fails_first!(world, world.process("client"), 9);
        vec![show(stub.call(context::current(), "b".to_owned()).await)]
    });
}

/// Every attempt has what is left of the one deadline of the handler that tries.
pub async fn retry_in_a_handler() {
    everywhere!(["\"a after 1\""], |world| {
        let front = world.process("front");
        let stub = fails_first!(world, front, 1);
        let service = server::serve(move |context, asked: String| async move {
            stub.call(context, asked).await.map_err(|error| {
                ServerError::new(io::ErrorKind::Other, format!("the inner call: {error}"))
            })
        });
        let client = connect!(world.process("client"), front, service);
        vec![show(client.call(world.soon(), "a".to_owned()).await)]
    });
}
