//! A small run of four processes: calls within calls, a point, a deadline, and somebody who
//! was held for 40 ms.

#![allow(dead_code, reason = "shared by tests")]

use std::collections::BTreeMap;

use ddbx_protocol::{
    CallId, CallPath, ControlId, Delay, End, Event, EventId, EventKind, EventNumber, MethodName,
    PointLabel, ProcessName, RealTime,
};
use ddbx_tui::keys::Key;
use ddbx_tui::state::State;
use ddbx_tui::view::{self, Theme};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// Events, in an order in which all that arrives was sent before.
#[derive(Default)]
pub struct Story {
    pub events: Vec<Event>,
    numbers: BTreeMap<String, u64>,
    delay_ms: u64,
}

pub fn call(control: &str, path: &[u32]) -> CallId {
    CallId { control: ControlId::new(control).unwrap(), path: CallPath::new(path).unwrap() }
}

pub fn method(name: &str) -> MethodName {
    MethodName::new(name).unwrap()
}

impl Story {
    /// Something happens in a process, at a time in microseconds.
    pub fn add(&mut self, process: &str, micros: i64, kind: EventKind) -> EventId {
        let number = self.numbers.entry(process.to_owned()).or_default();
        *number += 1;
        let id =
            EventId { process: ProcessName::new(process).unwrap(), number: EventNumber(*number) };
        let at = RealTime::from_nanos(micros * 1_000);
        let delay = Delay::from_nanos(self.delay_ms * 1_000_000);
        self.events.push(Event { id: id.clone(), at, delay, kind });
        id
    }

    /// Those that follow have been held so long.
    pub fn delay(&mut self, millis: u64) {
        self.delay_ms = millis;
    }

    /// A call leaves one process and arrives in another.
    pub fn call(&mut self, of: &CallId, name: &str, from: (&str, i64), to: (&str, i64)) {
        let kind = EventKind::CallSent { call: of.clone(), method: method(name), content: 0 };
        let sent = self.add(from.0, from.1, kind);
        self.arrives(of, name, sent, to);
    }

    /// A call arrives that was sent before.
    pub fn arrives(&mut self, of: &CallId, name: &str, sent: EventId, to: (&str, i64)) {
        let (call, method) = (of.clone(), method(name));
        self.add(to.0, to.1, EventKind::CallArrived { call, method, sent_as: Some(sent) });
    }

    /// Its answer goes back.
    pub fn answer(&mut self, of: &CallId, from: (&str, i64), to: (&str, i64)) {
        let sent = self.add(from.0, from.1, EventKind::ReturnSent { call: of.clone() });
        let kind = EventKind::ReturnArrived { call: of.clone(), sent_as: Some(sent) };
        self.add(to.0, to.1, kind);
    }
}

/// What happens in the shop.
pub fn shop() -> Story {
    let mut story = Story::default();
    let [main, poll] = ["gateway/main", "gateway/poll"].map(|name| ControlId::new(name).unwrap());
    story.add("gateway", 0, EventKind::Spawned { control: main.clone(), by: None });
    let place = call("gateway/main", &[1]);
    let reserve = call("gateway/main", &[1, 1]);
    let charge = call("gateway/main", &[1, 2]);
    let check = call("gateway/poll", &[1]);
    story.call(&place, "Orders.place", ("gateway", 1_000), ("orders", 1_400));
    story.call(&reserve, "Inventory.reserve", ("orders", 2_000), ("inventory", 2_300));
    let label = PointLabel::new("stock-read").unwrap();
    let point = EventKind::Point { control: main, call: Some(reserve.path.clone()), label };
    story.add("inventory", 3_000, point);
    story.answer(&reserve, ("inventory", 4_000), ("orders", 4_400));
    story.add("gateway", 4_600, EventKind::Spawned { control: poll, by: None });
    let kind =
        EventKind::CallSent { call: charge.clone(), method: method("Payments.charge"), content: 0 };
    let sent = story.add("orders", 5_000, kind);
    story.call(&check, "Inventory.check", ("gateway", 10_000), ("inventory", 10_400));
    let late = EventKind::DeadlineExpired { call: check.clone(), end: End::Caller };
    story.add("gateway", 30_000, late);
    story.add("inventory", 30_500, EventKind::Cancelled { call: check, end: End::Callee });
    // It stood before it got into payments.
    story.delay(40);
    story.arrives(&charge, "Payments.charge", sent, ("payments", 45_500));
    story.answer(&charge, ("payments", 47_000), ("orders", 47_400));
    story.answer(&place, ("orders", 48_000), ("gateway", 48_500));
    story
}

/// Presses keys, one after the other.
pub fn press(state: &mut State, keys: &str) {
    for key in keys.chars() {
        state.handle_key(match key {
            '←' => Key::Left,
            '→' => Key::Right,
            '↑' => Key::Up,
            '↓' => Key::Down,
            '⏎' => Key::Enter,
            '⎋' => Key::Esc,
            key => Key::Char(key),
        });
    }
}

/// What the screen looks like.
pub fn drawn(state: &State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(frame, state, &Theme::new(true))).unwrap();
    terminal.backend().to_string()
}
