//! What the screen knows, and what a person has done to it. No input or output here, and
//! nothing about how it is drawn: updates and keys come in, commands go out.

use std::collections::BTreeMap;

use ddbx_protocol::control::{Reply, Request, What, Whom};
use ddbx_protocol::{BreakpointId, HoldId};

use crate::keys::{self, Action, Key};

pub mod breakpoints;
pub mod calls;
pub mod detail;
pub mod events;
pub mod form;
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
use form::BreakForm;
use line::{Line, Purpose};
use log::Log;
use overlay::{Overlay, Question};
use pane::Pane;
use recorded::{Note, Recorded};
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
    Answer(Request, Reply),
    /// What has happened, in order.
    Notices(Vec<ddbx_protocol::control::Notice>),
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

    /// Of a recording: its events in the order of their times, what is remarkable about it,
    /// and the numbers that its processes had. It shows its end.
    pub fn of_recording(
        name: String,
        events: EventLog,
        notes: Vec<Note>,
        pids: BTreeMap<String, u32>,
    ) -> Self {
        let recorded = Recorded::new(&events, notes, pids);
        let space_time = SpaceTime::of_recording();
        let mut state = Self {
            events,
            space_time,
            recorded: Some(recorded),
            ..Self::new(name, Mode::Recording, true)
        };
        state.seek_to(u64::MAX);
        state
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
                    self.log.debugger(self.now_ms, "the session answers again");
                }
                self.link = Link::Up;
                return true;
            }
            Update::Lost(why) => self.lost(why),
            Update::Answer(request, reply) => self.handle_answer(request, reply),
            Update::Notices(notices) => {
                let mut is_news = false;
                for notice in notices {
                    match notice.what {
                        What::Event(event) => self.events.push(event, notice.at_ms),
                        What::Missed(number) => self.events.missed += number,
                        what => {
                            is_news = true;
                            self.space_time.notice(notice.at_ms, &what);
                            self.log.notice(notice.at_ms, &what);
                        }
                    }
                }
                self.events_pane.follow(&self.events);
                return is_news;
            }
            Update::Missed(number) => self.events.missed += number,
            Update::Printed(line) => self.log.printed(self.now_ms, &line),
            Update::Tick(now_ms) => {
                self.now_ms = now_ms;
                self.events.settle();
                self.events_pane.follow(&self.events);
                if self.message.as_ref().is_some_and(|(_, at)| now_ms > at + MESSAGE_MS) {
                    self.message = None;
                }
            }
        }
        false
    }

    fn lost(&mut self, why: String) {
        if !matches!(self.link, Link::Lost { .. }) {
            self.log.debugger(self.now_ms, &format!("the session does not answer: {why}"));
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
                self.log.debugger(self.now_ms, &format!("refused: {why}"));
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
                self.seen.take(reply, self.now_ms);
            }
        }
    }

    /// Shows a sentence for a while.
    pub fn say(&mut self, text: impl Into<String>) {
        self.message = Some((text.into(), self.now_ms));
    }

    /// A key was pressed.
    pub fn handle_key(&mut self, key: Key) -> Vec<Command> {
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

    /// Does what a key would do.
    pub(crate) fn act(&mut self, action: Action) -> Vec<Command> {
        match action {
            Action::Show(screen) => self.screen = screen,
            Action::NextScreen => self.screen = self.screen.beside(1),
            Action::LastScreen => self.screen = self.screen.beside(-1),
            Action::Move(by) => self.step(by),
            Action::Page(by) => self.step(by * self.page as isize),
            Action::First => self.step(isize::MIN),
            Action::Last => self.step(isize::MAX),
            Action::Sideways(by) => {
                self.space_time.select(&self.events, &space_time::rows(self), by);
                self.seek_to_selected();
            }
            Action::Zoom(by) => self.space_time.zoom(by),
            Action::Follow => self.toggle_follow(),
            Action::Find(by) => self.find(by),
            Action::Seek(by) => self.seek(by),
            Action::Open => self.open(),
            Action::Back => self.pane_mut().filter.clear(),
            Action::Filter => {
                let filter = self.pane(self.screen).filter.clone();
                self.overlays.push(Overlay::Line(Line::new(Purpose::Filter, &filter)));
            }
            Action::Command => self.overlays.push(Overlay::Line(Line::new(Purpose::Command, ""))),
            Action::Help => self.overlays.push(Overlay::Help { scroll: 0 }),
            Action::Why => self.why(),
            Action::Quit => return self.quit(),
            Action::Break => {
                if self.may_change() {
                    self.overlays.push(Overlay::Form(Box::new(BreakForm::at(&self.place()))));
                }
            }
            Action::Edit => self.edit(),
            action => return self.change(action),
        }
        Vec::new()
    }

    fn step(&mut self, by: isize) {
        match self.screen {
            Screen::SpaceTime => {
                let (rows, is_over) = (space_time::rows(self), self.is_recording());
                self.space_time.step(&self.events, &rows, by, is_over);
                self.seek_to_selected();
            }
            screen => {
                let Some(table) = self.table(screen) else { return };
                if screen == Screen::Events {
                    self.events_pane.follows = by == isize::MAX;
                }
                self.pane_mut().step(&table, by);
            }
        }
    }

    fn toggle_follow(&mut self) {
        if self.is_recording() {
            self.say("nothing happens in a recording: ] and [ move its time");
            return;
        }
        if self.screen == Screen::SpaceTime {
            let rows = space_time::rows(self);
            return self.space_time.toggle_follow(&self.events, &rows);
        }
        self.events_pane.follows = !self.events_pane.follows;
    }

    /// Goes to another event of the same control.
    fn find(&mut self, by: isize) {
        let Some(number) = self.selected().and_then(|key| key.parse().ok()) else { return };
        match self.events.of_same_control(number, by) {
            Some(found) if self.is_recording() => self.seek_to(found + 1),
            Some(found) => {
                self.events_pane.follows = false;
                self.pane_mut().select(found.to_string());
            }
            None => self.say("no other event of this control is kept"),
        }
    }

    fn open(&mut self) {
        let about = match self.screen {
            Screen::SpaceTime => self.space_time.selected().map(About::Event),
            _ => self.selected().and_then(|key| About::of(self.screen, &key)),
        };
        if let (Some(About::Event(number)), true) = (&about, self.is_recording()) {
            self.seek_to(number + 1);
        }
        if let Some(about) = about {
            self.show(about);
        }
    }

    /// Shows more about something.
    pub(crate) fn show(&mut self, about: About) {
        self.overlays.push(Overlay::Detail(Detail { about, scroll: 0 }));
    }

    /// Shows only what has this text, on the screen that is shown.
    pub(crate) fn filter(&mut self, text: &str) {
        self.pane_mut().filter = text.to_owned();
    }

    fn why(&mut self) {
        let holds = holds::meant(self);
        match holds.first() {
            Some(hold) => {
                let about = About::Why(hold.id);
                self.show(about);
            }
            None => self.say("it does not stand still"),
        }
    }

    fn edit(&mut self) {
        let Some(id) = self.breakpoint() else { return };
        let view = self.seen.breakpoints.iter().find(|view| view.id == id);
        if let Some(form) = view.map(BreakForm::of)
            && self.may_change()
        {
            self.overlays.push(Overlay::Form(Box::new(form)));
        }
    }

    /// The breakpoint that is selected.
    fn breakpoint(&self) -> Option<BreakpointId> {
        self.selected()?.parse().ok().map(BreakpointId)
    }

    /// Whether anything may be changed, and, if not, why.
    pub fn may_change(&mut self) -> bool {
        if self.is_recording() {
            self.say("a recording cannot be changed: `ddbx replay` runs it again");
        } else if self.watch_only {
            self.say("nothing can be changed: the screen was opened with --watch-only");
        } else if self.link != Link::Up {
            self.say("nothing can be asked of the session now: it does not answer");
        }
        !self.is_recording() && !self.watch_only && self.link == Link::Up
    }

    /// Something that the session is asked to do.
    fn change(&mut self, action: Action) -> Vec<Command> {
        if !self.may_change() {
            return Vec::new();
        }
        let request = match action {
            Action::Continue => self.continues(),
            Action::ContinueAll => Some(Request::Continue(Whom::All)),
            Action::Panic => Some(Request::Pause(None)),
            Action::Pause => self.pauses(),
            Action::Delete => self.breakpoint().map(|id| Request::Delete(Some(id))),
            Action::Toggle => self.toggles(),
            Action::Release => {
                self.asks_to_release();
                None
            }
            _ => None,
        };
        request.map(Command::Ask).into_iter().collect()
    }

    fn continues(&mut self) -> Option<Request> {
        if let (Screen::Processes, Some(name)) = (self.screen, self.selected()) {
            return Some(Request::Continue(Whom::Process(name)));
        }
        let whom = match holds::meant(self).first() {
            Some(hold) => Whom::Hold(hold.id),
            None => Whom::TheOnly,
        };
        Some(Request::Continue(whom))
    }

    fn pauses(&mut self) -> Option<Request> {
        let Some(name) = self.process() else {
            self.say("select a process first: 1 shows them");
            return None;
        };
        let is_paused = self.seen.processes.iter().any(|view| view.name == name && view.paused);
        Some(match is_paused {
            true => Request::Continue(Whom::Process(name)),
            false => Request::Pause(Some(name)),
        })
    }

    fn toggles(&self) -> Option<Request> {
        let breakpoint = self.breakpoint()?;
        let view = self.seen.breakpoints.iter().find(|view| view.id == breakpoint)?;
        Some(Request::Enable { breakpoint, enabled: !view.enabled })
    }

    fn asks_to_release(&mut self) {
        let Some(id) = holds::meant(self).first().map(|hold| hold.id) else {
            self.say("select who stands still first: 2 shows them");
            return;
        };
        let text = format!(
            "Let hold {id} go on whatever the rule says? The order of events is not guaranteed from then on."
        );
        let release = vec![Command::Ask(Request::Release(id))];
        let choices =
            vec![(Key::Char('y'), "release it", release), (Key::Char('n'), "do not", Vec::new())];
        self.overlays.push(Overlay::Question(Question { text, choices }));
    }

    fn quit(&mut self) -> Vec<Command> {
        let is_paused = self.seen.processes.iter().any(|view| view.paused);
        let held = self.seen.held();
        if self.watch_only || self.link != Link::Up || (held == 0 && !is_paused) {
            return vec![Command::Quit];
        }
        let text = match held {
            0 => "A process is paused. Quit?".to_owned(),
            1 => "1 is held. Quit?".to_owned(),
            held => format!("{held} are held. Quit?"),
        };
        let all = vec![Command::Ask(Request::Continue(Whom::All)), Command::Quit];
        let choices = vec![
            (Key::Char('c'), "continue all, and quit", all),
            (Key::Char('l'), "leave them held, and quit", vec![Command::Quit]),
            (Key::Char('n'), "stay", Vec::new()),
        ];
        self.overlays.push(Overlay::Question(Question { text, choices }));
        Vec::new()
    }

    /// The process that is meant by what is selected.
    fn process(&self) -> Option<String> {
        match self.screen {
            Screen::Processes => self.selected(),
            Screen::Holds => holds::meant(self).first().map(|hold| hold.process.clone()),
            Screen::Calls => calls::selected(self).map(|call| call.process.clone()),
            Screen::SpaceTime => {
                let mut rows = space_time::rows(self);
                let at = self.space_time.row(&rows)?;
                Some(rows.swap_remove(at).process)
            }
            Screen::Events => {
                let number = self.selected()?.parse().ok()?;
                Some(self.events.get(number)?.event.id.process.to_string())
            }
            Screen::Breakpoints | Screen::Log => None,
        }
    }

    /// Where a breakpoint would be, by what is selected; as far as that is known.
    fn place(&self) -> String {
        let number = match self.screen {
            Screen::Holds => {
                let holds = holds::meant(self);
                let Some(hold) = holds.first() else { return String::new() };
                return format!("{}:{}", hold.process, hold.at);
            }
            Screen::Calls => {
                let Some(call) = calls::selected(self) else { return String::new() };
                return format!("{}:{}@arrive", call.process, call.method);
            }
            Screen::SpaceTime => self.space_time.selected(),
            Screen::Events => self.selected().and_then(|key| key.parse().ok()),
            _ => None,
        };
        let here = number.and_then(|number| self.log_of(number).place(number));
        here.or_else(|| self.process().map(|process| format!("{process}:"))).unwrap_or_default()
    }

    /// Where the event of a number is kept: those that are looked at are not forgotten.
    fn log_of(&self, number: u64) -> &EventLog {
        match self.events.get(number) {
            Some(_) => &self.events,
            None => self.space_time.log(&self.events),
        }
    }

    /// The hold of a number, if somebody stands there.
    pub fn hold(&self, id: HoldId) -> Option<&ddbx_protocol::control::HoldView> {
        self.seen.holds.iter().find(|hold| hold.id == id)
    }

    /// How many events of a recording have been, of how many, and how late it is.
    pub fn cursor(&self) -> Option<(u64, u64, i64)> {
        let recorded = self.recorded.as_ref()?;
        Some((recorded.done(), self.events.range().end, recorded.at(&self.events)))
    }

    fn seek(&mut self, by: isize) {
        if let Some((done, ..)) = self.cursor() {
            self.seek_to(done.saturating_add_signed(by as i64));
        }
    }

    /// In a recording the selected event is also its time.
    fn seek_to_selected(&mut self) {
        if let Some(number) = self.space_time.selected() {
            self.seek_to(number + 1);
        }
    }

    /// Moves the time of a recording to where so many events have been.
    fn seek_to(&mut self, done: u64) {
        let Some(recorded) = &mut self.recorded else { return };
        let all = self.events.range().end;
        let done = done.clamp(1.min(all), all);
        recorded.seek(&self.events, done);
        recorded.show(&self.events, &mut self.seen, &mut self.log);
        self.events_pane.show_until(done);
        if let Some(last) = done.checked_sub(1) {
            self.panes[Screen::Events as usize].select(last.to_string());
            self.space_time.select_event(&self.events, last);
        }
    }
}
