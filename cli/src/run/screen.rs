//! The screen of a run on a terminal. While it is open, what the processes print goes to
//! its log; the last of that is printed when it is closed.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ddbx_protocol::link::{Address, Keys};
use tokio::sync::mpsc;

use super::output::{Sink, Sinks};

/// How many lines are printed when the screen is closed, and how many may wait for it.
const LINES_MAX: usize = 1_000;

/// Where a session is, and what it asks for.
pub(crate) type At = (Address, Keys);

/// Whether there is a person.
pub(super) fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// What is printed, as long as the screen has the terminal.
#[derive(Clone)]
pub(super) struct Held(Arc<Mutex<State>>);

struct State {
    /// None when the terminal is free again.
    screen: Option<mpsc::Sender<String>>,
    last: VecDeque<String>,
    is_cut: bool,
}

impl Held {
    /// Where a run prints to, and what the screen shows of it.
    pub(super) fn new() -> (Self, Sinks, mpsc::Receiver<String>) {
        let (tell, lines) = mpsc::channel(LINES_MAX);
        let state = State { screen: Some(tell), last: VecDeque::new(), is_cut: false };
        let held = Self(Arc::new(Mutex::new(state)));
        let sink = |out: Box<dyn Write + Send>| {
            let writer = Printed { held: held.clone(), out, line: Vec::new() };
            Sink { writer: Box::new(writer), colours: false }
        };
        let sinks =
            Sinks { lines: sink(Box::new(io::stdout())), notes: sink(Box::new(io::stderr())) };
        (held, sinks, lines)
    }

    /// The terminal is free: what was printed meanwhile is shown.
    pub(super) fn let_go(&self) {
        let mut state = self.lock();
        state.screen = None;
        let mut out = io::stdout().lock();
        // If nobody reads it, the run says so at its next line.
        if state.is_cut {
            let _ = writeln!(out, "… (the last {LINES_MAX} lines)");
        }
        for line in state.last.drain(..) {
            let _ = writeln!(out, "{line}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lines on their way to the screen, or to where they belong.
struct Printed {
    held: Held,
    out: Box<dyn Write + Send>,
    line: Vec<u8>,
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.held.lock();
        if state.screen.is_none() {
            drop(state);
            self.out.write_all(&std::mem::take(&mut self.line))?;
            return self.out.write(bytes);
        }
        for byte in bytes {
            match byte {
                b'\n' => state.keep(&std::mem::take(&mut self.line)),
                byte => self.line.push(*byte),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl State {
    fn keep(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line).into_owned();
        if let Some(screen) = &self.screen {
            // If it is too slow it has enough to show.
            let _ = screen.try_send(line.clone());
        }
        if self.last.len() == LINES_MAX {
            self.last.pop_front();
            self.is_cut = true;
        }
        self.last.push_back(line);
    }
}

/// Shows the session until the user has seen enough; then for ever nothing.
pub(super) async fn show((address, keys): At, held: Held, printed: mpsc::Receiver<String>) {
    let freed = LetGo(held);
    let options = ddbx_tui::Options { address, keys, watch_only: false, printed: Some(printed) };
    let looked = ddbx_tui::run(options).await;
    drop(freed);
    match looked {
        Ok(()) => anstream::eprintln!(
            "ddbx: the run goes on; Ctrl-C ends it, `ddbx-tui` opens the screen again"
        ),
        Err(error) => anstream::eprintln!("ddbx: no screen: {error}"),
    }
    std::future::pending().await
}

/// Whatever ends the screen, what was printed is shown.
struct LetGo(Held);

impl Drop for LetGo {
    fn drop(&mut self) {
        self.0.let_go();
    }
}
