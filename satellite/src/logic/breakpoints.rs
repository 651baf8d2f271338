//! The breakpoints planted in this process.

use ddbx_protocol::{Breakpoint, BreakpointId, Gate, Place, Scope};

/// The breakpoints planted in one process, and how often each was met.
#[derive(Debug, Default)]
pub struct Breakpoints {
    planted: Vec<Planted>,
}

#[derive(Debug)]
struct Planted {
    breakpoint: Breakpoint,
    met: u32,
    spent: bool,
}

impl Breakpoints {
    /// Plants a breakpoint, in place of one of the same id.
    pub fn plant(&mut self, breakpoint: Breakpoint) {
        self.remove(breakpoint.id);
        self.planted.push(Planted { breakpoint, met: 0, spent: false });
    }

    /// Forgets a breakpoint; true if it was there.
    pub fn remove(&mut self, id: BreakpointId) -> bool {
        let before = self.planted.len();
        self.planted.retain(|planted| planted.breakpoint.id != id);
        self.planted.len() < before
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.planted.clear();
    }

    /// Whether there are none: the common case, decided without looking further.
    pub fn is_empty(&self) -> bool {
        self.planted.is_empty()
    }

    /// The groups of events that they may meet.
    pub fn groups(&self) -> Groups {
        let of = |planted: &Planted| match &planted.breakpoint.place {
            Place::Rpc { method: name, .. } | Place::Point { label: name } => {
                name.literal().map_or(Groups::ALL, Groups::of)
            }
        };
        Groups(self.planted.iter().fold(0, |groups, planted| groups | of(planted).0))
    }

    /// The breakpoints that an event may meet.
    pub fn at<'a>(&'a self, gate: &'a Gate) -> impl Iterator<Item = &'a Breakpoint> {
        let fitting = self.planted.iter().filter(|p| !p.spent && p.matches(gate));
        fitting.map(|planted| &planted.breakpoint)
    }

    /// The breakpoint that will stop this event whoever comes first, if any: one for
    /// single calls that has nothing more to count.
    pub fn will_stop(&self, gate: &Gate, met: &[BreakpointId]) -> Option<BreakpointId> {
        let is_sure = |p: &&Planted| {
            let Breakpoint { scope, once, ignore, .. } = p.breakpoint;
            scope == Scope::Call && !once && p.met >= ignore
        };
        let mut fitting = self.planted.iter().filter(|p| p.matches(gate) && p.holds(met));
        fitting.find(is_sure).map(|planted| planted.breakpoint.id)
    }

    /// How often each was met.
    pub fn met(&self) -> impl Iterator<Item = (BreakpointId, u32)> {
        self.planted.iter().map(|planted| (planted.breakpoint.id, planted.met))
    }

    /// The breakpoint that stops this event, if any. Counts every one it meets. A
    /// breakpoint with a condition is met only if that is among the `met`.
    pub fn hit(&mut self, gate: &Gate, met: &[BreakpointId]) -> Option<(BreakpointId, Scope)> {
        let mut first = None;
        let fits = |p: &&mut Planted| !p.spent && p.matches(gate) && p.holds(met);
        for planted in self.planted.iter_mut().filter(fits) {
            planted.met = planted.met.saturating_add(1);
            if planted.met > planted.breakpoint.ignore && first.is_none() {
                planted.spent = planted.breakpoint.once;
                first = Some((planted.breakpoint.id, planted.breakpoint.scope));
            }
        }
        first
    }
}

/// Events by the names of their methods and points, in as many groups as fit into a word:
/// so it is nearly always known at once that no breakpoint is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups(pub u64);

impl Groups {
    const ALL: Self = Self(u64::MAX);

    /// The group of an event.
    pub fn of_gate(gate: &Gate) -> Self {
        match gate {
            Gate::Rpc(_, method) => Self::of(method.as_str()),
            Gate::Point(label) => Self::of(label.as_str()),
            _ => Self(0),
        }
    }

    /// The group of a method or a point.
    pub fn of(name: &str) -> Self {
        let fold = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
        Self(1 << (((hash >> 32) ^ hash) % 64))
    }
}

impl Planted {
    fn holds(&self, met: &[BreakpointId]) -> bool {
        self.breakpoint.condition.is_none() || met.contains(&self.breakpoint.id)
    }

    fn matches(&self, gate: &Gate) -> bool {
        match (&self.breakpoint.place, gate) {
            (Place::Rpc { event, method }, Gate::Rpc(happens, called)) => {
                event.is_none_or(|event| event == *happens) && method.matches(called.as_str())
            }
            (Place::Point { label }, Gate::Point(passed)) => label.matches(passed.as_str()),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use ddbx_protocol::{MethodName, Pattern, RpcEvent};

    use super::*;

    #[test]
    fn whoever_fits_is_in_a_group_that_is_looked_out_for() {
        let gate = |method: &str| Gate::Rpc(RpcEvent::Arrive, MethodName::new(method).unwrap());
        let looked_out_for = |planted: &Breakpoints, method: &str| {
            planted.groups().0 & Groups::of_gate(&gate(method)).0 != 0
        };
        let mut planted = Breakpoints::default();
        assert!(!looked_out_for(&planted, "World.hello"));
        planted.plant(breakpoint(1, Some("World.hello"), 0, false));
        assert!(looked_out_for(&planted, "World.hello"));
        let others = (0..1000).filter(|n| looked_out_for(&planted, &format!("Other.m{n}")));
        assert!(others.count() < 100);
        assert_eq!(Groups::of_gate(&Gate::Deadline), Groups(0));
        planted.plant(breakpoint(2, Some("*.hello"), 0, false));
        assert!((0..100).all(|n| looked_out_for(&planted, &format!("Other{n}.hello"))));
    }

    fn breakpoint(id: u32, method: Option<&str>, ignore: u32, once: bool) -> Breakpoint {
        let method = Pattern::from(method.unwrap_or("*"));
        let place = Place::Rpc { event: Some(RpcEvent::Arrive), method };
        Breakpoint {
            id: BreakpointId(id),
            place,
            scope: Scope::Call,
            ignore,
            once,
            condition: None,
        }
    }

    #[test]
    fn counts_and_matches() {
        let mut planted = Breakpoints::default();
        planted.plant(breakpoint(1, Some("Shop.buy"), 1, true));
        let buy = Gate::Rpc(RpcEvent::Arrive, MethodName::new("Shop.buy").unwrap());
        let sell = Gate::Rpc(RpcEvent::Arrive, MethodName::new("Shop.sell").unwrap());
        let hits = |planted: &mut Breakpoints, gate| planted.hit(gate, &[]).map(|(id, _)| id.0);
        assert_eq!(hits(&mut planted, &buy), None, "the first is ignored");
        assert_eq!(hits(&mut planted, &sell), None, "another method");
        assert_eq!(hits(&mut planted, &buy), Some(1));
        assert_eq!(hits(&mut planted, &buy), None, "only once");
        planted.plant(breakpoint(2, None, 0, false));
        assert_eq!(hits(&mut planted, &sell), Some(2));
        assert!(planted.remove(BreakpointId(2)) && !planted.remove(BreakpointId(2)));
    }
}
