//! `gateway`: where customers come in.

use tarpc::context::Context;
use tarpc::server::Channel as _;

use crate::api::{Customer, Gateway, Item, OrdersClient, Receipt, ToOrders, Trouble};
use crate::rendezvous::Rendezvous;
use crate::{Error, Options};

pub async fn run(options: &Options) -> Result<(), Error> {
    let here = Rendezvous::new(options, ddbx::init("gateway"));
    let orders =
        here.connect("orders", |ddbx, channel| OrdersClient::from(ddbx.client(channel))).await?;
    let server = Server { orders };
    here.serve("gateway", |ddbx, channel| channel.execute(ddbx.serve(server.clone().serve()))).await
}

#[derive(Clone)]
struct Server {
    orders: ToOrders,
}

impl Gateway for Server {
    async fn buy(self, ctx: Context, customer: Customer, item: Item) -> Result<Receipt, Trouble> {
        self.orders.client().await?.place(ctx, customer, item).await?
    }
}
