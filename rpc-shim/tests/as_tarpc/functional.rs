//! After tarpc's tests `service_functional` and `dataservice`: what every user of
//! tarpc relies on.

use std::io;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::{join_all, try_join_all};
use tarpc::ServerError;
use tarpc::client::stub::Stub as _;
use tarpc::context::{self, Context};
use tarpc::server::incoming::{Incoming as _, spawn_incoming};
use tarpc::server::{self, BaseChannel, Channel as _};
use tarpc::transport::channel;
use tokio::sync::Notify;

use crate::settings::{OnDrop, connect, everywhere, over_tcp, serve, show, stub};

#[tarpc::service]
trait Sums {
    async fn add(x: i32, y: i32) -> i32;
    async fn greet(name: String) -> String;
}

#[derive(Clone)]
struct Abacus;

impl Sums for Abacus {
    async fn add(self, _: Context, x: i32, y: i32) -> i32 {
        x + y
    }

    async fn greet(self, _: Context, name: String) -> String {
        format!("Good day, {name}.")
    }
}

pub async fn a_function_as_a_service() {
    everywhere!(["2"], |world| {
        let successor = server::serve(|_, i: u32| async move { Ok(i + 1) });
        let client = connect!(world.process("client"), world.process("server"), successor);
        vec![show(client.call(world.soon(), 1).await)]
    });
}

pub async fn one_after_the_other() {
    everywhere!(["3", "\"Good day, Ada.\""], |world| {
        let (client, server) = (world.process("client"), world.process("server"));
        let sums = SumsClient::from(connect!(client, server, Abacus.serve()));
        let sum = sums.add(world.soon(), 1, 2).await;
        vec![show(sum), show(sums.greet(world.soon(), "Ada".into()).await)]
    });
}

/// tarpc's calls do nothing until they are awaited, but their deadlines run.
pub async fn made_first_and_awaited_later() {
    everywhere!(["3", "7"], |world| {
        let (client, server) = (world.process("client"), world.process("server"));
        let sums = SumsClient::from(connect!(client, server, Abacus.serve()));
        let first = sums.add(context::current(), 1, 2);
        let second = sums.add(context::current(), 3, 4);
        vec![show(first.await), show(second.await)]
    });
}

pub async fn joined() {
    everywhere!(["3", "\"Good day, Ada.\"", "1", "5", "Ok([11])"], |world| {
        let (client, server) = (world.process("client"), world.process("server"));
        let sums = SumsClient::from(connect!(client, server, Abacus.serve()));
        let add = |x, y| sums.add(world.soon(), x, y);
        let (one, two, all, tried) = tokio::join!(
            add(1, 2),
            sums.greet(world.soon(), "Ada".into()),
            join_all([add(0, 1), add(2, 3)]),
            try_join_all([add(10, 1)]),
        );
        let all = all.into_iter().map(show);
        let tried = format!("{:?}", tried.map_err(|error| error.to_string()));
        [show(one), show(two)].into_iter().chain(all).chain([tried]).collect()
    });
}

/// The first error ends a `try_join`, and with it the handlers that go on for ever.
pub async fn an_error_cancels_the_others() {
    everywhere!(["NotFound: no zero"], |world| {
        let (started, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (start, end) = (started.clone(), ended.clone());
        let service = server::serve(move |_, number: u32| async move {
            if number == 0 {
                return Err(ServerError::new(io::ErrorKind::NotFound, "no zero".into()));
            }
            let _end = OnDrop(end);
            start.notify_one();
            std::future::pending::<Result<u32, _>>().await
        });
        let client = connect!(world.process("client"), world.process("server"), service);
        let endless = client.call(world.soon(), 1);
        let failing = async {
            started.notified().await;
            client.call(world.soon(), 0).await
        };
        let outcome = show(futures::future::try_join(endless, failing).await);
        ended.notified().await;
        vec![outcome]
    });
}

/// A service that is borrowed for one call after the other.
pub async fn a_counter() {
    #[tarpc::service]
    trait Counter {
        async fn count() -> u32;
    }

    struct Clicks(u32);

    impl Counter for &mut Clicks {
        async fn count(self, _: Context) -> u32 {
            self.0 += 1;
            self.0
        }
    }

    everywhere!(["1", "2"], |world| {
        let (near, far) = channel::unbounded();
        let server = world.process("server");
        tokio::spawn(async move {
            let mut requests = BaseChannel::with_defaults(far).requests();
            let mut clicks = Clicks(0);
            while let Some(Ok(request)) = requests.next().await {
                request.execute(server.serve(clicks.serve())).await;
            }
        });
        let counter = CounterClient::from(stub!(world.process("client"), near));
        let first = counter.count(world.soon()).await;
        vec![show(first), show(counter.count(world.soon()).await)]
    });
}

/// A method whose name is a keyword, and a channel that is dropped with requests in
/// flight: they end, on both sides.
pub async fn a_dropped_channel_aborts_its_requests() {
    #[tarpc::service]
    trait Loop {
        async fn r#loop(turns: Option<u32>) -> u32;
    }

    #[derive(Clone)]
    struct Wheel;

    impl Loop for Wheel {
        async fn r#loop(self, _: Context, turns: Option<u32>) -> u32 {
            match turns {
                Some(turns) => turns,
                None => std::future::pending().await,
            }
        }
    }

    everywhere!(["7", "gone"], |world| {
        let (near, far) = channel::unbounded();
        let server = world.process("server");
        let wheel = LoopClient::from(stub!(world.process("client"), near));
        let first = wheel.clone();
        let time = world.soon();
        let first = tokio::spawn(async move { first.r#loop(time, Some(7)).await });
        let mut requests = BaseChannel::with_defaults(far).requests();
        let request = requests.next().await.unwrap().unwrap();
        tokio::spawn(request.execute(server.serve(Wheel.serve())));
        // Somebody has to go on asking, or the answer would not leave.
        let next = tokio::spawn(async move { (requests.next().await, requests) });
        let first = show(first.await.unwrap());

        let time = world.soon();
        let second = tokio::spawn(async move { wheel.r#loop(time, None).await });
        let (request, requests) = next.await.unwrap();
        drop(requests);
        // It would never end if the channel did not end it.
        request.unwrap().unwrap().execute(server.serve(Wheel.serve())).await;
        vec![first, show(second.await.unwrap())]
    });
}

/// Types of one's own over the wire, and servers of incoming connections.
pub async fn types_of_ones_own() {
    #[tarpc::derive_serde]
    #[derive(Debug, PartialEq, Eq)]
    pub enum Colour {
        Black,
        White,
    }

    #[tarpc::service]
    trait Opposites {
        async fn opposite(colour: Colour) -> Colour;
    }

    #[derive(Clone)]
    struct Painter;

    impl Opposites for Painter {
        async fn opposite(self, _: Context, colour: Colour) -> Colour {
            match colour {
                Colour::Black => Colour::White,
                Colour::White => Colour::Black,
            }
        }
    }

    everywhere!(["Black"], |world| {
        let (near, far) = over_tcp!(Json);
        let incoming = futures::stream::iter([BaseChannel::with_defaults(far)]);
        let painter = world.process("painter").serve(Painter.serve());
        tokio::spawn(spawn_incoming(incoming.execute(painter)));
        let opposites = OppositesClient::from(stub!(world.process("client"), near));
        vec![show(opposites.opposite(world.soon(), Colour::White).await)]
    });
}

/// A few at a time, and an answer that does not fit in one packet.
pub async fn a_few_and_a_large_one() {
    everywhere!(["3", "200000"], |world| {
        let (near, far) = over_tcp!(Bincode);
        let server = world.process("server");
        serve!(BaseChannel::with_defaults(far), server.serve(Abacus.serve()));
        let sums = SumsClient::from(stub!(world.process("client"), near));
        let calls = (0..3).map(|number| sums.add(world.soon(), number, 0));
        let (sums_of_all, large) = tokio::join!(
            try_join_all(calls),
            sums.greet(world.soon(), "x".repeat(200_000 - "Good day, .".len()))
        );
        let sum: Result<i32, _> = sums_of_all.map(|all| all.iter().sum());
        vec![show(sum), show(large.map(|text| text.len()))]
    });
}
