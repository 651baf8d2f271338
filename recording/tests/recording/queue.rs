//! The way of an event from the program's threads costs next to nothing.

use ddbx_protocol::{ControlId, Delay, EventKind, ProcessName, RealTime};
use ddbx_recording::{LogWriter, Options, Queue};

use crate::memory::Memory;

#[test]
fn in_the_long_run_nothing_is_allocated() {
    let queue = Queue::default();
    let process = ProcessName::new("here").unwrap();
    let mut writer = LogWriter::new(Memory::default(), &process, Options::default());
    let control = ControlId::root(&process, "main").unwrap();
    let push = |count: u64| {
        for at in 0..count {
            let kind = EventKind::Ended { control: control.clone() };
            queue.note(RealTime::from_nanos(at as i64), Delay::ZERO, kind);
        }
    };
    for _ in 0..2 {
        push(1_000);
        writer.drain(RealTime::default(), &queue);
    }
    let counted = allocation_counter::measure(|| push(1_000));
    assert_eq!(counted.count_total, 0);
}
