//! Many processes of which there is only what they say to central. They are in groups of
//! ten, of which the first calls the other nine; what concerns one group concerns no other.

use std::ops::Range;
use std::time::{Duration, Instant};
use std::{io, thread};

use ddbx_protocol::link::{Address, Receiver, Role, Sender, dial};
use ddbx_protocol::session::HEARTBEAT;
use ddbx_protocol::{
    Attach, BreakpointId, ControlId, Delay, FromCentral, FromSatellite, Gate, MethodName,
    ProcessIndex, ProcessKey, ProcessName, RealTime, RpcEvent, Stack, Standing, Status, StopReason,
    ToCentral, ToSatellite,
};
use futures::future::try_join_all;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{sleep_until, timeout};

/// How many a hold in one of them concerns.
pub const GROUP: usize = 10;

const PATIENCE: Duration = Duration::from_secs(30);

/// When to beat if central does not, as the link of a satellite does.
const ALONE: Duration = HEARTBEAT.saturating_mul(2);

/// All of them; they leave when the runtime ends.
pub struct Satellites {
    /// What the first one shall say.
    says: UnboundedSender<FromSatellite>,
    /// Who was told something about holds and waits, what and when.
    told: UnboundedReceiver<(usize, ToSatellite, Instant)>,
    origin: Instant,
    breakpoint: BreakpointId,
    /// The delay of everybody in the first group.
    delay: Delay,
    _bystanders: Bystanders,
}

/// Those whom nothing concerns, until this is dropped.
type Bystanders = oneshot::Sender<()>;

/// Who was told something about holds and waits, what and when.
type Tell = UnboundedSender<(usize, ToSatellite, Instant)>;

impl Satellites {
    /// So many attach. Returns when all take part and central knows who calls whom.
    pub async fn attach(
        number: usize,
        address: &Address,
        breakpoint: BreakpointId,
    ) -> io::Result<Self> {
        let (tell, told) = unbounded_channel();
        let (says, to_say) = unbounded_channel();
        let origin = Instant::now();
        let bystanders = bystanders(number, address, tell.clone());
        let attached = attach_all(0..GROUP.min(number), number, address).await?;
        let mut to_say = Some(to_say);
        for (nth, sender, receiver) in attached {
            let (_, nothing) = unbounded_channel();
            let to_say = to_say.take().unwrap_or(nothing);
            tokio::spawn(take_part(nth, sender, receiver, to_say, tell.clone()));
        }
        let _bystanders = bystanders.await.map_err(io::Error::other)??;
        Ok(Self { says, told, origin, breakpoint, delay: Delay::ZERO, _bystanders })
    }

    /// Somebody stands still in the first one. How long it takes until all concerned know.
    pub async fn hold(&mut self, number: u64) -> io::Result<Duration> {
        while self.told.try_recv().is_ok() {}
        let began = Instant::now();
        self.stand(number)?;
        self.all_know(began).await
    }

    /// Says that somebody stands still.
    pub fn stand(&self, number: u64) -> io::Result<()> {
        let name = process_name(0);
        let control = ControlId::root(&name, &format!("order-{number}"));
        let method = MethodName::new("Inventory.reserve");
        let standing = Standing {
            gate: Gate::Rpc(RpcEvent::Arrive, method.map_err(io::Error::other)?),
            control: control.map_err(io::Error::other)?,
            args: Some(r#"{"item":"tea","count":3}"#.to_owned()),
            result: None,
            awaited: None,
        };
        self.say(FromSatellite::Stands { number, standing })?;
        let sent = self.now();
        self.say(FromSatellite::Says(ToCentral::Stopped {
            number,
            reason: StopReason::Breakpoint(self.breakpoint),
            stack: Stack::home(index(0)),
            clock: sent - self.delay,
            sent,
        }))
    }

    /// Once central lets it go on it does. How long it takes, from when that was asked
    /// for, until all concerned know.
    pub async fn goes_on(&mut self, number: u64, asked: Instant) -> io::Result<Duration> {
        let go_on = ToSatellite::Continue { number };
        loop {
            match self.next_told().await? {
                (0, told, _) if told == go_on => break,
                _ => {}
            }
        }
        self.delay += asked.elapsed();
        self.say(FromSatellite::Says(ToCentral::Gone { number, delay: self.delay }))?;
        self.all_know(asked).await
    }

    async fn all_know(&mut self, began: Instant) -> io::Result<Duration> {
        let mut knows = [false; GROUP];
        knows[0] = true;
        let mut last = began;
        while knows.contains(&false) {
            let (nth, _, at) = self.next_told().await?;
            if nth >= GROUP {
                return Err(io::Error::other(format!("process {nth} is not concerned, but told")));
            }
            knows[nth] = true;
            last = last.max(at);
        }
        Ok(last - began)
    }

    async fn next_told(&mut self) -> io::Result<(usize, ToSatellite, Instant)> {
        let told = timeout(PATIENCE, self.told.recv()).await;
        told.ok().flatten().ok_or_else(|| io::Error::other("not all concerned have been told"))
    }

    fn say(&self, message: FromSatellite) -> io::Result<()> {
        self.says.send(message).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn now(&self) -> RealTime {
        RealTime::default() + self.origin.elapsed()
    }
}

/// All but the first group, on a thread of their own: nobody waits for them.
fn bystanders(
    number: usize,
    address: &Address,
    tell: Tell,
) -> oneshot::Receiver<io::Result<Bystanders>> {
    let (ready, is_ready) = oneshot::channel();
    let address = address.clone();
    let stay = async move {
        match attach_all(GROUP..number, number, &address).await {
            Ok(attached) => {
                for (nth, sender, receiver) in attached {
                    let (_, nothing) = unbounded_channel();
                    tokio::spawn(take_part(nth, sender, receiver, nothing, tell.clone()));
                }
                let (leave, left) = oneshot::channel();
                let _ = ready.send(Ok(leave));
                let _ = left.await;
            }
            Err(error) => _ = ready.send(Err(error)),
        }
    };
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(stay);
    });
    is_ready
}

async fn attach_all(
    which: Range<usize>,
    of: usize,
    address: &Address,
) -> io::Result<Vec<(usize, Sender, Receiver)>> {
    try_join_all(which.map(|nth| attach(nth, of, address))).await
}

fn index(nth: usize) -> ProcessIndex {
    ProcessIndex(nth as u64 + 1)
}

fn process_name(nth: usize) -> ProcessName {
    ProcessName::new(format!("process-{nth}")).expect("a valid name")
}

async fn attach(nth: usize, of: usize, address: &Address) -> io::Result<(usize, Sender, Receiver)> {
    let connection = dial(address, None, Role::Satellite).await.map_err(io::Error::other)?;
    let (mut sender, mut receiver) = connection.split();
    let (process, name, pid) = (index(nth), process_name(nth), std::process::id());
    let key = ProcessKey::random()?;
    let attach = Attach { process, name, own_name: None, pid, key };
    say(&mut sender, &FromSatellite::Attach(attach)).await?;
    loop {
        match receiver.receive().await.map_err(io::Error::other)? {
            Some(FromCentral::Ready) => break,
            Some(_) => {}
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
    let calls = if nth.is_multiple_of(GROUP) { nth + 1..of.min(nth + GROUP) } else { 0..0 };
    for to in calls.map(index) {
        say(&mut sender, &FromSatellite::Says(ToCentral::Connected { to })).await?;
    }
    Ok((nth, sender, receiver))
}

/// What the satellite of a process does when nothing happens, and what it is told to.
async fn take_part(
    nth: usize,
    mut sender: Sender,
    mut receiver: Receiver,
    mut to_say: UnboundedReceiver<FromSatellite>,
    tell: Tell,
) -> io::Result<()> {
    let mut alone = Instant::now() + ALONE;
    loop {
        let message = tokio::select! {
            received = receiver.receive() => {
                match received.map_err(io::Error::other)? {
                    Some(FromCentral::Heartbeat) => FromSatellite::Status(Status::default()),
                    Some(FromCentral::Says(said)) => {
                        let _ = tell.send((nth, said, Instant::now()));
                        continue;
                    }
                    Some(FromCentral::Settle { query }) => FromSatellite::Settled { query },
                    Some(_) => continue,
                    None => return Err(io::ErrorKind::UnexpectedEof.into()),
                }
            }
            Some(message) = to_say.recv() => message,
            () = sleep_until(alone.into()) => FromSatellite::Status(Status::default()),
        };
        if matches!(message, FromSatellite::Status(_)) {
            alone = Instant::now() + ALONE;
        }
        say(&mut sender, &message).await?;
    }
}

async fn say(sender: &mut Sender, message: &FromSatellite) -> io::Result<()> {
    sender.send(message).await.map_err(io::Error::other)
}
