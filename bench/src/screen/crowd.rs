//! Processes of which there is only what they say: their satellites attach, say how they
//! are doing, and tell of events while somebody looks, as real ones do.
//!
//! A third of them take orders, each of which is a call to one of the second third, which
//! calls one of the last third. Now and then somebody there stands at a breakpoint.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, mem};

use ddbx_protocol::link::{Address, Role, Sender, dial};
use ddbx_protocol::session::HEARTBEAT;
use ddbx_protocol::{
    Attach, BreakpointId, CallId, CallPath, ControlId, Delay, Event, EventId, EventKind,
    EventNumber, FromCentral, FromSatellite, Gate, MethodName, ProcessIndex, ProcessKey,
    ProcessName, RealTime, RpcEvent, Stack, Standing, Status, StopReason, ToCentral,
};
use tokio::time::{MissedTickBehavior, interval, interval_at};

/// How often a satellite sends away what has happened, and how many events in one message.
const OBSERVED: Duration = Duration::from_millis(50);
const PIECE_MAX: usize = 128;

/// How often it is looked what happens next.
const HAPPENS: Duration = Duration::from_millis(5);

/// For how long somebody stands, and nobody until the next one does.
const STANDS: Duration = Duration::from_secs(1);

/// The events of an order.
const STEPS: u8 = 10;

/// How much happens.
#[derive(Clone, Copy)]
pub struct Traffic {
    pub processes: usize,
    pub events_per_second: u64,
}

/// All of them.
pub struct Crowd {
    processes: Vec<Process>,
    methods: [MethodName; 2],
    began: Instant,
    traffic: Traffic,
    /// How many events were sent to central.
    sent: AtomicU64,
}

struct Process {
    index: ProcessIndex,
    name: ProcessName,
    /// Whom it calls.
    calls: Vec<usize>,
    is_last: bool,
    told: Mutex<Told>,
    observed: AtomicBool,
}

#[derive(Default)]
struct Told {
    last: u64,
    made: u64,
    served: u64,
    waiting: Vec<Event>,
}

/// An order on its way.
struct Order {
    control: ControlId,
    way: [usize; 3],
    step: u8,
    delay: Delay,
    /// The message that is under way.
    sent: Option<EventId>,
}

impl Crowd {
    /// So many processes, of which nobody has attached yet.
    pub fn new(traffic: Traffic) -> Self {
        let third = traffic.processes / 3;
        let process = |nth: usize| {
            let (role, next) = match nth {
                nth if nth < third => ("gateway", Some(third)),
                nth if nth < 2 * third => ("orders", Some(2 * third)),
                _ => ("inventory", None),
            };
            let name = format!("{role}-{nth:02}");
            let calls = |next| (0..3).map(|other| next + (nth + other) % third).collect();
            Process {
                index: ProcessIndex(nth as u64 + 1),
                name: ProcessName::new(name).expect("a valid name"),
                calls: next.map_or_else(Vec::new, calls),
                is_last: next.is_none(),
                told: Mutex::default(),
                observed: AtomicBool::new(false),
            }
        };
        let method = |name: &str| MethodName::new(name).expect("a valid name");
        Self {
            processes: (0..traffic.processes).map(process).collect(),
            methods: [method("Orders.place"), method("Inventory.reserve")],
            began: Instant::now(),
            traffic,
            sent: AtomicU64::new(0),
        }
    }

    /// How many events were sent to central.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// All take part, for ever. Who stands does so at this breakpoint.
    pub fn start(self: &Arc<Self>, address: &Address, breakpoint: BreakpointId) {
        for nth in 0..self.processes.len() {
            let (crowd, address) = (self.clone(), address.clone());
            tokio::spawn(async move {
                let ended = crowd.take_part(nth, &address, breakpoint).await;
                eprintln!("{} is out: {ended:?}", crowd.processes[nth].name);
            });
        }
        if self.traffic.events_per_second > 0 {
            let crowd = self.clone();
            tokio::spawn(async move { crowd.happen().await });
        }
    }

    /// What the satellite of a process does.
    async fn take_part(
        &self,
        nth: usize,
        address: &Address,
        breakpoint: BreakpointId,
    ) -> io::Result<()> {
        let process = &self.processes[nth];
        let connection = dial(address, None, Role::Satellite).await.map_err(io::Error::other)?;
        let (mut sender, mut receiver) = connection.split();
        let (index, name) = (process.index, process.name.clone());
        let (pid, key) = (std::process::id(), ProcessKey::random()?);
        let attach = Attach { process: index, name, own_name: None, pid, key };
        say(&mut sender, FromSatellite::Attach(attach)).await?;
        for to in &process.calls {
            let to = self.processes[*to].index;
            say(&mut sender, FromSatellite::Says(ToCentral::Connected { to })).await?;
        }
        // Nobody began at the same time as another.
        let begins = |every: Duration| tokio::time::Instant::now() + every.mul_f64(fastrand::f64());
        let mut heartbeat = interval_at(begins(HEARTBEAT), HEARTBEAT);
        let mut sends = interval_at(begins(OBSERVED), OBSERVED);
        sends.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stands = interval_at(begins(STANDS), STANDS);
        let has_stands =
            self.traffic.events_per_second > 0 && process.is_last && nth.is_multiple_of(3);
        let mut stops = 0;
        loop {
            tokio::select! {
                received = receiver.receive::<FromCentral>() => match received {
                    Ok(Some(message)) => obey(process, &mut sender, message).await?,
                    Ok(None) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Err(error) => return Err(io::Error::other(error)),
                },
                _ = heartbeat.tick() => {
                    let Told { made, served, .. } = *process.told();
                    let status = Status { in_flight: 2, made, served, ..Status::default() };
                    say(&mut sender, FromSatellite::Status(status)).await?;
                }
                _ = sends.tick() => self.tell(process, &mut sender).await?,
                _ = stands.tick(), if has_stands => {
                    stops += 1;
                    self.stand(nth, stops, breakpoint, &mut sender).await?;
                }
            }
        }
    }

    /// Sends away what has happened.
    async fn tell(&self, process: &Process, sender: &mut Sender) -> io::Result<()> {
        let events = mem::take(&mut process.told().waiting);
        for piece in events.chunks(PIECE_MAX) {
            let events = FromSatellite::Events { events: piece.to_vec(), dropped: 0 };
            sender.feed(&events).await.map_err(io::Error::other)?;
            self.sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        sender.flush().await.map_err(io::Error::other)
    }

    /// Somebody stands still; every other time it goes on.
    async fn stand(
        &self,
        nth: usize,
        stops: u64,
        breakpoint: BreakpointId,
        sender: &mut Sender,
    ) -> io::Result<()> {
        let number = stops.div_ceil(2);
        if stops.is_multiple_of(2) {
            let delay = Delay::from(STANDS);
            return say(sender, FromSatellite::Says(ToCentral::Gone { number, delay })).await;
        }
        let process = &self.processes[nth];
        let standing = Standing {
            gate: Gate::Rpc(RpcEvent::Arrive, self.methods[1].clone()),
            control: control(&process.name, number),
            args: Some(r#"{"item":"tea","count":3}"#.to_owned()),
            result: None,
            awaited: None,
        };
        say(sender, FromSatellite::Stands { number, standing }).await?;
        let sent = self.clock(nth, self.nanos());
        let stopped = ToCentral::Stopped {
            number,
            reason: StopReason::Breakpoint(breakpoint),
            stack: Stack::home(process.index),
            clock: sent - Delay::ZERO,
            sent,
        };
        say(sender, FromSatellite::Says(stopped)).await
    }

    /// Orders come, and each of them takes some milliseconds.
    async fn happen(&self) {
        let mut under_way: BinaryHeap<(Reverse<i64>, u64)> = BinaryHeap::new();
        let mut orders = BTreeMap::new();
        let mut ticks = interval(HAPPENS);
        let (mut number, mut random) = (0, fastrand::Rng::with_seed(1));
        let nanos_per_order = 1_000_000_000 * u64::from(STEPS) / self.traffic.events_per_second;
        loop {
            ticks.tick().await;
            let now = self.nanos();
            while (number * nanos_per_order) as i64 <= now {
                under_way.push((Reverse((number * nanos_per_order) as i64), number));
                orders.insert(number, self.order(number, &mut random));
                number += 1;
            }
            while let Some((Reverse(at), of)) = under_way.peek().copied()
                && at <= now
            {
                under_way.pop();
                let Some(order) = orders.get_mut(&of) else { continue };
                self.step(order, at);
                match order.step {
                    STEPS => _ = orders.remove(&of),
                    _ => under_way.push((Reverse(at + random.i64(300_000..4_000_000)), of)),
                }
            }
        }
    }

    fn order(&self, number: u64, random: &mut fastrand::Rng) -> Order {
        let mut next = |of: usize| {
            let calls = &self.processes[of].calls;
            calls[random.usize(..calls.len())]
        };
        let first = number as usize % (self.traffic.processes / 3);
        let second = next(first);
        let control = control(&self.processes[first].name, number);
        let delay = Delay::from(Duration::from_millis(number / 100));
        Order { control, way: [first, second, next(second)], step: 0, delay, sent: None }
    }

    /// The next event of an order.
    fn step(&self, order: &mut Order, at: i64) {
        let control = order.control.clone();
        let outer = || CallId { control: order.control.clone(), path: CallPath::root(1) };
        let inner = || CallId { path: CallPath::root(1).child(1), ..outer() };
        let [place, reserve] = &self.methods;
        let sent_as = order.sent.take();
        let (whose, kind) = match order.step {
            0 => (0, EventKind::Spawned { control, by: None }),
            1 => (0, EventKind::CallSent { call: outer(), method: place.clone(), content: 1 }),
            2 => (1, EventKind::CallArrived { call: outer(), method: place.clone(), sent_as }),
            3 => (1, EventKind::CallSent { call: inner(), method: reserve.clone(), content: 1 }),
            4 => (2, EventKind::CallArrived { call: inner(), method: reserve.clone(), sent_as }),
            5 => (2, EventKind::ReturnSent { call: inner() }),
            6 => (1, EventKind::ReturnArrived { call: inner(), sent_as }),
            7 => (1, EventKind::ReturnSent { call: outer() }),
            8 => (0, EventKind::ReturnArrived { call: outer(), sent_as }),
            _ => (0, EventKind::Ended { control }),
        };
        if order.step == 4 {
            // Some of it was spent at a gate.
            order.delay += Duration::from_micros(200);
        }
        order.step += 1;
        let nth = order.way[whose];
        let process = &self.processes[nth];
        let mut told = process.told();
        told.last += 1;
        match &kind {
            EventKind::CallSent { .. } => told.made += 1,
            EventKind::CallArrived { .. } => told.served += 1,
            _ => {}
        }
        let id = EventId { process: process.name.clone(), number: EventNumber(told.last) };
        order.sent = kind.is_departure().then(|| id.clone());
        if process.observed.load(Ordering::Relaxed) {
            told.waiting.push(Event { id, at: self.clock(nth, at), delay: order.delay, kind });
        }
    }

    fn nanos(&self) -> i64 {
        self.began.elapsed().as_nanos() as i64
    }

    /// Clocks of processes have nothing to do with each other.
    fn clock(&self, nth: usize, nanos: i64) -> RealTime {
        RealTime::from_nanos(nanos + nth as i64 * 1_000_000_000)
    }
}

impl Process {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn obey(process: &Process, sender: &mut Sender, message: FromCentral) -> io::Result<()> {
    let answer = match message {
        FromCentral::Observe(observed) => {
            process.observed.store(observed, Ordering::Relaxed);
            return Ok(());
        }
        FromCentral::Calls { query, .. } => FromSatellite::Calls { query, calls: Vec::new() },
        FromCentral::Settle { query }
        | FromCentral::Finish { query }
        | FromCentral::GoOn { query } => FromSatellite::Settled { query },
        FromCentral::Welcome { .. }
        | FromCentral::Ready
        | FromCentral::Says(_)
        | FromCentral::Heartbeat => return Ok(()),
    };
    say(sender, answer).await
}

async fn say(sender: &mut Sender, message: FromSatellite) -> io::Result<()> {
    sender.send(&message).await.map_err(io::Error::other)
}

fn control(home: &ProcessName, number: u64) -> ControlId {
    ControlId::root(home, &format!("order-{number}")).expect("a valid name")
}
