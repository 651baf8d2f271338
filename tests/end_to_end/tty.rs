//! A program on a terminal of its own, of which a test sees what a person would.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::process::until;

pub struct Tty {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Tty {
    pub fn start(command: &Command, (width, height): (u16, u16)) -> Self {
        let pair = native_pty_system().openpty(size(width, height)).unwrap();
        let child = pair.slave.spawn_command(built(command)).unwrap();
        drop(pair.slave);
        let mut output = pair.master.try_clone_reader().unwrap();
        let parser = vt100::Parser::new(not_zero(height), not_zero(width), 0);
        let screen = Arc::new(Mutex::new(parser));
        let shown = screen.clone();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It ends with an error when the program has ended.
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                shown.lock().unwrap().process(&bytes[..length]);
            }
        });
        let keyboard = pair.master.take_writer().unwrap();
        Self { child, keyboard, master: pair.master, screen }
    }

    pub fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// What is on it.
    pub fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until this is on it.
    pub fn shows(&self, text: &str) -> String {
        self.is(text, |shown| shown.contains(text))
    }

    /// Waits until it looks so.
    pub fn is(&self, what: &str, looks: impl Fn(&str) -> bool) -> String {
        let seen = || Some(self.text()).filter(|shown| looks(shown));
        let guard = Told(self);
        let shown = until(what, seen);
        std::mem::forget(guard);
        shown
    }

    pub fn resize(&self, width: u16, height: u16) {
        self.master.resize(size(width, height)).unwrap();
        let mut screen = self.screen.lock().unwrap();
        screen.screen_mut().set_size(not_zero(height), not_zero(width));
    }

    pub fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Waits until it has ended, and has given the terminal back as it was.
    pub fn ends_well(&mut self) -> u32 {
        let status = until("it ends", || self.child.try_wait().unwrap());
        until("the terminal is as it was", || {
            let parser = self.screen.lock().unwrap();
            let screen = parser.screen();
            let is_sane =
                !screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste();
            is_sane.then_some(())
        });
        status.exit_code()
    }

    /// Whether keys that are typed are shown by the terminal itself, as in a shell.
    pub fn echoes(&self) -> bool {
        let termios = self.master.get_termios().unwrap();
        termios.local_flags.bits() & 0o10 != 0
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Shows what was on the terminal if a test gives up.
struct Told<'a>(&'a Tty);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        eprintln!("on the terminal:\n{}", self.0.text());
    }
}

fn size(cols: u16, rows: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

fn not_zero(length: u16) -> NonZeroU16 {
    NonZeroU16::new(length).unwrap()
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
    built.cwd(command.get_current_dir().unwrap());
    built
}
