//! Clients of several replicas that choose the same one in every run. With tarpc's own
//! (`tarpc::client::stub::load_balance`) that is luck: one has a random seed, the other
//! counts calls that come side by side.

use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::num::TryFromIntError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tarpc::client::RpcError;
use tarpc::client::stub::Stub;
use tarpc::client::stub::load_balance::ConsistentHash;
use tarpc::context::Context;

use crate::choice::choice;
use crate::naming::{FNV_BASIS, fnv};

/// tarpc's consistent hash without a random seed: equal requests go to the same stub, in
/// every run.
///
/// ```
/// # use tarpc::{client::{RpcError, stub::Stub}, server};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), RpcError> {
/// # let replica = |name| server::serve(move |_, _: char| async move { Ok(name) });
/// # let context = tarpc::context::current;
/// let client = ddbx::load_balance::consistent_hash(vec![replica(1), replica(2)]).unwrap();
/// assert_eq!(client.call(context(), 'a').await?, client.call(context(), 'a').await?);
/// # Ok(())
/// # }
/// ```
pub fn consistent_hash<S: Stub>(
    stubs: Vec<S>,
) -> Result<ConsistentHash<S, SameHash>, TryFromIntError>
where
    S::Req: Hash,
{
    ConsistentHash::with_hasher(stubs, SameHash::default())
}

/// Makes hashers that give the same in every run.
pub type SameHash = BuildHasherDefault<SameHasher>;

/// A hasher that gives the same in every run: FNV-1a.
#[derive(Clone, Debug)]
pub struct SameHasher(u64);

impl Default for SameHasher {
    fn default() -> Self {
        Self(FNV_BASIS)
    }
}

impl Hasher for SameHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = fnv(bytes, self.0);
    }

    fn finish(&self) -> u64 {
        // The low bits of such a sum hardly depend on the last bytes.
        self.0 ^ (self.0 >> 32)
    }
}

/// One stub after the other. Whose turn it was is recorded as a choice of the control
/// that calls.
///
/// ```
/// # use tarpc::{client::{RpcError, stub::Stub}, server};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), RpcError> {
/// # let replica = |name| server::serve(move |_, _: char| async move { Ok(name) });
/// # let context = tarpc::context::current;
/// let client = ddbx::load_balance::round_robin(vec![replica(1), replica(2)]);
/// assert_eq!(client.call(context(), 'a').await?, 1);
/// assert_eq!(client.call(context(), 'a').await?, 2);
/// # Ok(())
/// # }
/// ```
///
/// # Panics
/// If there is no stub.
pub fn round_robin<S: Stub>(stubs: Vec<S>) -> RoundRobin<S> {
    assert!(!stubs.is_empty(), "there is no stub to call");
    RoundRobin(Arc::new(Stubs { stubs, next: AtomicUsize::new(0) }))
}

/// Made by [`round_robin`]. Clones take turns together.
#[derive(Debug)]
pub struct RoundRobin<S>(Arc<Stubs<S>>);

#[derive(Debug)]
struct Stubs<S> {
    stubs: Vec<S>,
    next: AtomicUsize,
}

impl<S> Clone for RoundRobin<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Stub> Stub for RoundRobin<S> {
    type Req = S::Req;
    type Resp = S::Resp;

    async fn call(&self, ctx: Context, request: S::Req) -> Result<S::Resp, RpcError> {
        let Stubs { stubs, next } = &*self.0;
        let nth = choice("round-robin", || next.fetch_add(1, Ordering::Relaxed) % stubs.len());
        stubs[nth % stubs.len()].call(ctx, request).await
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use futures::future::join_all;
    use tarpc::{context, server};

    use super::*;
    use crate::replaying::{luck, repeats};

    #[test]
    fn a_hash_is_the_same_in_every_run_and_spreads_requests() {
        let hash = |n: u32| SameHash::default().hash_one(("apple", n));
        let mut of_a = SameHasher::default();
        of_a.write(b"a");
        assert_eq!(of_a.finish(), 0xaf63_dc4c_8601_ec8c ^ 0xaf63_dc4c);
        for replicas in 2..6 {
            let of_first = (0..600).filter(|n| hash(*n) % replicas == 0).count() as u64;
            assert!((400..800).contains(&(of_first * replicas)), "{of_first} of {replicas}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn replicas_take_the_same_turns() {
        repeats(10, true, |_| async {
            let replica = |name| server::serve(move |_, _: u32| async move { Ok(name) });
            let client = round_robin((0..3).map(replica).collect());
            let calls = (0..9).map(|n| {
                let client = client.clone();
                crate::spawn(&format!("task-{n}"), async move {
                    luck().await;
                    client.call(context::current(), n).await.unwrap()
                })
            });
            join_all(calls).await.into_iter().map(Result::unwrap).collect::<Vec<u32>>()
        })
        .await;
    }
}
