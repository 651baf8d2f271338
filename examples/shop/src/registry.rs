//! `registry`: who is there. Whoever does not renew its lease in time is not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tarpc::context::Context;
use tarpc::server::Channel as _;
use tokio::task::JoinHandle;

use crate::api::Registry;
use crate::rendezvous::Rendezvous;
use crate::{Error, Options};

pub async fn run(options: &Options) -> Result<(), Error> {
    let here = Rendezvous::new(options, ddbx::init("registry"));
    let server = Server { length: options.lease(), leases: Arc::default() };
    here.serve("registry", |ddbx, channel| channel.execute(ddbx.serve(server.clone().serve())))
        .await
}

#[derive(Clone)]
struct Server {
    length: Duration,
    leases: Arc<Mutex<Leases>>,
}

#[derive(Default)]
struct Leases {
    held: BTreeMap<String, Lease>,
    given: u64,
    lost: u64,
}

struct Lease {
    number: u64,
    expiry: JoinHandle<()>,
}

impl Registry for Server {
    async fn renew(self, _: Context, service: String) {
        let mut leases = self.leases();
        leases.given += 1;
        let number = leases.given;
        let expiry = ddbx::spawn("lease", self.clone().expire(service.clone(), number));
        if let Some(previous) = leases.held.insert(service, Lease { number, expiry }) {
            previous.expiry.abort();
        }
    }

    async fn lookup(self, _: Context, service: String) -> bool {
        self.leases().held.contains_key(&service)
    }

    async fn report(self, _: Context) -> u64 {
        self.leases().lost
    }
}

impl Server {
    /// The end of a lease, unless it is aborted before.
    async fn expire(self, service: String, number: u64) {
        ddbx::time::sleep(self.length).await;
        let mut leases = self.leases();
        // A renewal may have come while this one waited for the lock: too late to be
        // aborted, but no longer the lease that is held.
        if leases.held.get(&service).is_some_and(|lease| lease.number == number) {
            leases.held.remove(&service);
            leases.lost += 1;
            eprintln!("registry: {service} has lost its lease");
        }
    }

    fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
