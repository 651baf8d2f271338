//! A program on a terminal of its own, of which a test sees what a person would.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::waiting::{InVain, try_until, until};

const TERMINAL: &str = "a pseudo terminal";

/// A running program, and its terminal.
pub struct Tty {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    screen: Arc<Mutex<vt100::Parser>>,
    printed: Arc<Mutex<Vec<u8>>>,
}

/// How much of what it prints is kept.
const PRINTED_MAX: usize = 4 << 20;

impl Tty {
    /// Starts it on a terminal of so many columns and lines.
    ///
    /// # Panics
    ///
    /// If there is no such program, or there are no more terminals; so all of this does.
    pub fn start(command: &Command, (width, height): (u16, u16)) -> Self {
        let pair = native_pty_system().openpty(size(width, height)).expect(TERMINAL);
        let child = pair.slave.spawn_command(built(command)).expect("a program that can be run");
        drop(pair.slave);
        let mut output = pair.master.try_clone_reader().expect(TERMINAL);
        let parser = vt100::Parser::new(not_zero(height), not_zero(width), 0);
        let screen = Arc::new(Mutex::new(parser));
        let shown = screen.clone();
        let printed: Arc<Mutex<Vec<u8>>> = Arc::default();
        let kept = printed.clone();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It ends with an error when the program has ended.
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                let mut kept = kept.lock().expect("who looks has not panicked");
                if kept.len() < PRINTED_MAX {
                    kept.extend_from_slice(&bytes[..length]);
                }
                drop(kept);
                locked(&shown).process(&bytes[..length]);
            }
        });
        let keyboard = pair.master.take_writer().expect(TERMINAL);
        Self { child, keyboard, master: pair.master, screen, printed }
    }

    /// Presses these keys.
    pub fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).expect(TERMINAL);
        self.keyboard.flush().expect(TERMINAL);
    }

    /// What it has sent to the terminal, of which the first few MiB are kept.
    pub fn printed(&self) -> Vec<u8> {
        self.printed.lock().expect("who reads has not panicked").clone()
    }

    /// What it looks like.
    pub fn screen(&self) -> vt100::Screen {
        locked(&self.screen).screen().clone()
    }

    /// What is on it.
    pub fn text(&self) -> String {
        locked(&self.screen).screen().contents()
    }

    /// Waits until this is on it.
    pub fn shows(&self, text: &str) -> String {
        self.is(text, |shown| shown.contains(text))
    }

    /// Waits until it looks so.
    pub fn is(&self, what: &str, looks: impl Fn(&str) -> bool) -> String {
        let shown = self.becomes(what, looks);
        shown.unwrap_or_else(|vain| panic!("{vain}\non the terminal:\n{}", self.text()))
    }

    /// The same, where that it takes too long is an error like others.
    ///
    /// # Errors
    ///
    /// If it takes too long.
    pub fn becomes(&self, what: &str, looks: impl Fn(&str) -> bool) -> Result<String, InVain> {
        try_until(what, || Some(self.text()).filter(|shown| looks(shown)))
    }

    /// Makes it larger, or smaller.
    pub fn resize(&self, width: u16, height: u16) {
        self.master.resize(size(width, height)).expect(TERMINAL);
        locked(&self.screen).screen_mut().set_size(not_zero(height), not_zero(width));
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.process_id().expect("a process")
    }

    /// Waits until it has ended, and has given the terminal back as it was.
    pub fn ends_well(&mut self) -> u32 {
        let status = until("it ends", || self.child.try_wait().expect("a child"));
        until("the terminal is as it was", || {
            let parser = locked(&self.screen);
            let screen = parser.screen();
            let is_sane =
                !screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste();
            is_sane.then_some(())
        });
        status.exit_code()
    }

    /// Whether keys that are typed are shown by the terminal itself, as in a shell.
    pub fn echoes(&self) -> bool {
        let termios = self.master.get_termios().expect(TERMINAL);
        termios.local_flags.bits() & 0o10 != 0
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn locked(screen: &Mutex<vt100::Parser>) -> MutexGuard<'_, vt100::Parser> {
    screen.lock().expect("who reads has not panicked")
}

fn size(cols: u16, rows: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

fn not_zero(length: u16) -> NonZeroU16 {
    NonZeroU16::new(length).expect("a size")
}

fn built(command: &Command) -> CommandBuilder {
    let mut built = CommandBuilder::new(command.get_program());
    built.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => built.env(name, value),
            None => built.env_remove(name),
        }
    }
    built.env("TERM", "xterm-256color");
    built.cwd(command.get_current_dir().expect("a directory to start in"));
    built
}
