//! `traffic`: customers who buy, and who count what becomes of it.

use std::fmt;
use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{sleep, timeout};

use crate::api::{
    Customer, GatewayClient, InventoryClient, Item, Receipt, RegistryClient, ToGateway,
    ToInventory, ToRegistry, Trouble,
};
use crate::rendezvous::Rendezvous;
use crate::{Error, Options, stop};

const ITEMS: [Item; 3] = [Item::Apples, Item::Bread, Item::Cheese];

/// With fewer left than this, a customer has the shelf filled up. More than there are
/// customers, so that nothing runs out.
const FEW: i64 = 20;
const REFILL: u32 = 100;

/// How much traffic, and for how long.
#[derive(Debug, Clone)]
pub struct Load {
    /// How many customers buy at the same time.
    pub customers: u32,
    /// What they buy and how long they pause follows from this.
    pub seed: u64,
    /// How often each customer buys; without it, until the end. With it, what happens
    /// depends on no clock that only people read: such traffic can be replayed.
    pub purchases: Option<u32>,
    /// When to stop; without it, when told to (SIGTERM or ctrl-c end it in any case).
    pub lasts: Option<Duration>,
    /// How often to report before the end, if at all.
    pub every: Option<Duration>,
    /// Stop when standard input is closed.
    pub until_stdin_closes: bool,
    /// Whether customers pause between purchases, as people do.
    pub pauses: bool,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            customers: 4,
            seed: 1,
            purchases: None,
            lasts: None,
            every: None,
            until_stdin_closes: false,
            pauses: true,
        }
    }
}

/// What became of the traffic so far. It is shown as one line of JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficReport {
    /// Orders that have ended, in whatever way.
    pub calls: u64,
    /// Orders that were taken.
    pub ok: u64,
    /// Orders that the shop refused: sold out, or inventory had no lease.
    pub refused: u64,
    /// Orders that failed because a deadline passed, at the gateway or further inside.
    pub deadline_errors: u64,
    /// Orders that failed in another way.
    pub other_errors: u64,
    /// The longest that an order took, in milliseconds.
    pub slowest_ms: u64,
    /// Leases that have run out, as the registry says. Nothing if it does not answer.
    pub leases_lost: Option<u64>,
    /// Items sold that were not there, as inventory says. Nothing if it does not answer.
    pub oversold: Option<u64>,
}

/// Lets customers buy until the load says that it is enough, or until the process is
/// told to stop. `on_report` sees the reports in between, not the last one.
pub async fn traffic(
    options: &Options,
    load: &Load,
    mut on_report: impl FnMut(&TrafficReport),
) -> Result<TrafficReport, Error> {
    let here = Rendezvous::new(options, ddbx::init("traffic"));
    let gateway =
        here.connect("gateway", |ddbx, channel| GatewayClient::from(ddbx.client(channel))).await?;
    let inventory = here
        .connect("inventory", |ddbx, channel| InventoryClient::from(ddbx.client(channel)))
        .await?;
    let registry = here
        .connect("registry", |ddbx, channel| RegistryClient::from(ddbx.client(channel)))
        .await?;
    // Whoever counts purchases waits for all of it, as calls have deadlines of their own.
    let patience = load.purchases.map_or_else(|| options.deadline(), |_| Duration::MAX);
    let tally = Arc::default();
    let options = options.clone();
    let crowd = Crowd { options, patience, tally, gateway, inventory, registry };

    let customers: Vec<_> = (1..=load.customers)
        .map(|number| {
            let random = Rng::with_seed(load.seed.wrapping_add(number.into()));
            let name = format!("customer-{number}");
            let buys = crowd.clone().buys(Customer(number), load.clone(), random);
            here.process().spawn(&name, buys)
        })
        .collect();
    let mut end = pin!(end(load));
    let going_home: Vec<_> = customers.iter().map(JoinHandle::abort_handle).collect();
    let mut all_have_bought = pin!(join_all(customers));
    loop {
        tokio::select! {
            () = &mut end => break,
            _ = &mut all_have_bought, if load.purchases.is_some() => break,
            () = after(load.every) => on_report(&crowd.report().await),
        }
    }
    going_home.iter().for_each(AbortHandle::abort);
    Ok(crowd.report().await)
}

async fn end(load: &Load) {
    let stdin_closed = async {
        if load.until_stdin_closes { stop::stdin_closed().await } else { pending().await }
    };
    tokio::select! {
        () = stdin_closed => (),
        () = after(load.lasts) => (),
        () = stop::signalled() => (),
    }
}

/// Waits in real time, like whoever reads the reports.
async fn after(length: Option<Duration>) {
    match length {
        Some(length) => sleep(length).await,
        None => pending().await,
    }
}

/// What all customers share.
#[derive(Clone)]
struct Crowd {
    options: Options,
    /// How long an answer for a report may take.
    patience: Duration,
    tally: Arc<Mutex<TrafficReport>>,
    gateway: ToGateway,
    inventory: ToInventory,
    registry: ToRegistry,
}

impl Crowd {
    /// One customer: buys, has the shelf filled up if it must be, pauses; so often, or
    /// for ever.
    async fn buys(self, customer: Customer, load: Load, mut random: Rng) {
        let mut bought = 0;
        while load.purchases.is_none_or(|purchases| bought < purchases) {
            bought += 1;
            let item = ITEMS[random.usize(..ITEMS.len())];
            let began = Instant::now();
            let outcome = self.buy(customer, item).await;
            self.tally().note(&outcome, began.elapsed());
            if outcome.is_ok_and(|receipt| receipt.left < FEW) {
                // If this fails the next customer will notice, and try again.
                let _ = self.restock(item).await;
            }
            if load.pauses {
                ddbx::time::sleep(Duration::from_millis(random.u64(5..25))).await;
            }
        }
    }

    async fn buy(&self, customer: Customer, item: Item) -> Result<Receipt, Trouble> {
        self.gateway.client().await?.buy(self.options.context(), customer, item).await?
    }

    async fn restock(&self, item: Item) -> Result<(), Trouble> {
        let inventory = self.inventory.client().await?;
        Ok(inventory.restock(self.options.context(), item, REFILL).await?)
    }

    async fn report(&self) -> TrafficReport {
        let (leases_lost, oversold) = tokio::join!(self.leases_lost(), self.oversold());
        TrafficReport { leases_lost, oversold, ..self.tally().clone() }
    }

    async fn leases_lost(&self) -> Option<u64> {
        let asked =
            async { self.registry.client().await.ok()?.report(self.options.context()).await.ok() };
        timeout(self.patience, asked).await.ok()?
    }

    async fn oversold(&self) -> Option<u64> {
        let asked = async {
            self.inventory.client().await.ok()?.oversold(self.options.context()).await.ok()
        };
        timeout(self.patience, asked).await.ok()?
    }

    fn tally(&self) -> MutexGuard<'_, TrafficReport> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TrafficReport {
    fn note(&mut self, outcome: &Result<Receipt, Trouble>, took: Duration) {
        self.calls += 1;
        *match outcome {
            Ok(_) => &mut self.ok,
            Err(Trouble::SoldOut(_) | Trouble::NoLease) => &mut self.refused,
            Err(Trouble::Deadline) => &mut self.deadline_errors,
            Err(Trouble::Failed(_)) => &mut self.other_errors,
        } += 1;
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.slowest_ms = self.slowest_ms.max(took_ms);
    }
}

impl fmt::Display for TrafficReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}
