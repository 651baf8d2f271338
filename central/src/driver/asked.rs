//! Breakpoints as the user asked for them, apart from what is planted for them in
//! each process.

use std::collections::BTreeMap;

use ddbx_protocol::condition::{Condition, InvalidCondition};
use ddbx_protocol::control::{BREAKPOINTS_MAX, Wanted};
use ddbx_protocol::{Breakpoint, BreakpointId, Count, InvalidSpec, ProcessIndex, Spec};
use thiserror::Error;

use super::{Hit, Tell};

/// Why a breakpoint cannot be set.
#[derive(Debug, Error)]
pub enum Refused {
    /// Its place cannot be read.
    #[error(transparent)]
    Spec(#[from] InvalidSpec),
    /// Its condition cannot be read.
    #[error(transparent)]
    Condition(#[from] InvalidCondition),
    /// There is none that could be changed.
    #[error("there is no breakpoint {0}; `ddbx breaks` lists them")]
    Unknown(BreakpointId),
    /// There are too many.
    #[error("there are {BREAKPOINTS_MAX} breakpoints: remove some with `ddbx delete` first")]
    TooMany,
    /// The session has ended.
    #[error("the session has ended")]
    NoSession,
}

/// A breakpoint that can be planted.
pub struct CheckedWish {
    wanted: Wanted,
    spec: Spec,
    condition: Option<Condition>,
}

impl CheckedWish {
    /// Checks what the user asked for.
    pub fn new(wanted: Wanted) -> Result<Self, Refused> {
        let spec = wanted.spec.parse()?;
        let condition = wanted.condition.as_deref().map(Condition::check).transpose()?;
        Ok(Self { wanted, spec, condition })
    }
}

pub(super) struct Wish {
    checked: CheckedWish,
    tell: Option<Tell>,
    pub(super) hits: u64,
    pub(super) spent: bool,
    pub(super) enabled: bool,
    /// Since it was planted last; satellites begin to count anew then.
    counts: BTreeMap<ProcessIndex, Count>,
    /// How often it was met before that, or by processes that have left.
    met_before: u64,
    /// How often it could not be evaluated by those, and the last error.
    errors_before: u64,
    error_before: Option<String>,
}

impl Wish {
    pub(super) fn wanted(&self) -> &Wanted {
        &self.checked.wanted
    }

    /// Whether it is planted in a process of this name.
    pub(super) fn is_planted_in(&self, process: &str) -> bool {
        self.enabled && !self.spent && self.checked.spec.concerns(process)
    }

    /// Makes another of it.
    pub(super) fn change(&mut self, checked: CheckedWish) {
        (self.checked, self.spent) = (checked, false);
        self.begin_to_count();
    }

    /// Whether it is planted from now on; true if that is news.
    pub(super) fn enable(&mut self, enabled: bool) -> bool {
        let is_news = self.enabled != enabled;
        self.enabled = enabled;
        if is_news && enabled {
            self.begin_to_count();
        }
        is_news
    }

    /// A process has left: if it comes again, it counts from the start.
    fn keep_count(&mut self, of: ProcessIndex) {
        if let Some(count) = self.counts.remove(&of) {
            self.met_before += u64::from(count.met);
            self.errors_before += u64::from(count.errors);
            self.error_before = count.error.or(self.error_before.take());
        }
    }

    fn begin_to_count(&mut self) {
        (self.met_before, ..) = self.counts();
        self.counts.clear();
        (self.errors_before, self.error_before) = (0, None);
    }

    /// How often it was met and could not be evaluated, and the last error.
    pub(super) fn counts(&self) -> (u64, u64, Option<String>) {
        let met = self.counts.values().map(|count| u64::from(count.met)).sum::<u64>();
        let met = (self.met_before + met).max(self.hits);
        let errors = self.counts.values().map(|count| u64::from(count.errors)).sum::<u64>();
        let last = self.counts.values().find_map(|count| count.error.as_ref());
        let last = last.or(self.error_before.as_ref()).cloned();
        (met, self.errors_before + errors, last)
    }
}

#[derive(Default)]
pub(super) struct Asked {
    wishes: BTreeMap<BreakpointId, Wish>,
    last: u32,
}

impl Asked {
    /// None if there are too many.
    pub(super) fn insert(
        &mut self,
        checked: CheckedWish,
        tell: Option<Tell>,
    ) -> Option<BreakpointId> {
        if self.wishes.len() >= BREAKPOINTS_MAX {
            return None;
        }
        self.last += 1;
        let id = BreakpointId(self.last);
        let wish = Wish {
            checked,
            tell,
            hits: 0,
            spent: false,
            enabled: true,
            counts: BTreeMap::new(),
            met_before: 0,
            errors_before: 0,
            error_before: None,
        };
        self.wishes.insert(id, wish);
        Some(id)
    }

    /// A process has left.
    pub(super) fn leave(&mut self, process: ProcessIndex) {
        self.wishes.values_mut().for_each(|wish| wish.keep_count(process));
    }

    pub(super) fn remove(&mut self, id: BreakpointId) -> bool {
        self.wishes.remove(&id).is_some()
    }

    pub(super) fn ids(&self) -> Vec<BreakpointId> {
        self.wishes.keys().copied().collect()
    }

    pub(super) fn get(&self, id: BreakpointId) -> Option<&Wish> {
        self.wishes.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: BreakpointId) -> Option<&mut Wish> {
        self.wishes.get_mut(&id)
    }

    /// What is planted for it in a process, if it concerns that.
    pub(super) fn planted(&self, id: BreakpointId, process: &str) -> Option<Breakpoint> {
        let wish = self.wishes.get(&id).filter(|wish| wish.is_planted_in(process))?;
        let CheckedWish { wanted, spec, condition } = &wish.checked;
        Some(Breakpoint {
            id,
            place: spec.place.clone(),
            scope: wanted.scope,
            ignore: wanted.ignore,
            once: wanted.once,
            condition: condition.clone(),
        })
    }

    /// All that is planted in a process of this name.
    pub(super) fn concerning(&self, process: &str) -> Vec<Breakpoint> {
        self.wishes.keys().filter_map(|id| self.planted(*id, process)).collect()
    }

    /// Somebody stands at it; none if it was not to stop anybody any more.
    pub(super) fn hit(&mut self, hit: Hit) -> Option<&Wanted> {
        let takes_part = |wish: &&mut Wish| wish.enabled && !wish.spent;
        let wish = self.wishes.get_mut(&hit.breakpoint).filter(takes_part)?;
        wish.hits += 1;
        wish.spent = wish.checked.wanted.once;
        Some(&wish.checked.wanted)
    }

    /// Whoever listens hears of a control that stands at it.
    pub(super) fn tell(&self, hit: Hit) {
        let wish = self.wishes.get(&hit.breakpoint);
        if let Some(tell) = wish.and_then(|wish| wish.tell.as_ref()) {
            tell(hit);
        }
    }

    pub(super) fn count(&mut self, process: ProcessIndex, counts: &[Count]) {
        for count in counts {
            if let Some(wish) = self.wishes.get_mut(&count.breakpoint) {
                wish.counts.insert(process, count.clone());
            }
        }
    }
}
