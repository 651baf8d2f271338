//! A run as a space-time picture: time runs down, processes stand side by side.

use std::fmt::Write;

use super::program::Program;
use super::trace::{Trace, What};

/// Draws a run. Virtual times that differ from `other`'s are marked.
pub fn picture(program: &Program, trace: &Trace, other: &Trace) -> String {
    let expected = other.clocks();
    let mut lines: Vec<(i64, usize, String)> = Vec::new();
    for event in &trace.events {
        let clock = event.clock();
        let mark = match expected.get(&*event.name) {
            Some(same) if *same == clock => "",
            Some(_) => " ≠",
            None => " !",
        };
        let text = format!("{} {}{mark}", symbol(event.what), event.name);
        let delay =
            if event.delay.as_nanos() > 0 { format!(" Δ{}", event.delay) } else { String::new() };
        lines.push((event.at.as_nanos(), event.process, format!("{text}{delay}")));
    }
    for stood in &trace.stood {
        let until = stood.until.map_or("for ever".to_owned(), |until| micros(until.as_nanos()));
        lines.push((stood.from.as_nanos(), stood.process, format!("▒ stands until {until}")));
    }
    lines.sort_by_key(|line| line.0);
    let mut picture = format!("{:>12}", "µs");
    for process in 0..program.processes.len() {
        let _ = write!(picture, " {:<3}", format!("p{process}"));
    }
    picture.push('\n');
    for (at, process, text) in lines {
        let _ = writeln!(picture, "{:>12} {}{text}", micros(at), "│   ".repeat(process));
    }
    picture
}

fn micros(nanos: i64) -> String {
    format!("{:.3}", nanos as f64 / 1_000.0)
}

fn symbol(what: What) -> &'static str {
    match what {
        What::Started => "●",
        What::CallSent => "→",
        What::CallArrived => "⇥",
        What::ReturnSent => "←",
        What::ReturnArrived => "⇤",
        What::Cancelled => "✗",
        What::TimedOut | What::LeaseLost => "⏰",
        What::Woke => "◷",
        What::Passed => "·",
        What::Acquired | What::Entered => "▸",
        What::Left => "◂",
    }
}
