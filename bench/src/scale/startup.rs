//! How long it takes until many processes take part in a session, over how long it takes
//! them to start without one.

use std::io::{self, BufRead as _, BufReader};
use std::process::Child;
use std::time::Instant;

use ddbx_protocol::link::Address;

use crate::again::again;
use crate::peers::server::until_stdin_ends;

/// How many.
pub const PROCESSES: usize = 100;

/// Is one of them until standard input ends.
pub fn be() -> io::Result<()> {
    let _process = ddbx::init("member");
    println!("ready");
    until_stdin_ends();
    Ok(())
}

/// In milliseconds, until the last one is ready.
pub fn millis(session: Option<&Address>) -> io::Result<f64> {
    let began = Instant::now();
    let mut children = Vec::new();
    for _ in 0..PROCESSES {
        let mut command = again(["member"])?;
        if let Some(session) = session {
            command.env("DDBX_SESSION", session.to_string());
        }
        children.push(command.spawn()?);
    }
    let ready = children.iter_mut().try_for_each(until_ready);
    let millis = began.elapsed().as_secs_f64() * 1e3;
    for mut child in children {
        drop(child.stdin.take());
        child.wait()?;
    }
    ready.map(|()| millis)
}

fn until_ready(child: &mut Child) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?).read_line(&mut line)?;
    if line.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}
