//! An account that is looked at before a nested call and changed after it: who comes in
//! between is luck.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ddbx::Client;
use tarpc::context::{self, Context};
use tarpc::server::Channel as _;
use tarpc::tokio_serde::formats::{Bincode, Json};

use tokio::signal::unix::{SignalKind, signal};

use crate::luck;
use crate::stage::Stage;

#[tarpc::service]
pub trait Bank {
    /// What is left, if there was enough.
    async fn withdraw(customer: u32, amount: i64) -> Option<i64>;
    /// The same in one go, without asking anybody.
    async fn fee(customer: u32) -> i64;
}

#[tarpc::service]
trait Auditor {
    async fn approve(customer: u32, amount: i64) -> bool;
    /// The how manieth question this is.
    async fn limit(customer: u32) -> u32;
}

type ToAuditor = AuditorClient<Client<AuditorRequest, AuditorResponse>>;

pub async fn serve_bank(stage: &Stage, is_polite: bool) {
    let channel = stage.connect("auditor", Json::default()).await;
    let bank = Account {
        auditor: AuditorClient::from(stage.process.client(channel)),
        balance: Arc::new(Mutex::new(100)),
    };
    let serve = |channel: tarpc::server::BaseChannel<_, _, _>| {
        channel.execute(stage.process.serve(bank.clone().serve()))
    };
    tokio::select! {
        () = stage.serve("bank", Bincode::default, serve) => {}
        () = asked_to_end(), if is_polite => {
            let auditor = bank.auditor.clone();
            let leaves = stage.process.spawn("leaves", async move {
                ddbx::point!("closing").await;
                // It may be gone already.
                let _ = auditor.limit(context::current(), 0).await;
            });
            leaves.await.expect("it ends");
        }
    }
}

pub async fn serve_auditor(stage: &Stage, is_silent: bool) {
    let auditor = Questions { is_silent, asked: Arc::default() };
    let serve = |channel: tarpc::server::BaseChannel<_, _, _>| {
        channel.execute(stage.process.serve(auditor.clone().serve()))
    };
    stage.serve("auditor", Json::default, serve).await;
}

async fn asked_to_end() {
    let mut asked = signal(SignalKind::terminate()).expect("a signal");
    asked.recv().await;
}

#[derive(Clone)]
struct Account {
    auditor: ToAuditor,
    balance: Arc<Mutex<i64>>,
}

impl Bank for Account {
    async fn withdraw(self, ctx: Context, customer: u32, amount: i64) -> Option<i64> {
        if *self.balance.lock().expect("a lock") < amount {
            return None;
        }
        // One over the same connection, side by side with the other.
        let (is_approved, asked) = tokio::join!(
            self.auditor.approve(ctx, customer, amount),
            self.auditor.limit(ctx, customer),
        );
        let amount = if asked.expect("an answer") % 2 == 0 { amount } else { amount + 1 };
        let mut balance = self.balance.lock().expect("a lock");
        is_approved.expect("an answer").then(|| {
            *balance -= amount;
            *balance
        })
    }

    async fn fee(self, _: Context, _: u32) -> i64 {
        let mut balance = self.balance.lock().expect("a lock");
        *balance -= 1;
        *balance
    }
}

#[derive(Clone)]
struct Questions {
    is_silent: bool,
    asked: Arc<Mutex<u32>>,
}

impl Auditor for Questions {
    async fn approve(self, _: Context, customer: u32, _: i64) -> bool {
        if self.is_silent {
            std::future::pending::<()>().await;
        }
        luck(4).await;
        ddbx::point!("thought", customer = customer).await;
        let asked = self.asked.lock().expect("a lock");
        !(customer == 2 && asked.is_multiple_of(5))
    }

    async fn limit(self, _: Context, _: u32) -> u32 {
        luck(2).await;
        ddbx::point!("looked").await;
        let mut asked = self.asked.lock().expect("a lock");
        *asked += 1;
        *asked
    }
}

/// What the customers do.
#[derive(clap::Args)]
pub struct Customers {
    /// How many
    #[arg(long, default_value_t = 4)]
    number: u32,
    /// How often each comes
    #[arg(long, default_value_t = 3)]
    visits: u32,
    /// Fail if there is less than nothing left
    #[arg(long)]
    fails_if_overdrawn: bool,
    /// And by a panic
    #[arg(long)]
    by_panic: bool,
    /// Exit in the middle of all that
    #[arg(long)]
    exits_early: bool,
    /// Also pay a fee, at the end
    #[arg(long)]
    pays_fee: bool,
    /// Pay a fee instead of each withdrawal
    #[arg(long)]
    pays_only: bool,
}

impl Customers {
    pub async fn play(&self, stage: &Stage) -> ExitCode {
        let channel = stage.connect("bank", Bincode::default()).await;
        let bank = BankClient::from(stage.process.client(channel));
        let (visits, pays_fee, pays_only) = (self.visits, self.pays_fee, self.pays_only);
        let customers = (1..=self.number).map(|customer| {
            let bank = bank.clone();
            stage.process.spawn(&format!("customer-{customer}"), async move {
                let mut least = 0;
                for visit in 1..=visits {
                    luck(6).await;
                    let mut ctx = context::current();
                    ctx.deadline += Duration::from_secs(60);
                    let left = match pays_only {
                        false => bank.withdraw(ctx, customer, 30).await.expect("an answer"),
                        true => Some(bank.fee(ctx, customer).await.expect("an answer")),
                    };
                    println!("customer {customer} visit {visit}: {left:?}");
                    least = least.min(left.unwrap_or(0));
                }
                if pays_fee {
                    let left = bank.fee(context::current(), customer).await.expect("an answer");
                    println!("customer {customer} pays: {left}");
                }
                least
            })
        });
        let customers: Vec<_> = customers.collect();
        if self.exits_early {
            luck(12).await;
            std::process::exit(0);
        }
        let mut least = 0;
        for customer in futures::future::join_all(customers).await {
            least = least.min(customer.expect("it ends"));
        }
        println!("least {least}");
        assert!(least >= 0 || !self.by_panic, "overdrawn");
        ExitCode::from(u8::from(self.fails_if_overdrawn && least < 0))
    }
}
