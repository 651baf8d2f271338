//! What the screen knows, and what a person has done to it. No input or output here, and
//! nothing about how it is drawn: updates and keys come in, commands go out.

use ddbx_protocol::HoldId;
use ddbx_protocol::control::{HoldView, Notice, Reply, Request, What};

use crate::keys::{self, Key};

mod actions;
pub mod breakpoints;
pub mod calls;
pub mod detail;
pub mod events;
pub mod form;
pub mod help;
pub mod holds;
pub mod lanes;
pub mod line;
pub mod log;
pub mod overlay;
pub mod pane;
pub mod places;
pub mod processes;
pub mod recorded;
pub mod session;
pub mod space_time;
pub mod table;
pub mod typed;

use detail::{About, Detail};
use events::{EventLog, EventsPane};
use log::Log;
use overlay::Overlay;
use pane::Pane;
use recorded::Recorded;
use session::Seen;
use space_time::SpaceTime;
use table::Table;

/// For how long an answer is shown.
const MESSAGE_MS: u64 = 6_000;

/// A screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Screen {
    /// How each process is doing.
    Processes,
    /// Who stands still, and why.
    Holds,
    /// What is in flight.
    Calls,
    /// Where controls are stopped.
    Breakpoints,
    /// What happened where and when.
    SpaceTime,
    /// What happened, one after the other.
    Events,
    /// What the debugger did.
    Log,
}

impl Screen {
    /// In the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Processes,
        Self::Holds,
        Self::Calls,
        Self::Breakpoints,
        Self::SpaceTime,
        Self::Events,
        Self::Log,
    ];

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Processes => "Processes",
            Self::Holds => "Holds",
            Self::Calls => "Calls",
            Self::Breakpoints => "Breakpoints",
            Self::SpaceTime => "Space-time",
            Self::Events => "Events",
            Self::Log => "Log",
        }
    }

    fn beside(self, by: isize) -> Self {
        let at = Self::ALL.iter().position(|screen| *screen == self).unwrap_or_default();
        Self::ALL[(at as isize + by).rem_euclid(Self::ALL.len() as isize) as usize]
    }
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A session.
    Live,
    /// A session in which a recording is replayed.
    Replay,
    /// A recording.
    Recording,
}

/// Whether the session can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// Nobody has answered yet.
    Connecting,
    /// It answers.
    Up,
    /// It has been gone since then.
    Lost {
        /// By the screen's own clock.
        since_ms: u64,
        /// In words.
        why: String,
    },
}

/// Something that the screen hears.
#[derive(Clone, Debug)]
pub enum Update {
    /// The session answers.
    Up,
    /// It does not any more.
    Lost(String),
    /// An answer to a request.
    Answer(Request, Box<Reply>),
    /// What has happened is told from its beginning.
    Begins,
    /// What has happened, in order.
    Notices(Vec<Notice>),
    /// So many notices did not fit.
    Missed(u64),
    /// A line that a process of the run has printed.
    Printed(String),
    /// So late is it, by the screen's own clock.
    Tick(u64),
}

/// Something that the screen wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Ask the session.
    Ask(Request),
    /// End the screen.
    Quit,
}

/// All of it.
#[derive(Debug)]
pub struct State {
    /// What the session, or the recording, is called.
    pub name: String,
    /// Whether nothing may be changed.
    pub watch_only: bool,
    /// Whether it can be reached.
    pub link: Link,
    /// How late it is, by the screen's own clock.
    pub now_ms: u64,
    /// What the session has said last.
    pub seen: Seen,
    /// What has happened in the program.
    pub events: EventLog,
    /// What the debugger has done.
    pub log: Log,
    /// Which screen is shown.
    pub screen: Screen,
    /// What lies over it, the last on top.
    pub overlays: Vec<Overlay>,
    /// The last answer, and since when it is shown.
    pub message: Option<(String, u64)>,
    /// Of the screens that are tables: what is selected.
    panes: [Pane; 7],
    /// Of the events.
    pub events_pane: EventsPane,
    /// Of the diagram.
    pub space_time: SpaceTime,
    mode: Mode,
    /// Of a recording: what there was at its time.
    recorded: Option<Recorded>,
    /// How many rows fit.
    page: usize,
}

impl State {
    /// Before anything is known of a session.
    pub fn of_session(name: impl Into<String>, watch_only: bool) -> Self {
        Self::new(name.into(), Mode::Live, watch_only)
    }

    fn new(name: String, mode: Mode, watch_only: bool) -> Self {
        Self {
            name,
            watch_only,
            link: Link::Connecting,
            now_ms: 0,
            seen: Seen::default(),
            events: EventLog::default(),
            log: Log::default(),
            screen: Screen::Processes,
            overlays: Vec::new(),
            message: None,
            panes: Default::default(),
            events_pane: EventsPane::default(),
            space_time: SpaceTime::default(),
            mode,
            recorded: None,
            page: 10,
        }
    }

    /// What is looked at.
    pub fn mode(&self) -> Mode {
        match self.mode {
            Mode::Live if !self.seen.replay.is_empty() => Mode::Replay,
            mode => mode,
        }
    }

    /// Whether it is a recording.
    pub fn is_recording(&self) -> bool {
        self.mode == Mode::Recording
    }

    /// What is selected on a screen.
    pub fn pane(&self, screen: Screen) -> &Pane {
        &self.panes[screen as usize]
    }

    fn pane_mut(&mut self) -> &mut Pane {
        &mut self.panes[self.screen as usize]
    }

    /// What a screen shows, if it is a table: only what its filter lets through.
    pub fn table(&self, screen: Screen) -> Option<Table> {
        let all = match screen {
            Screen::Processes => processes::table(self),
            Screen::Holds => holds::table(self),
            Screen::Calls => calls::table(self),
            Screen::Breakpoints => breakpoints::table(self),
            Screen::Events => events::table(self),
            Screen::Log => log::table(self),
            Screen::SpaceTime => return None,
        };
        Some(all.only(&self.pane(screen).filter))
    }

    /// The key of what is selected on the screen that is shown.
    fn selected(&self) -> Option<String> {
        let table = self.table(self.screen)?;
        let at = self.pane(self.screen).index(&table)?;
        Some(table.rows[at].key.clone())
    }

    /// How long the rows of a page are, which only who draws knows.
    pub fn handle_size(&mut self, rows: usize) {
        self.page = rows.max(1);
    }

    /// What should be asked again and again, as long as it looks like this.
    pub fn wants(&self) -> Vec<Request> {
        if self.is_recording() {
            return Vec::new();
        }
        let mut wants = vec![
            Request::Session,
            Request::Processes,
            Request::Holds,
            Request::Breakpoints,
            Request::Replay,
        ];
        if self.screen == Screen::Calls {
            wants.push(Request::Calls);
        }
        match self.about() {
            Some(About::Hold(id)) => wants.extend([Request::Backtrace(*id), Request::Watched]),
            Some(About::Watched) => wants.push(Request::Watched),
            _ => {}
        }
        wants
    }

    fn about(&self) -> Option<&About> {
        match self.overlays.last()? {
            Overlay::Detail(detail) => Some(&detail.about),
            _ => None,
        }
    }

    /// Something was heard. Whether it should be asked at once what is new.
    pub fn handle_update(&mut self, update: Update) -> bool {
        match update {
            Update::Up => {
                if matches!(self.link, Link::Lost { .. }) {
                    self.note("the session answers again");
                }
                self.link = Link::Up;
                return true;
            }
            Update::Lost(why) => self.lost(why),
            Update::Answer(request, reply) => self.handle_answer(request, *reply),
            Update::Begins => {
                self.events = EventLog::default();
                self.log.forget_session();
            }
            Update::Notices(notices) => {
                let mut is_news = false;
                for notice in notices {
                    match notice.what {
                        What::Event(event) => self.events.push(event, notice.at_ms),
                        What::Missed(number) => self.events.missed += number,
                        what => {
                            is_news = true;
                            if let What::Stands(HoldView {
                                id,
                                process,
                                breakpoint: Some(at),
                                ..
                            }) = &what
                            {
                                self.say(format!("breakpoint {at} is hit in {process}: hold {id}"));
                            }
                            self.space_time.notice(notice.at_ms, &what);
                            self.log.notice(notice.at_ms, &what);
                        }
                    }
                }
                return is_news;
            }
            Update::Missed(number) => self.events.missed += number,
            Update::Printed(line) => self.log.printed(self.seen.clock_ms(self.now_ms), &line),
            Update::Tick(now_ms) => {
                self.now_ms = now_ms;
                self.events.settle(now_ms);
                if self.message.as_ref().is_some_and(|(_, at)| now_ms > at + MESSAGE_MS) {
                    self.message = None;
                }
            }
        }
        false
    }

    fn lost(&mut self, why: String) {
        if !matches!(self.link, Link::Lost { .. }) {
            self.log.debugger(
                self.seen.clock_ms(self.now_ms),
                &format!("the session does not answer: {why}"),
            );
            self.link = Link::Lost { since_ms: self.now_ms, why };
            if let Some(Overlay::Form(form)) = self.overlays.last_mut()
                && form.is_asked()
            {
                form.refused("the session was lost meanwhile: look whether it is set");
            }
        }
    }

    fn handle_answer(&mut self, request: Request, reply: Reply) {
        match (request, reply) {
            (Request::Backtrace(id), Reply::Refused(_)) => {
                // It goes on meanwhile.
                let gone = |overlay: &Overlay| matches!(overlay, Overlay::Detail(Detail { about: About::Hold(of), .. }) if *of == id);
                if self.overlays.last().is_some_and(gone) {
                    self.overlays.pop();
                    self.say(format!("hold {id} has gone on"));
                }
            }
            (request, Reply::Refused(why)) => {
                if let (Request::Break(_) | Request::Change { .. }, Some(Overlay::Form(form))) =
                    (&request, self.overlays.last_mut())
                {
                    form.refused(&why);
                }
                self.note(&format!("refused: {why}"));
                self.say(why);
            }
            (request, reply) => {
                if let Some(done) = session::done(&request, &reply) {
                    if matches!(request, Request::Break(_) | Request::Change { .. })
                        && matches!(self.overlays.last(), Some(Overlay::Form(_)))
                    {
                        self.overlays.pop();
                    }
                    self.say(done);
                }
                self.take(reply);
            }
        }
    }

    /// Keeps an answer. If it is news that there was no room for something, that is said.
    fn take(&mut self, reply: Reply) {
        let known = self.seen.dropped();
        let before: Vec<String> = known.iter().map(|(place, _)| (*place).to_owned()).collect();
        self.seen.take(reply, self.now_ms);
        let is_news = |(place, _): &(&str, String)| before.iter().all(|known| known != place);
        let news = self.seen.dropped().into_iter().filter(is_news);
        let news: Vec<String> = news
            .map(|(place, what)| format!("there was not room in {place} for: {what}"))
            .collect();
        news.iter().for_each(|text| self.note(text));
    }

    /// Something has happened to the screen.
    fn note(&mut self, text: &str) {
        self.log.debugger(self.seen.clock_ms(self.now_ms), text);
    }

    /// Shows a sentence for a while.
    pub fn say(&mut self, text: impl Into<String>) {
        self.message = Some((text.into(), self.now_ms));
    }

    /// A key was pressed.
    pub fn handle_key(&mut self, key: Key) -> Vec<Command> {
        // Whoever goes on has read it.
        self.message = None;
        if let Some(top) = self.overlays.pop() {
            return overlay::handle_key(self, top, key);
        }
        match keys::action(self.screen, self.is_recording(), key) {
            Some(action) => self.act(action),
            None => Vec::new(),
        }
    }

    /// Something was pasted: as if typed, where one can type.
    pub fn handle_paste(&mut self, text: &str) -> Vec<Command> {
        let types = matches!(self.overlays.last(), Some(Overlay::Line(_) | Overlay::Form(_)));
        let typed = text.chars().filter(|character| types && !character.is_control());
        typed.flat_map(|character| self.handle_key(Key::Char(character))).collect()
    }

    /// The hold of a number, if somebody stands there.
    pub fn hold(&self, id: HoldId) -> Option<&HoldView> {
        self.seen.holds.iter().find(|hold| hold.id == id)
    }
}
