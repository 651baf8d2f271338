//! `inventory`: what is on the shelves. It has to keep its lease at the registry, and
//! it has a race.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tarpc::context::Context;
use tarpc::server::Channel as _;

use crate::api::{
    Inventory, Item, PaymentsClient, RegistryClient, Reservation, ToPayments, ToRegistry, Trouble,
};
use crate::rendezvous::Rendezvous;
use crate::{Error, Options};

/// How many there are of everything but lamps when the shop opens.
const OPENING_STOCK: i64 = 100;

pub async fn run(options: &Options) -> Result<(), Error> {
    let here = Rendezvous::new(options, ddbx::init("inventory"));
    let payments = here
        .connect("payments", |ddbx, channel| PaymentsClient::from(ddbx.client(channel)))
        .await?;
    let registry = here
        .connect("registry", |ddbx, channel| RegistryClient::from(ddbx.client(channel)))
        .await?;

    // Nobody may find us before we have a lease.
    while let Err(trouble) = renew(&registry, options).await {
        eprintln!("inventory: no lease yet: {trouble}");
    }
    let options = options.clone();
    here.process().spawn("renewal", async move {
        loop {
            ddbx::time::sleep(options.renewal()).await;
            if let Err(trouble) = renew(&registry, &options).await {
                eprintln!("inventory: the lease was not renewed: {trouble}");
            }
        }
    });

    let server = Server { stock: Arc::new(Mutex::new(Stock::at_opening())), payments };
    here.serve("inventory", |ddbx, channel| channel.execute(ddbx.serve(server.clone().serve())))
        .await
}

async fn renew(registry: &ToRegistry, options: &Options) -> Result<(), Trouble> {
    let registry = registry.client().await?;
    Ok(registry.renew(options.context(), "inventory".to_owned()).await?)
}

#[derive(Clone)]
struct Server {
    stock: Arc<Mutex<Stock>>,
    payments: ToPayments,
}

struct Stock {
    left: BTreeMap<Item, i64>,
    oversold: u64,
}

impl Inventory for Server {
    /// Looks, asks for the price, and takes. While it asks, another order may take the
    /// last one, and nobody looks again: this is the race.
    async fn reserve(self, ctx: Context, item: Item) -> Result<Reservation, Trouble> {
        if self.stock().left(item) <= 0 {
            return Err(Trouble::SoldOut(item));
        }
        let price = self.payments.client().await?.quote(ctx, item).await?;
        ddbx::point!("reserve", item = item).await;
        let left = self.stock().take(item);
        Ok(Reservation { price, left })
    }

    async fn restock(self, _: Context, item: Item, count: u32) {
        *self.stock().left.entry(item).or_default() += i64::from(count);
    }

    async fn left(self, _: Context, item: Item) -> i64 {
        self.stock().left(item)
    }

    async fn oversold(self, _: Context) -> u64 {
        self.stock().oversold
    }
}

impl Server {
    fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stock {
    fn at_opening() -> Self {
        let left = [Item::Apples, Item::Bread, Item::Cheese].map(|item| (item, OPENING_STOCK));
        Self { left: left.into(), oversold: 0 }
    }

    fn left(&self, item: Item) -> i64 {
        self.left.get(&item).copied().unwrap_or_default()
    }

    /// Takes one, also if it is not there. Gives what is left.
    fn take(&mut self, item: Item) -> i64 {
        let left = self.left.entry(item).or_default();
        *left -= 1;
        if *left < 0 {
            self.oversold += 1;
        }
        *left
    }
}
