//! What keys and words do.

use ddbx_protocol::BreakpointId;
use ddbx_protocol::control::{Request, Whom};

use super::detail::{About, Detail};
use super::events::EventLog;
use super::form::BreakForm;
use super::line::{Line, Purpose};
use super::overlay::{Overlay, Question};
use super::{Command, Link, Screen, State, calls, holds, space_time};
use crate::keys::{Action, Key};

impl State {
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
                if screen == Screen::Events && !self.is_recording() {
                    // The first is the latest.
                    match by {
                        isize::MIN => self.events_pane.follow(),
                        _ => self.events_pane.stay(&self.events),
                    }
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
        match self.events_pane.follows() {
            true => self.events_pane.stay(&self.events),
            false => self.events_pane.follow(),
        }
    }

    /// Goes to another event of the same control.
    fn find(&mut self, by: isize) {
        let Some(number) = self.selected().and_then(|key| key.parse().ok()) else { return };
        match self.events_pane.log(&self.events).of_same_control(number, by) {
            Some(found) if self.is_recording() => self.seek_to(found + 1),
            Some(found) => {
                self.events_pane.stay(&self.events);
                self.pane_mut().select(found.to_string());
            }
            None => self.say("no other event of this control is kept"),
        }
    }

    fn open(&mut self) {
        if self.screen == Screen::SpaceTime && self.space_time.selected().is_none() {
            // What runs by cannot be looked at: it stays first.
            self.toggle_follow();
        }
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
        let why = match (holds::meant(self).first(), self.screen) {
            (Some(hold), _) => Some(About::Why(hold.id)),
            (None, Screen::Holds) => self.selected().and_then(|key| About::of(self.screen, &key)),
            (None, _) => None,
        };
        match why {
            Some(about) => self.show(about),
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
            Some(hold) => holds::whom_to_continue(self, hold),
            None if self.seen.held() == 0
                && !self.seen.processes.iter().any(|view| view.paused) =>
            {
                self.say("nobody is held: b sets a breakpoint, p holds a process");
                return None;
            }
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
    pub(super) fn process(&self) -> Option<String> {
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
    pub(super) fn log_of(&self, number: u64) -> &EventLog {
        let others = [self.space_time.log(&self.events), self.events_pane.log(&self.events)];
        let kept = others.into_iter().find(|log| log.get(number).is_some());
        kept.unwrap_or(&self.events)
    }
}
