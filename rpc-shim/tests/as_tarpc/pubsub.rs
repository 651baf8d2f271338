//! After tarpc's example `pubsub`: subscribers connect, and are served by those who
//! connected. Who is client and who is server is the other way round.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use futures::future::join_all;
use tarpc::context::Context;
use tarpc::server::{BaseChannel, Channel as _};

use crate::settings::{everywhere, over_tcp, serve, show, stub};

#[tarpc::service]
trait Subscriber {
    async fn topics() -> Vec<String>;
    async fn receive(topic: String, message: String);
}

#[tarpc::service]
trait Publisher {
    /// How many have received it.
    async fn publish(topic: String, message: String) -> usize;
}

#[derive(Clone)]
struct Reader {
    name: &'static str,
    topics: Vec<String>,
    received: Arc<Mutex<Vec<String>>>,
}

impl Subscriber for Reader {
    async fn topics(self, _: Context) -> Vec<String> {
        self.topics
    }

    async fn receive(self, _: Context, topic: String, message: String) {
        self.received.lock().unwrap().push(format!("{}: {topic}: {message}", self.name));
    }
}

#[derive(Clone)]
struct Desk<Stub> {
    readers: BTreeMap<String, Vec<SubscriberClient<Stub>>>,
}

impl<Stub: SubscriberStub + Clone + Send + Sync + 'static> Publisher for Desk<Stub> {
    async fn publish(self, context: Context, topic: String, message: String) -> usize {
        let readers = self.readers.get(&topic).into_iter().flatten();
        let sent = readers.map(|reader| reader.receive(context, topic.clone(), message.clone()));
        join_all(sent).await.into_iter().filter(Result::is_ok).count()
    }
}

/// Two readers of `shorts`; the first one may leave before something is published.
macro_rules! published {
    ($world:expr, $ada_leaves:expr) => {{
        let (desk, received) = ($world.process("desk"), Arc::new(Mutex::new(Vec::new())));
        let (mut serving, mut connected) = (Vec::new(), Vec::new());
        for name in ["ada", "bob"] {
            let topics = vec!["calculus".to_owned(), "shorts".to_owned()];
            let reader = Reader { name, topics, received: received.clone() };
            let (near, far) = over_tcp!(Json);
            let process = $world.process(name);
            serving.push(tokio::spawn(async move {
                let mut requests = BaseChannel::with_defaults(near).requests();
                // The first request is for the topics.
                let first = requests.next().await.unwrap().unwrap();
                tokio::spawn(first.execute(process.serve(reader.clone().serve())));
                let calls = requests.execute(process.serve(reader.serve()));
                calls.for_each(|call| async { drop(tokio::spawn(call)) }).await;
            }));
            connected.push(SubscriberClient::from(stub!(desk, far)));
        }
        let topics = join_all(connected.iter().map(|reader| reader.topics($world.soon()))).await;
        let mut readers = BTreeMap::<_, Vec<_>>::new();
        for (reader, topics) in connected.iter().zip(topics) {
            for topic in topics.unwrap() {
                readers.entry(topic).or_default().push(reader.clone());
            }
        }
        if $ada_leaves {
            let ada = serving.swap_remove(0);
            ada.abort();
            assert!(ada.await.unwrap_err().is_cancelled());
        }

        let (near, far) = over_tcp!(Json);
        serve!(BaseChannel::with_defaults(far), desk.serve(Desk { readers }.serve()));
        let publisher = PublisherClient::from(stub!($world.process("publisher"), near));
        let count = publisher.publish($world.soon(), "shorts".into(), "hello".into()).await;
        let mut received = received.lock().unwrap().clone();
        received.sort();
        [show(count)].into_iter().chain(received).collect()
    }};
}

pub async fn to_all() {
    everywhere!(["2", "ada: shorts: hello", "bob: shorts: hello"], |world| {
        published!(world, false)
    });
}

pub async fn to_who_is_left() {
    everywhere!(["1", "bob: shorts: hello"], |world| { published!(world, true) });
}
