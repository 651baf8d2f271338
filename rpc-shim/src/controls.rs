//! The controls that are in a process now, and what else people want to see of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ddbx_protocol::attach::{DroppedHere, VALUE_BYTES_MAX, WATCHED_BYTES_MAX, WATCHED_MAX};
use ddbx_protocol::control::NAMES_MAX;
use ddbx_protocol::{
    ControlId, EventId, EventNumber, InFlight, MethodName, Names, PointLabel, ProcessIndex,
    ProcessName, Status,
};
use ddbx_satellite::driver::Report;
use ddbx_satellite::logic::strand::Strand;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::capture;
use crate::deadlines::Deadlines;
use crate::envelope::Hello;
use crate::homes;
use crate::methods::{self, METHODS_MAX, Method};
use crate::naming::{self, Likes, Roots};
use crate::seats::Seats;

/// How many connections are remembered. One that was forgotten is met again.
const CONNECTIONS_MAX: usize = 64 * 1024;

/// How many bits a word has.
const BITS: usize = u64::BITS as usize;

/// Of how many processes the names are remembered. One that was forgotten introduces itself
/// with its next connection.
const PEERS_MAX: usize = 16 * 1024;

pub(crate) struct Controls {
    /// The process.
    of: ProcessIndex,
    pub(crate) seats: Seats,
    /// Names of those that begin here.
    roots: Mutex<Roots>,
    likes: Likes,
    peers: Mutex<BTreeMap<ProcessIndex, ProcessName>>,
    /// How many times a name of theirs was news.
    peers_met: AtomicU64,
    /// Connections of others that have been accepted.
    accepted: Mutex<BTreeSet<(ProcessIndex, u32)>>,
    watched: Mutex<BTreeMap<String, Value>>,
    redacted: Mutex<Vec<String>>,
    /// Whether there are any.
    hides: AtomicBool,
    /// What was handled here, and passed.
    methods: Mutex<BTreeSet<MethodName>>,
    /// A bit for each method that is known to be among them.
    handled: Box<[AtomicU64]>,
    points: Mutex<BTreeSet<PointLabel>>,
    pub(crate) deadlines: Deadlines,
    /// Whether any call of this process was ever answered.
    pub(crate) ever_answered: AtomicBool,
    /// In a replay: by how much the clock showed more when it was recorded.
    pub(crate) recorded_ahead: AtomicI64,
    pub(crate) served: AtomicU64,
    /// Calls that controls have made. With every other one that is made here a control begins.
    pub(crate) made_by_controls: AtomicU64,
    /// Controls from outside that have begun with a call that came from there.
    pub(crate) came_from_outside: AtomicU64,
    connections: AtomicU32,
    /// What there was no room for.
    names_dropped: AtomicU64,
    peers_dropped: AtomicU64,
    watched_dropped: AtomicU64,
}

impl Controls {
    /// Of this process.
    pub(crate) fn new(of: ProcessIndex) -> Self {
        Self {
            of,
            seats: Seats::new(of),
            roots: Mutex::default(),
            likes: Likes::default(),
            peers: Mutex::default(),
            peers_met: AtomicU64::new(0),
            accepted: Mutex::default(),
            watched: Mutex::default(),
            redacted: Mutex::default(),
            hides: AtomicBool::new(false),
            methods: Mutex::default(),
            handled: (0..=METHODS_MAX / BITS).map(|_| AtomicU64::new(0)).collect(),
            points: Mutex::default(),
            deadlines: Deadlines::default(),
            ever_answered: AtomicBool::new(false),
            recorded_ahead: AtomicI64::new(0),
            served: AtomicU64::new(0),
            made_by_controls: AtomicU64::new(0),
            came_from_outside: AtomicU64::new(0),
            connections: AtomicU32::new(0),
            names_dropped: AtomicU64::new(0),
            peers_dropped: AtomicU64::new(0),
            watched_dropped: AtomicU64::new(0),
        }
    }

    /// Which of those a control is that begin here with such a call, from outside, whose
    /// arguments have this hash.
    #[inline]
    pub(crate) fn nth_root(&self, has_course: bool, method: &Method, hash: u64) -> u32 {
        match has_course {
            true => self.nth_root_exactly(method, hash),
            false => self.likes.of_call(hash),
        }
    }

    #[inline(never)]
    fn nth_root_exactly(&self, method: &Method, hash: u64) -> u32 {
        lock(&self.roots).of_call(method, hash)
    }

    /// A hash of arguments. Of what nobody shall see it could be tried out.
    pub(crate) fn hash<T: Serialize>(&self, args: &T) -> u64 {
        match self.hides.load(Ordering::Acquire) {
            true => naming::hash(&capture::args(self, args)),
            false => naming::hash(args),
        }
    }

    /// The name of a control that begins here and was given one.
    pub(crate) fn named_root(&self, process: &ProcessName, name: &str) -> ControlId {
        lock(&self.roots).named(process, name)
    }

    pub(crate) fn next_connection(&self) -> u32 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A peer has introduced itself. If that is news, whoever must know is told before anybody
    /// can see that it is none any more.
    pub(crate) fn meet(&self, process: ProcessIndex, name: &ProcessName, tell: impl FnOnce()) {
        let mut peers = lock(&self.peers);
        if peers.get(&process) == Some(name) {
            return;
        }
        if peers.len() >= PEERS_MAX && !peers.contains_key(&process) {
            peers.pop_first();
            self.peers_dropped.fetch_add(1, Ordering::Relaxed);
        }
        peers.insert(process, name.clone());
        self.peers_met.fetch_add(1, Ordering::Release);
        tell();
    }

    /// A call comes over this connection; true for the first one.
    pub(crate) fn meet_connection(&self, caller: ProcessIndex, hello: &Hello) -> bool {
        let mut accepted = lock(&self.accepted);
        if accepted.len() >= CONNECTIONS_MAX {
            accepted.clear();
        }
        accepted.insert((caller, hello.connection))
    }

    /// The name of another process.
    pub(crate) fn peer(&self, process: ProcessIndex) -> ProcessName {
        let known = lock(&self.peers).get(&process).cloned();
        known.unwrap_or_else(|| naming::process(&process.to_string()))
    }

    /// The same, of one in which controls begin that call here: to be told to others. None if it
    /// has to be made each time.
    #[inline]
    pub(crate) fn home(&self, process: ProcessIndex) -> Option<&'static ProcessName> {
        let known_by = (self.of, self.peers_met.load(Ordering::Acquire));
        homes::known(known_by, process, || self.peer(process))
    }

    /// An event of another process.
    pub(crate) fn event_of(&self, process: ProcessIndex, number: EventNumber) -> EventId {
        EventId { process: self.peer(process), number }
    }

    /// The same, of a departure that may not have been noted.
    pub(crate) fn departure(&self, process: ProcessIndex, sent: EventNumber) -> Option<EventId> {
        (sent != EventNumber::default()).then(|| self.event_of(process, sent))
    }

    /// A method that is handled here.
    #[inline]
    pub(crate) fn handled(&self, name: &str) -> &'static Method {
        let method = methods::method(name);
        let (word, bit) = (&self.handled[method.nth / BITS], 1 << (method.nth % BITS));
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
            self.meet_name(&self.methods, &method.name);
        }
        method
    }

    /// The label of a point that is passed here.
    pub(crate) fn passed(&self, label: &str, here: ProcessIndex) -> PointLabel {
        let (label, is_news) = naming::passed(label, here);
        if is_news {
            self.meet_name(&self.points, &label);
        }
        label
    }

    pub(crate) fn watch(&self, name: &str, value: Value) {
        let mut watched = lock(&self.watched);
        if watched.len() < WATCHED_MAX || watched.contains_key(name) {
            let value = if self.is_redacted(name) { hidden() } else { self.redact(value) };
            watched.insert(name.to_owned(), value);
        } else {
            self.watched_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Keeps a name that was met, while there is room.
    fn meet_name<N: Ord + Clone>(&self, names: &Mutex<BTreeSet<N>>, name: &N) {
        let mut names = lock(names);
        if names.len() < NAMES_MAX {
            names.insert(name.clone());
        } else if !names.contains(name) {
            self.names_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn set_redacted(&self, fields: impl IntoIterator<Item = String>) {
        let mut redacted = lock(&self.redacted);
        redacted.extend(fields);
        self.hides.store(!redacted.is_empty(), Ordering::Release);
    }

    fn is_redacted(&self, name: &str) -> bool {
        lock(&self.redacted).iter().any(|field| field == name)
    }

    /// Hides the values of the fields that are not to be seen, at any depth. Values
    /// come from the program itself, through serde_json, which bounds their depth
    /// only when it reads: so this does not recurse.
    pub(crate) fn redact(&self, mut value: Value) -> Value {
        let redacted = lock(&self.redacted);
        if redacted.is_empty() {
            return value;
        }
        let mut to_visit = vec![&mut value];
        while let Some(value) = to_visit.pop() {
            match value {
                Value::Array(items) => to_visit.extend(items),
                Value::Object(fields) => {
                    for (name, value) in fields {
                        match redacted.contains(name) {
                            true => *value = hidden(),
                            false => to_visit.push(value),
                        }
                    }
                }
                _ => {}
            }
        }
        value
    }
}

/// Watched values as text, as many as can be told.
fn shown(watched: &BTreeMap<String, Value>) -> Vec<(String, String)> {
    let mut bytes = 0;
    let text = |value: &Value| match value.to_string() {
        text if text.len() > VALUE_BYTES_MAX => format!("\"({} bytes)\"", text.len()),
        text => text,
    };
    let fits = |(name, value): &(String, String)| {
        bytes += name.len() + value.len();
        bytes <= WATCHED_BYTES_MAX
    };
    let all = watched.iter().map(|(name, value)| (name.clone(), text(value)));
    all.take_while(fits).collect()
}

fn hidden() -> Value {
    Value::String("(redacted)".to_owned())
}

impl Report for Controls {
    fn calls(&self) -> Vec<InFlight> {
        self.seats.all().iter().filter_map(|control| control.in_flight()).collect()
    }

    fn inside(&self) -> Vec<Strand> {
        self.seats.all().iter().filter_map(|control| control.inside()).collect()
    }

    fn status(&self) -> Status {
        let watched = lock(&self.watched);
        let shown = shown(&watched);
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let not_shown = (watched.len() - shown.len()) as u64;
        let from_outside = lock(&self.roots).counted() + self.likes.counted();
        let begun_by_calling = from_outside.saturating_sub(count(&self.came_from_outside));
        Status {
            in_flight: self.calls().len() as u64,
            served: count(&self.served),
            made: count(&self.made_by_controls) + begun_by_calling,
            from_outside,
            breakpoints: Vec::new(),
            watched: shown,
            recorded: None,
            dropped: DroppedHere {
                events: 0,
                names: count(&self.names_dropped),
                watched: count(&self.watched_dropped) + not_shown,
                peers: count(&self.peers_dropped),
            },
        }
    }

    fn names(&self, known: usize) -> Option<Names> {
        let (methods, points) = (lock(&self.methods), lock(&self.points));
        (methods.len() + points.len() > known).then(|| Names {
            methods: methods.iter().cloned().collect(),
            points: points.iter().cloned().collect(),
        })
    }

    fn watched(&self) -> Map<String, Value> {
        lock(&self.watched).iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_counted_and_the_status_stays_small() {
        let controls = Controls::new(ProcessIndex(1));
        let long = Value::String("x".repeat(VALUE_BYTES_MAX));
        controls.watch("a_long_one", long);
        for nth in 0..2 * WATCHED_MAX {
            controls.watch(&format!("value_{nth:04}"), Value::String("y".repeat(1_000)));
            controls.meet_name(&controls.methods, &MethodName::new(format!("M.m{nth}")).unwrap());
            controls.meet_name(&controls.methods, &MethodName::new("M.m0").unwrap());
        }
        let process = |nth| (ProcessIndex(nth), ProcessName::new("p").unwrap());
        for (index, name) in (0..PEERS_MAX as u64 + 3).map(process) {
            controls.meet(index, &name, || ());
        }
        let status = controls.status();
        let bytes: usize = status.watched.iter().map(|(name, v)| name.len() + v.len()).sum();
        assert!(bytes <= WATCHED_BYTES_MAX, "{bytes}");
        assert!(status.watched[0].1.contains("bytes"), "{:?}", status.watched[0]);
        let not_told = (2 * WATCHED_MAX + 1 - status.watched.len()) as u64;
        let names = (2 * WATCHED_MAX - NAMES_MAX) as u64;
        let expected = DroppedHere { events: 0, names, watched: not_told, peers: 3 };
        assert_eq!(status.dropped, expected);
        assert_eq!(lock(&controls.peers).len(), PEERS_MAX);
    }
}
