//! Breakpoints are set, changed and removed: in all processes that they concern.

use ddbx_protocol::BreakpointId;
use ddbx_protocol::control::{BreakpointView, What};

use super::{CheckedWish, Driver, Tell};
use crate::logic::Command;

impl Driver {
    /// None if there are too many.
    pub(super) fn set(&mut self, wish: CheckedWish, hits: Option<Tell>) -> Option<BreakpointView> {
        let id = self.asked.insert(wish, hits)?;
        self.plant(id);
        let view = self.view_breakpoint(id);
        self.log.tell(self.now(), What::BreakpointSet(view.clone()));
        Some(view)
    }

    /// Makes another of a breakpoint; none if there is no such one.
    pub(super) fn change(&mut self, id: BreakpointId, wish: CheckedWish) -> Option<BreakpointView> {
        self.asked.get_mut(id)?.change(wish);
        Some(self.plant_anew(id))
    }

    /// Plants a breakpoint again, or nowhere for now; none if there is no such one.
    pub(super) fn enable(&mut self, id: BreakpointId, enabled: bool) -> Option<BreakpointView> {
        let is_news = self.asked.get_mut(id)?.enable(enabled);
        Some(if is_news { self.plant_anew(id) } else { self.view_breakpoint(id) })
    }

    pub(super) fn delete(&mut self, id: BreakpointId) -> bool {
        self.central.handle_user(Command::Remove(id));
        let was_there = self.asked.remove(id);
        if was_there {
            self.log.tell(self.now(), What::BreakpointDeleted(id));
        }
        was_there
    }

    fn plant_anew(&mut self, id: BreakpointId) -> BreakpointView {
        self.plant(id);
        let view = self.view_breakpoint(id);
        self.log.tell(self.now(), What::Changed(view.clone()));
        view
    }

    /// Plants a breakpoint where it is to be, and nowhere else.
    fn plant(&mut self, id: BreakpointId) {
        let places = self.members.iter().filter_map(|(process, member)| {
            Some((*process, self.asked.planted(id, member.name.as_str())?))
        });
        self.central.handle_user(Command::Replant(id, places.collect()));
        self.deliver();
    }
}
