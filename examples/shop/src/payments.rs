//! `payments`: what things cost, and who pays.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tarpc::context::Context;
use tarpc::server::Channel as _;

use crate::api::{Authorisation, Cents, Customer, Item, Payments, Trouble};
use crate::rendezvous::Rendezvous;
use crate::{Error, Options};

pub async fn run(options: &Options) -> Result<(), Error> {
    let here = Rendezvous::new(options, ddbx::init("payments"));
    let server = Server::default();
    here.serve("payments", |ddbx, channel| channel.execute(ddbx.serve(server.clone().serve())))
        .await
}

#[derive(Clone, Default)]
struct Server {
    book: Arc<Mutex<Book>>,
}

#[derive(Default)]
struct Book {
    authorised_so_far: u64,
    /// Authorised and not yet charged.
    open: BTreeSet<Authorisation>,
}

impl Payments for Server {
    async fn quote(self, _: Context, item: Item) -> Cents {
        Cents(match item {
            Item::Apples => 40,
            Item::Bread => 350,
            Item::Cheese => 790,
            Item::Lamp => 4_900,
        })
    }

    async fn authorise(self, _: Context, _: Customer) -> Authorisation {
        let mut book = self.book();
        book.authorised_so_far += 1;
        let authorisation = Authorisation(book.authorised_so_far);
        book.open.insert(authorisation);
        authorisation
    }

    async fn charge(
        self,
        _: Context,
        authorisation: Authorisation,
        amount: Cents,
    ) -> Result<(), Trouble> {
        if self.book().open.remove(&authorisation) {
            return Ok(());
        }
        let (Authorisation(number), Cents(cents)) = (authorisation, amount);
        Err(Trouble::Failed(format!("nobody has authorised payment {number} of {cents} cents")))
    }
}

impl Server {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
