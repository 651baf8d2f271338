//! Where a breakpoint could be, by the names that the session knows.

use std::collections::BTreeSet;

use ddbx_protocol::control::ProcessView;
use ddbx_protocol::{Pattern, RpcEvent};

use super::session::Seen;

/// How the text of a place could go on: what begins with it first, then what has it
/// somewhere. A process, then a method or a point of it, then an event; and without a
/// process whole places of this name.
pub fn complete(text: &str, seen: &Seen) -> Vec<String> {
    let mut offers = match text.split_once(':') {
        None => beginnings(text, seen),
        Some((process, place)) => Known::of(process, seen).complete(process, place),
    };
    offers.retain(|offer| offer != text);
    offers
}

/// The names of processes that have this text, with those that mean several of them.
pub fn processes(text: &str, seen: &Seen) -> Vec<String> {
    let mut names = BTreeSet::new();
    for view in &seen.processes {
        let family = family(&view.name);
        names.insert(family.to_owned());
        if family != view.name {
            names.extend([view.name.clone(), format!("{family}#1")]);
        } else if text.contains('#') {
            names.insert(format!("{family}#1"));
        }
    }
    matching(text, names)
}

fn family(process: &str) -> &str {
    process.split('#').next().unwrap_or_default()
}

fn beginnings(text: &str, seen: &Seen) -> Vec<String> {
    let mut offers: Vec<String> =
        processes(text, seen).into_iter().map(|name| format!("{name}:")).collect();
    if text.is_empty() || text == "*" {
        offers.push("*:".to_owned());
        return offers;
    }
    let families: BTreeSet<&str> = seen.processes.iter().map(|view| family(&view.name)).collect();
    for process in families {
        let known = Known::of(process, seen);
        let methods = matching(text, known.handled);
        offers.extend(methods.iter().map(|method| format!("{process}:{method}@arrive")));
        let points = matching(text, known.points);
        offers.extend(points.iter().map(|point| format!("{process}:{point}")));
    }
    offers
}

/// What is known of the processes that a pattern means.
#[derive(Default)]
struct Known {
    /// The methods that they handle.
    handled: BTreeSet<String>,
    /// The methods of those whom they call.
    called: BTreeSet<String>,
    /// The points in their code, as they are written in a place.
    points: BTreeSet<String>,
}

impl Known {
    fn of(process: &str, seen: &Seen) -> Self {
        let pattern = Pattern::from(process);
        let mut known = Self::default();
        for view in seen.processes.iter().filter(|view| pattern.means(&view.name)) {
            add(&mut known.handled, view);
            known.points.extend(view.points.iter().map(|label| format!("point({})", plain(label))));
            let calls = |other: &&ProcessView| {
                view.calls.iter().any(|name| Pattern::from(name.as_str()).means(&other.name))
            };
            seen.processes.iter().filter(calls).for_each(|other| add(&mut known.called, other));
        }
        known
    }

    fn complete(self, process: &str, place: &str) -> Vec<String> {
        let offers = match place.split_once('@') {
            Some((method, event)) if !place.starts_with("point(") => {
                let events = self.events(method).into_iter();
                let events = events.map(|event| event.to_string()).chain(["*".to_owned()]);
                matching(event, events)
                    .into_iter()
                    .map(|event| format!("{method}@{event}"))
                    .collect()
            }
            _ => self.places(place),
        };
        offers.into_iter().map(|place| format!("{process}:{place}")).collect()
    }

    fn places(self, place: &str) -> Vec<String> {
        let is_open = place.is_empty() || place == "*";
        let text = if is_open { "" } else { place };
        let methods = matching(text, self.handled.iter().chain(&self.called).cloned());
        // The event that is wanted most; for the others, what comes after @ is completed.
        let whole = |method: String| format!("{method}@{}", self.events(&method)[0]);
        let mut offers: Vec<String> = methods.into_iter().map(whole).collect();
        offers.extend(matching(text, self.points));
        if is_open {
            offers.extend(["*@arrive", "point(*)"].map(str::to_owned));
        }
        let mut seen = BTreeSet::new();
        offers.retain(|offer| seen.insert(offer.clone()));
        offers
    }

    /// All of them, those before others that can happen to this method here.
    fn events(&self, method: &str) -> [RpcEvent; 4] {
        use RpcEvent::{Arrive, Call, Resume, Return};
        match self.called.contains(method) && !self.handled.contains(method) {
            true => [Call, Resume, Arrive, Return],
            false => [Arrive, Return, Call, Resume],
        }
    }
}

fn add(methods: &mut BTreeSet<String>, view: &ProcessView) {
    methods.extend(view.methods.iter().map(|method| plain(method)));
}

/// A name as it can be written in a place, which has no room for everything.
fn plain(name: &str) -> String {
    let is_free = |character: char| character.is_whitespace() || character.is_control();
    name.replace(|character| is_free(character) || matches!(character, '(' | ')'), "*")
}

/// Those that have the text in them, whatever the case: who begins with it first.
pub(crate) fn matching(text: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let text = text.to_lowercase();
    let found = names.into_iter().filter_map(|name| Some((name.to_lowercase().find(&text)?, name)));
    let mut found: Vec<(usize, String)> = found.collect();
    found.sort_by_key(|(at, _)| *at > 0);
    found.into_iter().map(|(_, name)| name).collect()
}
