//! What the services of the shop say to each other.

use std::fmt;

use ddbx::Client;
use serde::{Deserialize, Serialize};
use tarpc::client::RpcError;

use crate::Error;
use crate::rendezvous::Peer;

/// Where customers come in.
#[tarpc::service]
pub trait Gateway {
    /// Buys one of an item.
    async fn buy(customer: Customer, item: Item) -> Result<Receipt, Trouble>;
}

/// Turns a wish into an order: reserved, authorised, charged.
#[tarpc::service]
pub trait Orders {
    /// Places an order for one of an item.
    async fn place(customer: Customer, item: Item) -> Result<Receipt, Trouble>;
}

/// What is on the shelves.
#[tarpc::service]
pub trait Inventory {
    /// Takes one of an item from its shelf.
    async fn reserve(item: Item) -> Result<Reservation, Trouble>;
    /// Puts more of an item on its shelf.
    async fn restock(item: Item, count: u32);
    /// How many of an item are left. Below zero, some were sold that were not there.
    async fn left(item: Item) -> i64;
    /// How many were sold so far that were not there.
    async fn oversold() -> u64;
}

/// What things cost, and who pays.
#[tarpc::service]
pub trait Payments {
    /// What one of an item costs.
    async fn quote(item: Item) -> Cents;
    /// The customer can be charged, once.
    async fn authorise(customer: Customer) -> Authorisation;
    /// Charges the customer who was authorised.
    async fn charge(authorisation: Authorisation, amount: Cents) -> Result<(), Trouble>;
}

/// Who is there. A service that does not renew its lease in time is not.
#[tarpc::service]
pub trait Registry {
    /// Gives a service its lease, or gives it for longer.
    async fn renew(service: String);
    /// Whether a service holds a lease.
    async fn lookup(service: String) -> bool;
    /// How many leases have run out so far.
    async fn report() -> u64;
}

// A wrapped client has a type of its own, and whoever keeps one has to name it.
pub type ToGateway = Peer<GatewayClient<Client<GatewayRequest, GatewayResponse>>>;
pub type ToOrders = Peer<OrdersClient<Client<OrdersRequest, OrdersResponse>>>;
pub type ToInventory = Peer<InventoryClient<Client<InventoryRequest, InventoryResponse>>>;
pub type ToPayments = Peer<PaymentsClient<Client<PaymentsRequest, PaymentsResponse>>>;
pub type ToRegistry = Peer<RegistryClient<Client<RegistryRequest, RegistryResponse>>>;

/// What the shop sells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Item {
    Apples,
    Bread,
    Cheese,
    /// Never in normal traffic: the race is for the last one.
    Lamp,
}

/// Who buys.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Customer(pub u32);

/// An amount of money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cents(pub u64);

/// The right to charge a customer once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Authorisation(pub u64);

/// One of an item has been taken from its shelf.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Reservation {
    pub price: Cents,
    /// How many remained on the shelf.
    pub left: i64,
}

/// One of an item has been sold.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Receipt {
    /// How many remained on the shelf, so that the customers can have it filled up.
    pub left: i64,
}

/// Why an order failed.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
pub enum Trouble {
    /// The shelf is empty.
    #[error("{0} sold out")]
    SoldOut(Item),
    /// The registry does not know of inventory: its lease has run out.
    #[error("inventory has no lease")]
    NoLease,
    /// A call, here or further inside, took longer than its deadline.
    #[error("the deadline has passed")]
    Deadline,
    /// A call, here or further inside, failed for another reason.
    #[error("{0}")]
    Failed(String),
}

impl From<RpcError> for Trouble {
    fn from(error: RpcError) -> Self {
        match error {
            RpcError::DeadlineExceeded => Self::Deadline,
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Apples => "apples",
            Self::Bread => "bread",
            Self::Cheese => "cheese",
            Self::Lamp => "lamp",
        })
    }
}
