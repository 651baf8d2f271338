//! `race`: two orders for the last lamp, the second a little later.

use std::fmt;
use std::panic::resume_unwind;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::api::{
    Customer, GatewayClient, InventoryClient, Item, Receipt, ToGateway, ToInventory, Trouble,
};
use crate::rendezvous::Rendezvous;
use crate::{Error, Options};

/// By how much the second order comes later: the first is nearly always done by then,
/// and a few small delays are enough for it not to be.
pub const SECOND_AFTER: Duration = Duration::from_millis(15);

/// How a [`race`] has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Race {
    /// How many of the two orders were taken.
    pub sold: u32,
    /// How many lamps are left. Below zero, one was sold that was not there.
    pub left: i64,
    /// Why an order was not taken, if one was not.
    pub refusals: Vec<String>,
}

impl Race {
    /// Whether both got the last lamp.
    pub fn is_oversold(&self) -> bool {
        self.left < 0
    }
}

/// Sees to it that there is exactly one lamp, and orders it twice, the second time a
/// little later.
pub async fn race(options: &Options, second_after: Duration) -> Result<Race, Error> {
    let here = Rendezvous::new(options, ddbx::init("race"));
    let gateway =
        here.connect("gateway", |ddbx, channel| GatewayClient::from(ddbx.client(channel))).await?;
    let inventory = here
        .connect("inventory", |ddbx, channel| InventoryClient::from(ddbx.client(channel)))
        .await?;
    let lamp = Lamp { options: options.clone(), gateway, inventory };
    ended(here.process().spawn("main", lamp.sell_twice(second_after))).await
}

#[derive(Clone)]
struct Lamp {
    options: Options,
    gateway: ToGateway,
    inventory: ToInventory,
}

impl Lamp {
    async fn sell_twice(self, second_after: Duration) -> Result<Race, Error> {
        let inventory = self.inventory.client().await?;
        let failed = |call| move |error| Error::Call { call, trouble: Trouble::from(error) };

        let left = inventory.left(self.options.context(), Item::Lamp).await;
        let left = left.map_err(failed("Inventory.left"))?;
        let missing = u32::try_from(1 - left).unwrap_or_default();
        let restocked = inventory.restock(self.options.context(), Item::Lamp, missing).await;
        restocked.map_err(failed("Inventory.restock"))?;

        let (first, second) = (self.clone(), self.clone());
        let first = ddbx::spawn("customer-1", first.buy(Customer(1)));
        let second = ddbx::spawn("customer-2", async move {
            ddbx::time::sleep(second_after).await;
            second.buy(Customer(2)).await
        });
        let outcomes = [ended(first).await, ended(second).await];

        let left = inventory.left(self.options.context(), Item::Lamp).await;
        let left = left.map_err(failed("Inventory.left"))?;
        let mut race = Race { sold: 0, left, refusals: Vec::new() };
        for outcome in outcomes {
            match outcome {
                Ok(_) => race.sold += 1,
                Err(trouble) => race.refusals.push(trouble.to_string()),
            }
        }
        Ok(race)
    }

    async fn buy(self, customer: Customer) -> Result<Receipt, Trouble> {
        self.gateway.client().await?.buy(self.options.context(), customer, Item::Lamp).await?
    }
}

/// Nobody aborts these tasks: one that has no result has panicked.
async fn ended<T>(task: JoinHandle<T>) -> T {
    task.await.unwrap_or_else(|error| resume_unwind(error.into_panic()))
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_oversold() { "oversold" } else { "not oversold" };
        write!(f, "{verdict}: {} of 2 orders for the last lamp were taken", self.sold)?;
        write!(f, ", {} left", self.left)?;
        self.refusals.iter().try_for_each(|refusal| write!(f, "; refused: {refusal}"))
    }
}
