//! A program and what happens to it, in words short enough for a bug report.

use std::fmt::Write;
use std::time::Duration;

use super::program::{Nanos, Op, Program};
use super::scenario::Scenario;

/// The program, one line for each script.
pub fn program(program: &Program) -> String {
    let mut text = String::new();
    for (index, process) in program.processes.iter().enumerate() {
        let kind = if process.single_threaded { ", one request at a time" } else { "" };
        let joins = process.joins_at.map_or(String::new(), |at| format!(", joins at {}", time(at)));
        let _ = writeln!(text, "process {index}{kind}{joins}");
        for (method, body) in process.methods.iter().enumerate() {
            if !body.is_empty() {
                let _ = writeln!(text, "  method {method}: {}", script(body));
            }
        }
    }
    for (index, root) in program.roots.iter().enumerate() {
        let (process, at) = (root.process, time(root.starts_at));
        let from = if root.is_outside { ", from outside" } else { "" };
        let _ = writeln!(text, "root{index} in {process} at {at}{from}: {}", script(&root.body));
    }
    if program.connects_late {
        text.push_str("connections are made at the first call\n");
    }
    text
}

/// What the user does, and what goes wrong.
pub fn scenario(scenario: &Scenario) -> String {
    let mut text = String::new();
    for at in &scenario.breakpoints {
        let event = at.event.map_or("point".to_owned(), |event| event.to_string());
        let _ = writeln!(
            text,
            "breakpoint in {} at {event}, scope {:?}, ignore {}{}, held for {}",
            at.process,
            at.scope,
            at.ignore,
            if at.once { ", once" } else { "" },
            time(at.hold)
        );
    }
    for (process, from, length) in &scenario.pauses {
        let _ = writeln!(text, "pause of {process} at {} for {}", time(*from), time(*length));
    }
    for at in &scenario.forces {
        let _ = writeln!(text, "at {} somebody is let go whatever the rule says", time(*at));
    }
    for fault in &scenario.faults {
        let _ = writeln!(text, "fault at {}: {:?}", time(fault.at), fault.kind);
    }
    let (least, most) = (scenario.latency.start(), scenario.latency.end());
    let _ = writeln!(text, "debugger messages take {} to {}", time(*least), time(*most));
    text
}

fn script(ops: &[Op]) -> String {
    ops.iter().map(op).collect::<Vec<_>>().join("; ")
}

fn op(op: &Op) -> String {
    match op {
        Op::Work(length) => format!("work {}", time(*length)),
        Op::Point => "point".to_owned(),
        Op::Call { process, method, deadline } => {
            let deadline = deadline.map_or(String::new(), |d| format!(" within {}", time(d)));
            format!("call {process}.{method}{deadline}")
        }
        Op::Both(a, b) => format!("both ({}) and ({})", script(a), script(b)),
        Op::First(a, b) => format!("first of ({}) and ({})", script(a), script(b)),
        Op::Locked(lock, body) => format!("lock {lock} ({})", script(body)),
        Op::Sleep(length) => format!("sleep {}", time(*length)),
        Op::Renew { lease, length } => format!("renew lease {lease} for {}", time(*length)),
        Op::Spawn(body) => format!("spawn ({})", script(body)),
    }
}

fn time(nanos: Nanos) -> String {
    format!("{:?}", Duration::from_nanos(nanos))
}
