//! What the shop of the examples would record: customers who buy, and the calls that
//! each purchase takes.

#![allow(dead_code, reason = "shared by tests and examples")]

use ddbx_protocol::{
    CallId, CallPath, ConnectionId, ControlId, Delay, EventId, EventKind, EventNumber, MethodName,
    PointLabel, ProcessName, RealTime,
};
use ddbx_recording::Moment;
use fastrand::Rng;

pub const PROCESSES: [&str; 6] =
    ["traffic", "gateway", "orders", "inventory", "payments", "registry"];

const TRAFFIC: usize = 0;
const GATEWAY: usize = 1;
const ORDERS: usize = 2;
const INVENTORY: usize = 3;
const PAYMENTS: usize = 4;
const REGISTRY: usize = 5;

/// How the controls of customers are named.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Controls {
    /// One for each customer.
    Named,
    /// One for each purchase, named by what it calls.
    PerPurchase,
}

/// What is known of an event before all are put in order.
struct Planned {
    at: i64,
    process: usize,
    what: What,
}

#[derive(Clone)]
enum What {
    Simple(EventKind),
    Departs(EventKind, usize),
    CallArrives(CallId, MethodName, usize),
    ReturnArrives(CallId, usize),
    Accepts(ConnectionId, usize),
}

struct Plan {
    events: Vec<Planned>,
    messages: usize,
    rng: Rng,
}

/// The events of each process, in order.
pub fn shop(
    seed: u64,
    customers: u32,
    purchases: u32,
    controls: Controls,
) -> Vec<(ProcessName, Vec<Moment>)> {
    let mut plan = Plan { events: Vec::new(), messages: 0, rng: Rng::with_seed(seed) };
    plan.connections();
    for customer in 0..customers {
        let mut at = 1_000_000 + i64::from(customer) * 250_000;
        let mut nth = 0;
        for purchase in 0..purchases {
            let control = match controls {
                Controls::Named => format!("traffic/customer-{customer}"),
                Controls::PerPurchase => {
                    nth = 0;
                    let hash =
                        u64::from(customer * 3 + purchase % 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    format!("traffic/Gateway.buy-{hash:016x}-{}", purchase / 3 + 1)
                }
            };
            nth += 1;
            let (control, path) = (ControlId::new(control).unwrap(), CallPath::root(nth));
            at = plan.purchase(at, CallId { control, path });
            at += plan.rng.i64(0..5_000_000);
        }
    }
    plan.in_order()
}

impl Plan {
    fn connections(&mut self) {
        let pairs = [
            (TRAFFIC, GATEWAY),
            (GATEWAY, ORDERS),
            (ORDERS, INVENTORY),
            (ORDERS, PAYMENTS),
            (ORDERS, REGISTRY),
        ];
        for (at, (client, server)) in (0..).step_by(1000).zip(pairs) {
            let nth = if client == ORDERS { server as u32 - 2 } else { 1 };
            let connection = ConnectionId { client: name(client), nth };
            let message = self.message();
            let departs =
                What::Departs(EventKind::Connected { connection: connection.clone() }, message);
            self.events.push(Planned { at, process: client, what: departs });
            self.events.push(Planned {
                at: at + 500,
                process: server,
                what: What::Accepts(connection, message),
            });
        }
    }

    /// What is called while a call is handled, is numbered within it.
    fn purchase(&mut self, at: i64, call: CallId) -> i64 {
        let within = |outer: &Arrived, nth| CallId {
            control: outer.call.control.clone(),
            path: outer.call.path.child(nth),
        };
        let buy = self.send(at, call, TRAFFIC, GATEWAY, "Gateway.buy");
        let place = self.send(buy.at, within(&buy, 1), GATEWAY, ORDERS, "Orders.place");
        let lookup = self.send(place.at, within(&place, 1), ORDERS, REGISTRY, "Registry.lookup");
        let at = self.answer(&lookup, lookup.at);
        let reserve = self.send(at, within(&place, 2), ORDERS, INVENTORY, "Inventory.reserve");
        let authorise =
            self.send(at + 3_000, within(&place, 3), ORDERS, PAYMENTS, "Payments.authorise");
        let CallId { control, path } = reserve.call.clone();
        let label = PointLabel::new("reserved").unwrap();
        let point = EventKind::Point { control, call: Some(path), label };
        self.events.push(Planned {
            at: reserve.at + 1_000,
            process: INVENTORY,
            what: What::Simple(point),
        });
        let at =
            self.answer(&reserve, reserve.at + 2_000).max(self.answer(&authorise, authorise.at));
        let charge = self.send(at, within(&place, 4), ORDERS, PAYMENTS, "Payments.charge");
        let at = self.answer(&charge, charge.at);
        let at = self.answer(&place, at);
        self.answer(&buy, at)
    }

    fn send(&mut self, at: i64, call: CallId, from: usize, to: usize, method: &str) -> Arrived {
        let method = MethodName::new(method).unwrap();
        let message = self.message();
        let content = self.rng.u16(..);
        let departs = EventKind::CallSent { call: call.clone(), method: method.clone(), content };
        let sent_at = at + self.rng.i64(2_000..20_000);
        self.events.push(Planned {
            at: sent_at,
            process: from,
            what: What::Departs(departs, message),
        });
        let at = sent_at + self.rng.i64(20_000..120_000);
        let what = What::CallArrives(call.clone(), method, message);
        self.events.push(Planned { at, process: to, what });
        Arrived { call, from, to, at }
    }

    fn answer(&mut self, arrived: &Arrived, at: i64) -> i64 {
        let Arrived { call, from, to, .. } = arrived;
        let message = self.message();
        let sent_at = at + self.rng.i64(5_000..400_000);
        let departs = What::Departs(EventKind::ReturnSent { call: call.clone() }, message);
        self.events.push(Planned { at: sent_at, process: *to, what: departs });
        let at = sent_at + self.rng.i64(20_000..120_000);
        let what = What::ReturnArrives(call.clone(), message);
        self.events.push(Planned { at, process: *from, what });
        at
    }

    fn message(&mut self) -> usize {
        self.messages += 1;
        self.messages - 1
    }

    /// Gives each event its number; a departure has one before its arrival needs it.
    fn in_order(mut self) -> Vec<(ProcessName, Vec<Moment>)> {
        self.events.sort_by_key(|event| event.at);
        let mut logs: Vec<_> =
            (0..PROCESSES.len()).map(|index| (name(index), Vec::new())).collect();
        let mut departures: Vec<Option<EventId>> = vec![None; self.messages];
        for Planned { at, process, what } in self.events {
            let (name, moments) = &mut logs[process];
            let number = EventNumber(moments.len() as u64 + 1);
            let sent_as = |message: usize| departures[message].clone().unwrap();
            let kind = match what {
                What::Simple(kind) => kind,
                What::Departs(kind, message) => {
                    departures[message] = Some(EventId { process: name.clone(), number });
                    kind
                }
                What::CallArrives(call, method, message) => {
                    EventKind::CallArrived { call, method, sent_as: Some(sent_as(message)) }
                }
                What::ReturnArrives(call, message) => {
                    EventKind::ReturnArrived { call, sent_as: Some(sent_as(message)) }
                }
                What::Accepts(connection, message) => {
                    EventKind::Accepted { connection, sent_as: sent_as(message) }
                }
            };
            moments.push(Moment {
                number,
                at: RealTime::from_nanos(at),
                delay: Delay::ZERO,
                kind,
                payload: None,
            });
        }
        logs
    }
}

struct Arrived {
    call: CallId,
    from: usize,
    to: usize,
    at: i64,
}

fn name(index: usize) -> ProcessName {
    ProcessName::new(PROCESSES[index]).unwrap()
}
