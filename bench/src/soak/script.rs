//! What somebody does who debugs the shop, made up from a seed: no input, no output.

use std::time::Duration;

use ddbx_protocol::Scope;
use ddbx_protocol::control::{Wanted, Whom};
use fastrand::Rng;

/// Where breakpoints are set, with a condition that is sometimes met there.
const PLACES: &[(&str, Option<&str>)] = &[
    ("traffic:Gateway.buy@call", Some("args.item == \"bread\"")),
    ("traffic:Gateway.buy@resume", None),
    ("gateway:Gateway.buy@arrive", Some("args.customer == 3")),
    ("gateway:Orders.place@call", None),
    ("orders:Orders.place@arrive", Some("args.item == \"apples\"")),
    ("orders:Inventory.reserve@resume", None),
    ("orders:Payments.*@call", None),
    ("inventory:Inventory.reserve@arrive", Some("args.item == \"cheese\"")),
    ("inventory:Inventory.reserve@return", None),
    ("inventory:Registry.renew@call", None),
    ("inventory:point(reserve)", None),
    ("payments:Payments.charge@arrive", Some("args.amount > 0")),
    ("payments:Payments.*@return", None),
    ("registry:Registry.renew@arrive", Some("args.service == \"inventory\"")),
    ("registry:Registry.lookup@return", None),
    ("*:*@arrive", None),
];

/// How many breakpoints there are at the most.
const PLANTED_MAX: usize = 6;

/// One thing that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A breakpoint is set.
    Set(Wanted),
    /// The nth of those that are set is removed.
    Delete(usize),
    /// All are removed.
    DeleteAll,
    /// A process is held.
    Pause(String),
    /// Whoever is held goes on.
    Continue(Whom),
    /// Somebody looks at all there is to see.
    Look,
    /// Time passes.
    Wait(Duration),
}

/// Makes up one round after the other.
pub struct Script {
    random: Rng,
    /// The longest that anybody is held.
    hold_max: Duration,
}

impl Script {
    pub fn new(seed: u64, hold_max: Duration) -> Self {
        Self { random: Rng::with_seed(seed), hold_max }
    }

    /// The next round, with so many breakpoints set: somebody may be held, and whoever is
    /// goes on.
    pub fn round(&mut self, planted: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        let more = self.random.usize(1..=3).min(PLANTED_MAX.saturating_sub(planted));
        for _ in 0..more {
            steps.push(Step::Set(self.wanted()));
        }
        if self.random.u8(..4) == 0 {
            steps.push(Step::Pause(self.service()));
        }
        steps.push(Step::Wait(self.between(self.hold_max / 100, self.hold_max)));
        if self.random.bool() {
            steps.push(Step::Look);
        }
        self.release(planted + more, &mut steps);
        steps.push(Step::Wait(self.between(self.hold_max / 200, self.hold_max / 5)));
        steps
    }

    fn release(&mut self, planted: usize, steps: &mut Vec<Step>) {
        match self.random.u8(..8) {
            // Whoever comes next is held again.
            0 => steps.push(Step::Continue(Whom::All)),
            1 => {
                let mut services = ddbx_shop::services().to_vec();
                services.push("traffic");
                self.random.shuffle(&mut services);
                for service in services {
                    steps.push(Step::Continue(Whom::Process(service.to_owned())));
                }
            }
            2 if planted > 0 => {
                steps.push(Step::Delete(self.random.usize(..planted)));
                steps.push(Step::Continue(Whom::All));
            }
            // Whoever stands at one that is removed stays, for a while.
            3 => {
                steps.push(Step::DeleteAll);
                steps.push(Step::Wait(self.between(self.hold_max / 100, self.hold_max / 4)));
                steps.push(Step::Continue(Whom::All));
            }
            _ => {
                steps.push(Step::DeleteAll);
                steps.push(Step::Continue(Whom::All));
            }
        }
    }

    fn wanted(&mut self) -> Wanted {
        let (spec, condition) = PLACES[self.random.usize(..PLACES.len())];
        let scope = if self.random.bool() { Scope::Process } else { Scope::Call };
        let hold_for = (self.random.u8(..5) == 0)
            .then(|| self.between(self.hold_max / 100, self.hold_max / 4));
        Wanted {
            spec: spec.to_owned(),
            scope,
            ignore: if self.random.bool() { 0 } else { self.random.u32(1..20) },
            once: self.random.u8(..4) == 0,
            condition: condition.filter(|_| self.random.bool()).map(ToOwned::to_owned),
            hold_for,
        }
    }

    fn service(&mut self) -> String {
        let services = ddbx_shop::services();
        services[self.random.usize(..services.len())].to_owned()
    }

    /// Short times are as likely as long ones.
    fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let ratio = most.as_secs_f64() / least.as_secs_f64();
        least.mul_f64(ratio.powf(self.random.f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_seed_says_it_all_and_every_place_is_one() {
        let rounds = |seed| {
            let mut script = Script::new(seed, SECOND);
            (0..200).map(|nth| script.round(nth % 7)).collect::<Vec<_>>()
        };
        assert_eq!(rounds(1), rounds(1));
        assert_ne!(rounds(1), rounds(2));
        for (spec, condition) in PLACES {
            assert!(spec.parse::<ddbx_protocol::Spec>().is_ok(), "{spec}");
            let condition = condition.map(ddbx_protocol::condition::Condition::check);
            assert!(condition.is_none_or(|checked| checked.is_ok()), "{spec}");
        }
    }

    #[test]
    fn whoever_is_held_goes_on_in_the_same_round() {
        let mut script = Script::new(7, SECOND);
        for _ in 0..500 {
            let steps = script.round(3);
            let last_hold = steps
                .iter()
                .rposition(|step| matches!(step, Step::Set(_) | Step::Pause(_)))
                .unwrap_or_default();
            let goes_on = |step: &Step| matches!(step, Step::Continue(_));
            assert!(steps[last_hold..].iter().any(goes_on), "{steps:?}");
        }
    }
}
