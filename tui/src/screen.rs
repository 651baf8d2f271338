//! All together: the session, the terminal, the state, and how often it is drawn.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crossterm::event::EventStream;
use ddbx_protocol::control::{Reply, Request};
use ddbx_protocol::link::{Address, Keys};
use ddbx_recording::OpenError;
use futures::StreamExt;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep_until, timeout};

use crate::client::{Target, ask, listen};
use crate::recording;
use crate::state::{Command, State, Update};
use crate::terminal::{Input, Terminal};
use crate::view::{self, Theme};

/// It is asked at least this often what is new.
const ASKS: Duration = Duration::from_millis(500);

/// It is drawn at most this often: faster than people read.
const DRAWS: Duration = Duration::from_millis(60);

/// How long the last wish may take when the user quits.
const QUITS: Duration = Duration::from_secs(2);

/// How much may wait to be shown.
const UPDATES_MAX: usize = 64;

/// What the screen looks at.
pub struct Options {
    /// The session.
    pub address: Address,
    /// What it must be told over TCP.
    pub keys: Keys,
    /// Whether nothing may be changed.
    pub watch_only: bool,
    /// What processes print, if somebody else starts them.
    pub printed: Option<mpsc::Receiver<String>>,
}

/// Why there is no screen.
#[derive(Debug, Error)]
pub enum Failure {
    /// The terminal cannot be used.
    #[error("cannot use the terminal: {0}; is standard output one?")]
    Terminal(#[from] io::Error),
    /// There is nothing to be shown.
    #[error(transparent)]
    Recording(#[from] OpenError),
}

/// Shows a session until the user quits.
pub async fn run(options: Options) -> Result<(), Failure> {
    let name = options
        .address
        .session_name()
        .map_or_else(|| options.address.to_string(), |name| name.to_string());
    let state = State::of_session(name, options.watch_only);
    let target = Target { address: options.address, keys: options.keys };
    let (tell, updates) = mpsc::channel(UPDATES_MAX);
    let (asks, wanted) = mpsc::channel(UPDATES_MAX);
    let asking = ask(target.clone(), wanted, tell.clone());
    let listening = listen(target, tell);
    let screen = Loop { state, asks, updates, printed: options.printed };
    tokio::select! {
        ended = screen.run() => ended,
        () = async { tokio::join!(asking, listening); } => Ok(()),
    }
}

/// Shows a recording until the user quits.
pub async fn run_recording(directory: &Path) -> Result<(), Failure> {
    let state = recording::load(directory)?;
    // Nobody is asked, and nothing is heard.
    let (asks, _wanted) = mpsc::channel(1);
    let (_tell, updates) = mpsc::channel(1);
    Loop { state, asks, updates, printed: None }.run().await
}

struct Loop {
    state: State,
    asks: mpsc::Sender<Request>,
    updates: mpsc::Receiver<Update>,
    printed: Option<mpsc::Receiver<String>>,
}

impl Loop {
    async fn run(mut self) -> Result<(), Failure> {
        let theme = Theme::from_environment();
        let mut terminal = Terminal::take()?;
        let mut inputs = EventStream::new();
        let began = Instant::now();
        let mut ticks = interval(ASKS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut drawn_at = tokio::time::Instant::now() - DRAWS;
        let mut is_stale = true;
        loop {
            tokio::select! {
                input = inputs.next() => match input {
                    Some(input) => {
                        let commands = self.handle(input?.into());
                        if self.obey(commands).await {
                            return Ok(());
                        }
                    }
                    // The terminal is gone.
                    None => return Ok(()),
                },
                update = self.updates.recv() => match update {
                    Some(update) => self.hear(update),
                    None => return Ok(()),
                },
                line = next(&mut self.printed) => {
                    self.state.handle_update(Update::Printed(line));
                }
                _ = ticks.tick() => {
                    self.state.handle_update(Update::Tick(millis(began.elapsed())));
                    self.want();
                }
                () = sleep_until(drawn_at + DRAWS), if is_stale => {
                    self.state.handle_update(Update::Tick(millis(began.elapsed())));
                    self.state.handle_size(view::page(&self.state, terminal.area()?));
                    terminal.draw(|frame| view::draw(frame, &self.state, &theme))?;
                    drawn_at = tokio::time::Instant::now();
                    is_stale = false;
                    continue;
                }
            }
            is_stale = true;
        }
    }

    fn handle(&mut self, input: Input) -> Vec<Command> {
        match input {
            Input::Key(key) => self.state.handle_key(key),
            Input::Paste(text) => self.state.handle_paste(&text),
            Input::Other => Vec::new(),
        }
    }

    fn hear(&mut self, update: Update) {
        if self.state.handle_update(update) {
            self.want();
        }
    }

    /// Asks what is new. If the session is slow, that is asked less often.
    fn want(&mut self) {
        if self.asks.capacity() == self.asks.max_capacity() {
            for request in self.state.wants() {
                let _ = self.asks.try_send(request);
            }
        }
    }

    /// Does what the user wants. Whether that is to quit.
    async fn obey(&mut self, commands: Vec<Command>) -> bool {
        let mut last = None;
        for command in commands {
            match command {
                Command::Quit => {
                    // What was asked before is done first, if it can be.
                    if let Some(request) = last {
                        let _ = timeout(QUITS, self.answered(&request)).await;
                    }
                    return true;
                }
                Command::Ask(request) => {
                    last = Some(request.clone());
                    if let Err(error) = self.asks.try_send(request) {
                        let slow = Reply::Refused("the session is slow: try again".to_owned());
                        self.state
                            .handle_update(Update::Answer(error.into_inner(), Box::new(slow)));
                    }
                }
            }
        }
        self.want();
        false
    }

    async fn answered(&mut self, request: &Request) {
        while let Some(update) = self.updates.recv().await {
            if matches!(&update, Update::Answer(to, _) if to == request) {
                return;
            }
        }
    }
}

async fn next(printed: &mut Option<mpsc::Receiver<String>>) -> String {
    match printed {
        Some(lines) => match lines.recv().await {
            Some(line) => line,
            None => {
                *printed = None;
                std::future::pending().await
            }
        },
        None => std::future::pending().await,
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
