//! A breakpoint that is made, or changed.

use std::time::Duration;

use ddbx_protocol::control::{BreakpointView, Request, Wanted};
use ddbx_protocol::{BreakpointId, Condition, Scope, Spec};

use super::places;
use super::session::Seen;
use super::typed::Typed;
use crate::keys::Key;

/// What is filled in so far.
#[derive(Clone, Debug)]
pub struct BreakForm {
    changes: Option<BreakpointId>,
    focus: Field,
    place: Entry,
    condition: Entry,
    scope: Scope,
    once: bool,
    ignore: Entry,
    hold_for: Entry,
    /// Whether the session is asked and has not answered yet.
    is_asked: bool,
    /// Whether it was tried to set it: from then on an empty place is a fault.
    is_tried: bool,
    refusal: Option<String>,
}

/// What can be filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Where it stops.
    Where,
    /// It stops only whom this holds for.
    If,
    /// Whom it stops.
    Stops,
    /// Whether it stops only once.
    Once,
    /// How many pass first.
    Ignore,
    /// How long it holds.
    LetGo,
}

impl Field {
    /// In the order in which they are shown.
    pub const ALL: [Self; 6] =
        [Self::Where, Self::If, Self::Stops, Self::Once, Self::Ignore, Self::LetGo];

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Where => "where",
            Self::If => "if",
            Self::Stops => "stops",
            Self::Once => "once",
            Self::Ignore => "ignore",
            Self::LetGo => "let go after",
        }
    }

    /// What can be in it.
    pub fn help(self) -> &'static str {
        match self {
            Self::Where => "process:Service.method@event, or process:point(label)",
            Self::If => "stop only if this holds, such as args.item == \"Apples\"",
            Self::Stops => "everybody in the process, or only the call that comes there",
            Self::Once => "stop only the first that comes there",
            Self::Ignore => "let so many pass first, in each process",
            Self::LetGo => "by itself after a time such as 3s or 500ms",
        }
    }

    /// What it means if nothing is in it.
    pub fn empty(self) -> &'static str {
        match self {
            Self::If => "always",
            Self::Ignore => "nobody",
            Self::LetGo => "until told",
            Self::Where | Self::Stops | Self::Once => "",
        }
    }

    fn beside(self, by: isize) -> Self {
        Self::ALL[(self as isize + by).rem_euclid(Self::ALL.len() as isize) as usize]
    }
}

/// What is in a field.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// Text.
    Text(&'a Typed),
    /// One of these.
    Choice([&'static str; 2], usize),
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// In a sentence.
    pub what: String,
    /// Behind how many characters, if that is known.
    pub at: Option<usize>,
}

impl Fault {
    /// From a sentence, or from one with a mark under the place on the last of three lines.
    pub fn of(error: &impl ToString) -> Self {
        let text = error.to_string();
        let lines: Vec<&str> = text.lines().collect();
        match lines.as_slice() {
            [what @ .., _, mark] if !what.is_empty() && mark.trim() == "^" => {
                let at = mark.chars().count().checked_sub(3);
                Self { what: what.join(" "), at }
            }
            lines => Self { what: lines.join(" "), at: None },
        }
    }
}

/// A text, and what is wrong with it.
#[derive(Clone, Debug)]
struct Entry {
    typed: Typed,
    check: fn(&str) -> Option<Fault>,
    fault: Option<Fault>,
}

impl Entry {
    fn new(text: &str, check: fn(&str) -> Option<Fault>) -> Self {
        Self { typed: Typed::new(text), check, fault: check(text) }
    }

    fn text(&self) -> &str {
        self.typed.text()
    }

    fn check(&mut self) {
        self.fault = (self.check)(self.text());
    }
}

fn place_fault(text: &str) -> Option<Fault> {
    text.parse::<Spec>().err().as_ref().map(Fault::of)
}

fn condition_fault(text: &str) -> Option<Fault> {
    let checked = if text.trim().is_empty() { None } else { Condition::check(text).err() };
    checked.as_ref().map(Fault::of)
}

fn number(text: &str) -> Option<u32> {
    if text.trim().is_empty() { Some(0) } else { text.trim().parse().ok() }
}

fn number_fault(text: &str) -> Option<Fault> {
    let none = number(text).is_none();
    none.then(|| Fault::of(&format!("this is no number from 0 to {}", u32::MAX)))
}

fn length(text: &str) -> Result<Option<Duration>, humantime::DurationError> {
    if text.trim().is_empty() { Ok(None) } else { humantime::parse_duration(text.trim()).map(Some) }
}

fn length_fault(text: &str) -> Option<Fault> {
    let error = length(text).err()?;
    Some(Fault::of(&format!("{error}: write a time such as 3s or 500ms")))
}

/// What a key did to the form.
#[derive(Clone, Debug, PartialEq)]
pub enum FormKey {
    /// It goes on.
    Goes,
    /// It is closed.
    Closes,
    /// It is filled in.
    Asks(Request),
}

impl BreakForm {
    /// A new one, with a place as far as that is known.
    pub fn at(place: &str) -> Self {
        Self::with(None, &Wanted { spec: place.to_owned(), ..Wanted::default() })
    }

    /// One that changes a breakpoint.
    pub fn of(view: &BreakpointView) -> Self {
        Self::with(Some(view.id), &view.wanted)
    }

    fn with(changes: Option<BreakpointId>, wanted: &Wanted) -> Self {
        let Wanted { spec, scope, ignore, once, condition, hold_for } = wanted;
        let ignore = if *ignore == 0 { String::new() } else { ignore.to_string() };
        let length = hold_for.map(|length| humantime::format_duration(length).to_string());
        Self {
            changes,
            focus: Field::Where,
            place: Entry::new(spec, place_fault),
            condition: Entry::new(condition.as_deref().unwrap_or_default(), condition_fault),
            scope: *scope,
            once: *once,
            ignore: Entry::new(&ignore, number_fault),
            hold_for: Entry::new(&length.unwrap_or_default(), length_fault),
            is_asked: false,
            is_tried: false,
            refusal: None,
        }
    }

    /// The breakpoint that it changes.
    pub fn changes(&self) -> Option<BreakpointId> {
        self.changes
    }

    /// Where keys go.
    pub fn focus(&self) -> Field {
        self.focus
    }

    /// What is in a field.
    pub fn content(&self, field: Field) -> Content<'_> {
        match field {
            Field::Stops => {
                Content::Choice(["process", "call"], usize::from(self.scope == Scope::Call))
            }
            Field::Once => Content::Choice(["no", "yes"], usize::from(self.once)),
            Field::Where => Content::Text(&self.place.typed),
            Field::If => Content::Text(&self.condition.typed),
            Field::Ignore => Content::Text(&self.ignore.typed),
            Field::LetGo => Content::Text(&self.hold_for.typed),
        }
    }

    /// What is wrong in a field. Nothing is, before anything was typed or tried.
    pub fn fault(&self, field: Field) -> Option<&Fault> {
        let fault = self.entry(field)?.fault.as_ref();
        fault.filter(|_| self.is_tried || field != Field::Where || !self.place.text().is_empty())
    }

    /// How the place could go on, and which of that is in the field already.
    pub fn offers(&self, seen: &Seen) -> (Vec<String>, Option<usize>) {
        match self.place.typed.offers() {
            _ if self.focus != Field::Where => (Vec::new(), None),
            Some((offers, at)) => (offers.to_vec(), Some(at)),
            None => (places::complete(self.place.text(), seen), None),
        }
    }

    /// Whether the session is asked and has not answered yet.
    pub fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Why the session did not take it.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// The session has refused it, or could not be asked.
    pub fn refused(&mut self, why: &str) {
        self.is_asked = false;
        self.refusal = Some(why.to_owned());
    }

    /// A key.
    pub fn handle_key(&mut self, seen: &Seen, key: Key) -> FormKey {
        match key {
            Key::Esc | Key::Ctrl('c') => return FormKey::Closes,
            Key::Enter => return self.enter(),
            Key::Tab if self.completes(seen, 1) => {}
            Key::BackTab if self.place.typed.offers().is_some() && self.completes(seen, -1) => {}
            Key::Tab | Key::Down => self.go(self.focus.beside(1)),
            Key::BackTab | Key::Up => self.go(self.focus.beside(-1)),
            key => self.fill_in(key),
        }
        FormKey::Goes
    }

    fn go(&mut self, to: Field) {
        self.place.typed.settle();
        self.focus = to;
    }

    /// Whether there was anything to complete.
    fn completes(&mut self, seen: &Seen, by: isize) -> bool {
        let is_here = self.focus == Field::Where;
        let done = is_here && self.place.typed.complete(by, |text| places::complete(text, seen));
        if done {
            self.place.check();
            self.is_another();
        }
        done
    }

    fn fill_in(&mut self, key: Key) {
        let is_choice = matches!(key, Key::Char(' ') | Key::Left | Key::Right);
        match self.focus {
            Field::Stops if is_choice => {
                self.scope = match self.scope {
                    Scope::Process => Scope::Call,
                    Scope::Call => Scope::Process,
                };
            }
            Field::Once if is_choice => self.once = !self.once,
            field => {
                let Some(entry) = self.entry_mut(field) else { return };
                if !entry.typed.handle_key(key) {
                    return;
                }
                entry.check();
            }
        }
        self.is_another();
    }

    /// What was asked and refused was not this.
    fn is_another(&mut self) {
        self.is_asked = false;
        self.refusal = None;
    }

    fn entry(&self, field: Field) -> Option<&Entry> {
        match field {
            Field::Where => Some(&self.place),
            Field::If => Some(&self.condition),
            Field::Ignore => Some(&self.ignore),
            Field::LetGo => Some(&self.hold_for),
            Field::Stops | Field::Once => None,
        }
    }

    fn entry_mut(&mut self, field: Field) -> Option<&mut Entry> {
        match field {
            Field::Where => Some(&mut self.place),
            Field::If => Some(&mut self.condition),
            Field::Ignore => Some(&mut self.ignore),
            Field::LetGo => Some(&mut self.hold_for),
            Field::Stops | Field::Once => None,
        }
    }

    /// Asks for it, once, if nothing is wrong; else goes to what is.
    fn enter(&mut self) -> FormKey {
        let was_choosing = self.place.typed.settle();
        let wrong = |field: &Field| self.entry(*field).is_some_and(|entry| entry.fault.is_some());
        if let Some(wrong) = Field::ALL.into_iter().find(wrong) {
            // Who takes one of the offers with Enter has not tried to set it yet.
            self.is_tried |= !was_choosing;
            self.go(wrong);
            return FormKey::Goes;
        }
        if self.is_asked {
            return FormKey::Goes;
        }
        self.is_asked = true;
        self.refusal = None;
        let condition = self.condition.text().trim();
        let wanted = Wanted {
            spec: self.place.text().to_owned(),
            scope: self.scope,
            ignore: number(self.ignore.text()).unwrap_or_default(),
            once: self.once,
            condition: (!condition.is_empty()).then(|| condition.to_owned()),
            hold_for: length(self.hold_for.text()).unwrap_or_default(),
        };
        FormKey::Asks(match self.changes {
            Some(breakpoint) => Request::Change { breakpoint, wanted },
            None => Request::Break(wanted),
        })
    }
}
