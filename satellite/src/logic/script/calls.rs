//! The recorded calls that are still to be made, by where they are made: a program that makes
//! a million calls asks a million times which of them one is.

use std::collections::{BTreeMap, BTreeSet};

use ddbx_protocol::{CallId, CallPath, ControlId, EventKind, MethodName};

use super::Place;

/// Calls that nobody has claimed.
#[derive(Debug, Default)]
pub(super) struct Calls(BTreeMap<Site, Left>);

/// A method that is called by a control, in the handler of one of its calls or where it began.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Site {
    control: ControlId,
    outer: Option<CallPath>,
    method: MethodName,
}

/// Those of one site that are left.
#[derive(Debug, Default)]
struct Left {
    all: BTreeSet<Place>,
    by_content: BTreeMap<u16, BTreeSet<Place>>,
}

impl Calls {
    /// A call is to be made, if this is one.
    pub(super) fn insert(&mut self, kind: &EventKind, place: Place) {
        if let Some((site, content)) = site(kind) {
            let left = self.0.entry(site).or_default();
            left.all.insert(place);
            left.by_content.entry(content).or_default().insert(place);
        }
    }

    /// Somebody has claimed it.
    pub(super) fn remove(&mut self, kind: &EventKind, place: Place) {
        let Some((site, content)) = site(kind) else { return };
        let Some(left) = self.0.get_mut(&site) else { return };
        left.all.remove(&place);
        if let Some(same) = left.by_content.get_mut(&content) {
            same.remove(&place);
            if same.is_empty() {
                left.by_content.remove(&content);
            }
        }
        if left.all.is_empty() {
            self.0.remove(&site);
        }
    }

    /// Which one a call is that is made in the handler of `outer`, and was taken for the one
    /// at `counted`: rather one with the same arguments, rather that very one, rather the
    /// next.
    pub(super) fn like(
        &self,
        outer: Option<&CallPath>,
        call: &EventKind,
        counted: Option<Place>,
    ) -> Option<Place> {
        let (site, content) = site(call)?;
        let left = self.0.get(&Site { outer: outer.cloned(), ..site })?;
        let places = left.by_content.get(&content).unwrap_or(&left.all);
        counted.filter(|counted| places.contains(counted)).or_else(|| places.first().copied())
    }
}

/// Where a call is made, and what its arguments are; none if it is another event.
fn site(kind: &EventKind) -> Option<(Site, u16)> {
    let EventKind::CallSent { call: CallId { control, path }, method, content } = kind else {
        return None;
    };
    let (control, method) = (control.clone(), method.clone());
    Some((Site { control, outer: path.outer(), method }, *content))
}
