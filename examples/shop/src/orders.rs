//! `orders`: turns a wish into an order.

use tarpc::context::Context;
use tarpc::server::Channel as _;
use tokio::join;

use crate::api::{
    Customer, InventoryClient, Item, Orders, PaymentsClient, Receipt, RegistryClient, ToInventory,
    ToPayments, ToRegistry, Trouble,
};
use crate::rendezvous::Rendezvous;
use crate::{Error, Options};

pub async fn run(options: &Options) -> Result<(), Error> {
    let here = Rendezvous::new(options, ddbx::init("orders"));
    let registry = here
        .connect("registry", |ddbx, channel| RegistryClient::from(ddbx.client(channel)))
        .await?;
    let inventory = here
        .connect("inventory", |ddbx, channel| InventoryClient::from(ddbx.client(channel)))
        .await?;
    let payments = here
        .connect("payments", |ddbx, channel| PaymentsClient::from(ddbx.client(channel)))
        .await?;
    let server = Server { registry, inventory, payments };
    here.serve("orders", |ddbx, channel| channel.execute(ddbx.serve(server.clone().serve()))).await
}

#[derive(Clone)]
struct Server {
    registry: ToRegistry,
    inventory: ToInventory,
    payments: ToPayments,
}

impl Orders for Server {
    /// An order that fails half-way keeps what it has reserved: this shop has no undo.
    async fn place(self, ctx: Context, customer: Customer, item: Item) -> Result<Receipt, Trouble> {
        if !self.registry.client().await?.lookup(ctx, "inventory".to_owned()).await? {
            return Err(Trouble::NoLease);
        }
        let inventory = self.inventory.client().await?;
        let payments = self.payments.client().await?;
        let (reservation, authorisation) =
            join!(inventory.reserve(ctx, item), payments.authorise(ctx, customer));
        let reservation = reservation??;
        payments.charge(ctx, authorisation?, reservation.price).await??;
        Ok(Receipt { left: reservation.left })
    }
}
