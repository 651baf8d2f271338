//! Executions for Algorithm D: written in short, or random.

use ddbx_central::logic::algorithm_d::{Program, ProgramBuilder, Ticks};
use proptest::prelude::*;
use proptest::sample::Index;

/// A fragment as a generator makes it: process, time, breakpoint.
pub type Piece = (String, Ticks, Option<Ticks>);

/// Reads `A6+4 S5 / B7 S1+2`: executions E1, E2, … separated by `/`; `A6+4` is
/// process A, time 6, breakpoint 4. Panics on anything else: tests write it.
pub fn short(text: &str) -> Program {
    let number = |digits: &str| digits.parse().expect("a number");
    let fragment = |word: &str| -> Piece {
        let (process, rest) = word.split_at(1);
        match rest.split_once('+') {
            Some((time, breakpoint)) => (process.into(), number(time), Some(number(breakpoint))),
            None => (process.into(), number(rest), None),
        }
    };
    let executions = text.split('/').map(|chain| chain.split_whitespace().map(fragment).collect());
    program(&executions.collect::<Vec<_>>())
}

/// A program of executions E1, E2, …
pub fn program(executions: &[Vec<Piece>]) -> Program {
    let named = executions.iter().enumerate().map(|(i, chain)| (format!("E{}", i + 1), chain));
    program_in_order(&named.collect::<Vec<_>>())
}

/// A program of named executions in the given order.
pub fn program_in_order(executions: &[(String, &Vec<Piece>)]) -> Program {
    let mut builder = ProgramBuilder::default();
    for (name, chain) in executions {
        let fragments = chain.iter().map(|(process, time, _)| (process, *time));
        builder.execution(name, fragments).expect("generators make valid executions");
        for (number, (_, _, breakpoint)) in (1..).zip(*chain) {
            if let Some(suspend) = *breakpoint {
                builder.breakpoint(name, number, suspend).expect("valid, once each");
            }
        }
    }
    builder.build()
}

/// Chains through random processes; times from `least` on and small, so that
/// ties are frequent.
pub fn free_form(least: Ticks) -> impl Strategy<Value = Vec<Vec<Piece>>> {
    let piece = (0usize..5, least..least + 6, breakpoint())
        .prop_map(|(process, time, breakpoint)| (process_name(process), time, breakpoint));
    prop::collection::vec(prop::collection::vec(piece, 1..7), 1..6)
}

/// Chains as RPC makes them: a client that calls servers, which call others;
/// every call returns to its caller.
pub fn nested(least: Ticks) -> impl Strategy<Value = Vec<Vec<Piece>>> {
    let step = (any::<bool>(), any::<Index>(), least..least + 6, breakpoint());
    let chain = prop::collection::vec(step, 1..8).prop_map(|steps| {
        let mut stack: Vec<usize> = Vec::new();
        let mut pieces = Vec::new();
        for (returns, pick, time, breakpoint) in steps {
            if returns && stack.len() > 1 {
                stack.pop();
            } else {
                stack.push(pick.index(5));
            }
            let here = stack.last().copied().unwrap_or(0);
            pieces.push((process_name(here), time, breakpoint));
        }
        pieces
    });
    prop::collection::vec(chain, 1..6)
}

fn breakpoint() -> impl Strategy<Value = Option<Ticks>> {
    prop::option::weighted(0.25, 0u64..9)
}

fn process_name(process: usize) -> String {
    char::from(b'A' + process as u8).to_string()
}
