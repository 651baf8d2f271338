//! `race`: two orders for the last lamp, at the same time.

use std::fmt;

use serde::{Deserialize, Serialize};
use tokio::join;

use crate::api::{Customer, GatewayClient, InventoryClient, Item, Trouble};
use crate::rendezvous::Rendezvous;
use crate::{Error, Options};

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

/// Sees to it that there is exactly one lamp, and orders it twice at the same time.
pub async fn race(options: &Options) -> Result<Race, Error> {
    let here = Rendezvous::new(options, ddbx::init("race"));
    let gateway =
        here.connect("gateway", |ddbx, channel| GatewayClient::from(ddbx.client(channel))).await?;
    let inventory = here
        .connect("inventory", |ddbx, channel| InventoryClient::from(ddbx.client(channel)))
        .await?;
    let (gateway, inventory) = (gateway.client().await?, inventory.client().await?);
    let failed = |call| move |error| Error::Call { call, trouble: Trouble::from(error) };

    let left = inventory.left(options.context(), Item::Lamp).await;
    let missing = u32::try_from(1 - left.map_err(failed("Inventory.left"))?).unwrap_or_default();
    let restocked = inventory.restock(options.context(), Item::Lamp, missing).await;
    restocked.map_err(failed("Inventory.restock"))?;

    let buy =
        async |customer| gateway.buy(options.context(), Customer(customer), Item::Lamp).await?;
    let (one, other) = join!(buy(1), buy(2));

    let left = inventory.left(options.context(), Item::Lamp).await;
    let mut race =
        Race { sold: 0, left: left.map_err(failed("Inventory.left"))?, refusals: Vec::new() };
    for outcome in [one, other] {
        match outcome {
            Ok(_) => race.sold += 1,
            Err(trouble) => race.refusals.push(trouble.to_string()),
        }
    }
    Ok(race)
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_oversold() { "oversold" } else { "not oversold" };
        write!(f, "{verdict}: {} of 2 orders for the last lamp were taken", self.sold)?;
        write!(f, ", {} left", self.left)?;
        self.refusals.iter().try_for_each(|refusal| write!(f, "; refused: {refusal}"))
    }
}
