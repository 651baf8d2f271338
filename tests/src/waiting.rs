//! Waits that have a condition: nothing depends on how fast the machine is.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take that is waited for: only what is broken takes so long.
pub const LIMIT: Duration = Duration::from_secs(40);

const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What was waited for did not come.
#[derive(Debug)]
pub struct InVain(String);

impl fmt::Display for InVain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "waited in vain: {}", self.0)
    }
}

/// Waits until there is something.
///
/// # Errors
///
/// If it takes longer than [`LIMIT`].
pub fn try_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, InVain> {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if began.elapsed() >= LIMIT {
            return Err(InVain(what.to_owned()));
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// The same in a test, which fails if it takes too long.
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    try_until(what, look).unwrap_or_else(|vain| panic!("{vain}"))
}
