//! Breakpoints as people write them: `process:Service.method@event` or
//! `process:point(label)`, with `*` for anything in each part.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::breakpoint::{Place, RpcEvent};

/// How long a spec may be.
const SPEC_BYTES_MAX: usize = 512;

/// A name, or part of one, with `*` for any run of characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// Whether the whole name fits.
    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let mut last = None;
        for part in parts {
            if let Some(middle) = last.replace(part) {
                match rest.find(middle) {
                    Some(at) => rest = &rest[at + middle.len()..],
                    None => return false,
                }
            }
        }
        match last {
            None => rest.is_empty(),
            Some(end) => rest.ends_with(end),
        }
    }

    /// The only name that fits, if there is only one.
    pub fn literal(&self) -> Option<&str> {
        (!self.0.contains('*')).then_some(&self.0)
    }

    /// Whether a process is meant: by its whole name, or by the name before its
    /// number. The first of several has no number in its name, and is meant by 1.
    pub fn means(&self, process: &str) -> bool {
        self.matches(process)
            || match process.split_once('#') {
                Some((family, _)) => self.matches(family),
                None => self.matches(&format!("{process}#1")),
            }
    }
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where the user wants controls stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// In which processes. `inventory` means every replica of it.
    pub process: Pattern,
    /// At what.
    pub place: Place,
}

impl Spec {
    /// Whether it concerns a process.
    pub fn concerns(&self, process: &str) -> bool {
        self.process.means(process)
    }
}

impl FromStr for Spec {
    type Err = InvalidSpec;

    fn from_str(text: &str) -> Result<Self, InvalidSpec> {
        let refuse = |at: usize, what| Err(InvalidSpec { spec: text.to_owned(), at, what });
        if text.len() > SPEC_BYTES_MAX {
            return Err(InvalidSpec { spec: String::new(), at: 0, what: What::TooLong });
        }
        if let Some((at, _)) =
            text.char_indices().find(|(_, c)| c.is_control() || c.is_whitespace())
        {
            return refuse(at, What::Character);
        }
        let Some((process, place)) = text.split_once(':') else {
            return refuse(text.len(), What::NoProcess);
        };
        let place_at = process.len() + 1;
        if process.is_empty() {
            return refuse(0, What::NoProcess);
        }
        let process = Pattern::from(process);
        if let Some(label) = place.strip_prefix("point(") {
            return match label.strip_suffix(')') {
                Some("") => refuse(place_at + 6, What::NoLabel),
                Some(label) if !label.contains(['(', ')']) => {
                    Ok(Self { process, place: Place::Point { label: Pattern::from(label) } })
                }
                _ => refuse(text.len(), What::OpenLabel),
            };
        }
        let Some((method, event)) = place.split_once('@') else {
            return refuse(text.len(), What::NoEvent);
        };
        if method.is_empty() {
            return refuse(place_at, What::NoMethod);
        }
        let event = match event {
            "*" => None,
            "call" => Some(RpcEvent::Call),
            "arrive" => Some(RpcEvent::Arrive),
            "return" => Some(RpcEvent::Return),
            "resume" => Some(RpcEvent::Resume),
            _ => return refuse(place_at + method.len() + 1, What::UnknownEvent),
        };
        Ok(Self { process, place: Place::Rpc { event, method: Pattern::from(method) } })
    }
}

/// A spec that cannot be read; shown with a mark under the place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}\n  {spec}\n  {}^", " ".repeat(self.spec[..self.at].chars().count()))]
pub struct InvalidSpec {
    spec: String,
    at: usize,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
enum What {
    #[error("a breakpoint has at most {SPEC_BYTES_MAX} bytes")]
    TooLong,
    #[error("a breakpoint cannot contain white space or control characters")]
    Character,
    #[error("a breakpoint begins with a process: process:Service.method@event, or *:…")]
    NoProcess,
    #[error("which method? process:Service.method@event, or process:*@event")]
    NoMethod,
    #[error("at which event? add @call, @arrive, @return or @resume")]
    NoEvent,
    #[error("the events are call, arrive, return and resume, or * for all")]
    UnknownEvent,
    #[error("which point? process:point(label), or process:point(*)")]
    NoLabel,
    #[error("the label of a point ends with a parenthesis: process:point(label)")]
    OpenLabel,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, fits) in [
            ("inventory", "inventory", true),
            ("inventory", "inventory2", false),
            ("*", "", true),
            ("in*ry", "inventory", true),
            ("*.reserve", "Inventory.reserve", true),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--c", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(Pattern::from(pattern).matches(name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn specs() {
        let spec: Spec = "inventory:Inventory.reserve@arrive".parse().unwrap();
        assert!(spec.concerns("inventory") && spec.concerns("inventory#2"));
        let one: Spec = "inventory#1:point(last item)".replace(' ', "-").parse().unwrap();
        assert!(one.concerns("inventory") && one.concerns("inventory#1"));
        assert!(!one.concerns("inventory#2") && !one.concerns("inventory#12"));
        let second: Spec = "inventory#2:*@call".parse().unwrap();
        assert!(second.concerns("inventory#2") && !second.concerns("inventory"));
        for bad in [
            "",
            "x",
            ":a@b",
            "p:",
            "p:m",
            "p:@call",
            "p:m@sometimes",
            "p:point(",
            "p:point()",
            "p:a b@call",
        ] {
            let error = bad.parse::<Spec>().unwrap_err().to_string();
            assert_eq!(error.lines().count(), 3, "{error}");
        }
        let error = "p:Shop.buy@sell".parse::<Spec>().unwrap_err().to_string();
        assert!(error.ends_with("  p:Shop.buy@sell\n             ^"), "{error}");
    }
}
