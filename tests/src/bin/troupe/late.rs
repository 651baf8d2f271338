//! Answers that come too late, or just in time.

use std::time::{Duration, Instant};

use ddbx::Client;
use tarpc::client::RpcError;
use tarpc::context::{self, Context};
use tarpc::server::Channel as _;
use tarpc::tokio_serde::formats::Bincode;

use crate::luck;
use crate::stage::Stage;

#[tarpc::service]
trait Leaf {
    /// Which replica has done it.
    async fn work(number: u32) -> String;
}

#[tarpc::service]
trait Relay {
    async fn fetch(asker: u32, number: u32) -> String;
}

type ToLeaf = LeafClient<Client<LeafRequest, LeafResponse>>;

fn within(ms: u64) -> Context {
    let mut ctx = context::current();
    ctx.deadline = Instant::now() + Duration::from_millis(ms);
    ctx
}

pub async fn serve_leaf(stage: &Stage) {
    let replica = std::env::var("DDBX_REPLICA").unwrap_or_else(|_| "1".to_owned());
    let leaf = OneLeaf { replica: replica.clone() };
    let serve = |channel: tarpc::server::BaseChannel<_, _, _>| {
        channel.execute(stage.process.serve(leaf.clone().serve()))
    };
    stage.serve(&format!("leaf-{replica}"), Bincode::default, serve).await;
}

#[derive(Clone)]
struct OneLeaf {
    replica: String,
}

impl Leaf for OneLeaf {
    async fn work(self, _: Context, number: u32) -> String {
        luck(12).await;
        ddbx::point!("half-way", number = number).await;
        luck(12).await;
        self.replica
    }
}

pub async fn serve_relay(stage: &Stage) {
    let mut leaves = Vec::new();
    for replica in 1..=2 {
        let channel = stage.connect(&format!("leaf-{replica}"), Bincode::default()).await;
        leaves.push(LeafClient::from(stage.process.client(channel)));
    }
    let relay = Hedge { first: leaves[0].clone(), second: leaves[1].clone() };
    let serve = |channel: tarpc::server::BaseChannel<_, _, _>| {
        channel.execute(stage.process.serve(relay.clone().serve()))
    };
    stage.serve("relay", Bincode::default, serve).await;
}

#[derive(Clone)]
struct Hedge {
    first: ToLeaf,
    second: ToLeaf,
}

impl Relay for Hedge {
    async fn fetch(self, ctx: Context, _: u32, number: u32) -> String {
        let Self { first, second } = self;
        let said = match number % 4 {
            // A deadline of its own.
            0 => first.work(within(12), number).await,
            // Whoever answers first.
            1 => tokio::select! {
                answer = first.work(ctx, number) => answer,
                answer = second.work(ctx, number) => answer,
            },
            // A second one if the first takes long.
            2 => {
                let mut slow = std::pin::pin!(first.work(ctx, number));
                tokio::select! {
                    answer = &mut slow => answer,
                    () = ddbx::time::sleep(Duration::from_millis(8)) => tokio::select! {
                        answer = slow => answer,
                        answer = second.work(ctx, number) => answer,
                    },
                }
            }
            // And again.
            _ => {
                let timeout = Duration::from_millis(10);
                match ddbx::time::timeout(timeout, first.work(ctx, number)).await {
                    Ok(answer) => answer,
                    Err(_) => second.work(ctx, number).await,
                }
            }
        };
        outcome(said)
    }
}

fn outcome(said: Result<String, RpcError>) -> String {
    match said {
        Ok(answer) => answer,
        Err(RpcError::DeadlineExceeded) => "late".to_owned(),
        Err(error) => format!("failed: {error}"),
    }
}

pub async fn ask(stage: &Stage) {
    let channel = stage.connect("relay", Bincode::default()).await;
    let relay = RelayClient::from(stage.process.client(channel));
    let askers = (1..=3).map(|asker| {
        let relay = relay.clone();
        stage.process.spawn(&format!("asker-{asker}"), async move {
            for number in 0..8 {
                let said = outcome(relay.fetch(within(18), asker, number).await);
                println!("asker {asker}, {number}: {said}");
            }
        })
    });
    futures::future::join_all(askers).await;
}
