//! A terminal of its own for the screen, of which is known what it shows and how much was
//! written to it.

use std::io::{self, Read as _, Write};
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, thread};

use ddbx_protocol::link::Address;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// How long it may take until something is shown.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running screen; it ends when this is dropped.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    shown: Arc<Mutex<Shown>>,
    _master: Box<dyn MasterPty + Send>,
}

struct Shown {
    parser: vt100::Parser,
    bytes: u64,
}

impl Terminal {
    /// Starts this same program once more, as the screen of a session.
    pub fn start(session: &Address, width: NonZeroU16, height: NonZeroU16) -> io::Result<Self> {
        let size = PtySize { rows: height.get(), cols: width.get(), ..PtySize::default() };
        let pair = native_pty_system().openpty(size).map_err(io::Error::other)?;
        let mut command = CommandBuilder::new(env::current_exe()?);
        command.args(["look", &session.to_string()]);
        command.env("TERM", "xterm-256color");
        let child = pair.slave.spawn_command(command).map_err(io::Error::other)?;
        drop(pair.slave);
        let mut output = pair.master.try_clone_reader().map_err(io::Error::other)?;
        let parser = vt100::Parser::new(height, width, 0);
        let shown = Arc::new(Mutex::new(Shown { parser, bytes: 0 }));
        let shows = shown.clone();
        thread::spawn(move || {
            let mut bytes = [0; 64 * 1024];
            // It ends with an error when the program has ended.
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                let mut shown = shows.lock().unwrap_or_else(PoisonError::into_inner);
                shown.bytes += length as u64;
                shown.parser.process(&bytes[..length]);
            }
        });
        let keyboard = pair.master.take_writer().map_err(io::Error::other)?;
        Ok(Self { child, keyboard, shown, _master: pair.master })
    }

    /// Presses a key.
    pub fn press(&mut self, key: char) -> io::Result<()> {
        write!(self.keyboard, "{key}")?;
        self.keyboard.flush()
    }

    /// Waits until one of these is on it.
    pub fn until(&self, texts: &[&str]) {
        let began = Instant::now();
        let is_there = |shown: &str| texts.iter().any(|text| shown.contains(text));
        while !is_there(&self.text()) {
            let is_late = began.elapsed() > PATIENCE;
            assert!(!is_late, "{texts:?} does not come; on the screen:\n{}", self.text());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// What is on it.
    pub fn text(&self) -> String {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).parser.screen().contents()
    }

    /// How much was written to it so far.
    pub fn bytes(&self) -> u64 {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// The process of the screen.
    pub fn pid(&self) -> io::Result<u32> {
        self.child.process_id().ok_or_else(|| io::Error::other("the screen has ended"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
