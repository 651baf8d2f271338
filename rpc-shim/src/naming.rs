//! Names of controls that are the same in every run.
//!
//! Counting does not give them: on several threads the order of starts is luck. So
//! a control that begins with a call is named by what it calls and with which
//! arguments, and numbered only among its likes; given names win.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU32, Ordering};

use ddbx_protocol::{CallPath, ControlId, MethodName, PointLabel, ProcessIndex, ProcessName};
use ddbx_recording::{Beginning, Who};
use serde::{Deserialize, Serialize};

use crate::homes;
use crate::methods::{self, Method};

mod roots;

pub(crate) use roots::Roots;

/// How many different beginnings are counted. After that counting starts anew.
const ROOTS_MAX: usize = 64 * 1024;

/// In how many groups beginnings are counted where their names are only looked at. Few: every
/// call looks at another one, and what is near is found sooner.
const LIKES: usize = 256;

/// How many labels of points a thread keeps.
const LABELS_MAX: usize = 4 * 1024;

/// Who a control is. For most nobody asks: so the name of one that begins with a call from
/// outside is made when somebody does, of the name of its home and of that call's method.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Told", into = "Told")]
pub(crate) enum Name {
    /// It has a name.
    Known(ControlId),
    /// The `nth` that has begun in its home with a call like this. Once it has called on that is
    /// said too, for its name does not follow from a call any more.
    Root { hash: u64, nth: u32, began: Option<Began> },
}

/// With what a control began that has called on since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began {
    pub(crate) home: &'static ProcessName,
    pub(crate) method: &'static Method,
}

impl Began {
    /// As another process has said it, if there is room to keep it.
    pub(crate) fn told(home: &str, method: &str) -> Option<Self> {
        Some(Self { home: homes::of_others(home)?, method: methods::of_others(method)? })
    }
}

/// A name in a format for people.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Name")]
enum Told {
    Known(ControlId),
    Root {
        hash: u64,
        nth: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        began: Option<(ProcessName, MethodName)>,
    },
}

impl From<Told> for Name {
    fn from(told: Told) -> Self {
        match told {
            Told::Known(id) => Self::Known(id),
            Told::Root { hash, nth, began: None } => Self::Root { hash, nth, began: None },
            Told::Root { hash, nth, began: Some((home, method)) } => {
                Self::told(&home, &method, hash, nth)
            }
        }
    }
}

impl From<Name> for Told {
    fn from(name: Name) -> Self {
        match name {
            Name::Known(id) => Self::Known(id),
            Name::Root { hash, nth, began } => {
                let told = |began: Began| (began.home.clone(), began.method.name.clone());
                Self::Root { hash, nth, began: began.map(told) }
            }
        }
    }
}

impl Name {
    /// Makes it that of one that begins with a call: in place, since mostly it is one.
    #[inline]
    pub(crate) fn set_root(&mut self, hash: u64, nth: u32, began: Option<Began>) {
        match self {
            Self::Root { hash: own_hash, nth: own_nth, began: own_began } => {
                (*own_hash, *own_nth, *own_began) = (hash, nth, began);
            }
            Self::Known(_) => *self = Self::Root { hash, nth, began },
        }
    }

    /// Of a control that has called on, as another process has said it.
    pub(crate) fn told(home: &ProcessName, method: &MethodName, hash: u64, nth: u32) -> Self {
        match Began::told(home.as_str(), method.as_str()) {
            Some(began) => Self::Root { hash, nth, began: Some(began) },
            None => Self::Known(ControlId::of_call(home, method, hash, nth)),
        }
    }

    pub(crate) fn id(&self, home: impl FnOnce() -> ProcessName, method: &Method) -> ControlId {
        match self {
            Self::Known(id) => id.clone(),
            Self::Root { hash, nth, began: None } => {
                ControlId::of_call(&home(), &method.name, *hash, *nth)
            }
            Self::Root { hash, nth, began: Some(began) } => {
                ControlId::of_call(began.home, &began.method.name, *hash, *nth)
            }
        }
    }

    /// The same in a note, for which no name is made.
    pub(crate) fn who(&self, home: ProcessIndex, method: &'static Method) -> Who {
        match self {
            Self::Known(id) => Who::Named(id.clone()),
            // Who is recorded need not know its home.
            Self::Root { began: Some(began), .. } => {
                Who::Named(self.id(|| began.home.clone(), method))
            }
            Self::Root { hash, nth, began: None } => {
                Who::Begun(Beginning { home, method: &method.name, hash: *hash, nth: *nth })
            }
        }
    }
}

impl Default for Name {
    fn default() -> Self {
        Self::Root { hash: 0, nth: 0, began: None }
    }
}

impl From<ControlId> for Name {
    fn from(id: ControlId) -> Self {
        Self::Known(id)
    }
}

/// Does the same as [`Roots`] where nobody compares the names with those of another run: all that
/// it takes is to count. Now and then it counts two different beginnings as likes.
pub(crate) struct Likes(Box<[AtomicU32]>);

impl Default for Likes {
    fn default() -> Self {
        Self((0..LIKES).map(|_| AtomicU32::default()).collect())
    }
}

impl Likes {
    #[inline]
    pub(crate) fn of_call(&self, hash: u64) -> u32 {
        let place = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.0[place as usize % LIKES].fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// How many have begun.
    pub(crate) fn counted(&self) -> u64 {
        self.0.iter().map(|count| u64::from(count.load(Ordering::Relaxed))).sum()
    }
}

/// A child of a control; of one that handles a call, the child of that call.
pub(crate) fn child(
    parent: &ControlId,
    call: Option<&CallPath>,
    name: &str,
    siblings: &mut BTreeMap<String, u32>,
) -> ControlId {
    let call = call.map(|call| format!("!{call}")).unwrap_or_default();
    control(&format!("{parent}{call}/{}", numbered(name, siblings)))
}

/// Whoever does something in a process outside all controls.
pub(crate) fn outside(process: &ProcessName) -> ControlId {
    control(&format!("{process}/outside"))
}

/// What tells a call from others that are made beside it.
pub(crate) fn content(args: u64, connection: u32) -> u16 {
    let mixed = fnv(&args.to_le_bytes(), FNV_BASIS ^ u64::from(connection));
    ((mixed >> 48) ^ (mixed >> 32) ^ (mixed >> 16) ^ mixed) as u16
}

/// A number for a call, by what it is: far from all that are counted.
pub(crate) fn by_content(method: &Method, hash: u64, likes: &mut BTreeMap<String, u32>) -> u32 {
    let name = numbered(&format!("{}-{hash:016x}", method.name), likes);
    let hash = fnv(name.as_bytes(), FNV_BASIS);
    (1 << 31) | ((hash >> 32) ^ hash) as u32
}

fn numbered(name: &str, used: &mut BTreeMap<String, u32>) -> String {
    let name = clean(name);
    // Loops that spawn with names of their own making must not fill the memory.
    if used.len() >= ROOTS_MAX {
        used.clear();
    }
    let nth = used.entry(name.clone()).or_default();
    *nth += 1;
    if *nth == 1 { name } else { format!("{name}-{nth}") }
}

/// A control's id, however deep the program nests them.
fn control(path: &str) -> ControlId {
    ControlId::new(path).unwrap_or_else(|_| {
        let home = path.split('/').next().unwrap_or("unknown");
        let short = format!("{home}/{:016x}", fnv(path.as_bytes(), FNV_BASIS));
        ControlId::new(short).expect("a short path of a checked name")
    })
}

/// How long a name can be in bytes: the shortest limit of all kinds of names, less
/// some room for a number behind it.
const NAME_BYTES_MAX: usize = 120;

/// The name without what names cannot have.
pub(crate) fn clean(name: &str) -> String {
    let bad = |c: char| c.is_control() || c.is_whitespace() || "/:@*()".contains(c);
    let name = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
    let name: String = name.chars().map(|c| if bad(c) { '-' } else { c }).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

thread_local! {
    static LABELS: RefCell<BTreeMap<String, (PointLabel, ProcessIndex)>> = RefCell::default();
}

/// The label of a point that is passed in a process, and whether that may be news.
pub(crate) fn passed(text: &str, process: ProcessIndex) -> (PointLabel, bool) {
    LABELS.with_borrow_mut(|labels| {
        if let Some((label, met_in)) = labels.get_mut(text) {
            return (label.clone(), std::mem::replace(met_in, process) != process);
        }
        let label = PointLabel::new(text).or_else(|_| PointLabel::new(clean(text)));
        let label = label.expect("a cleaned name");
        if labels.len() < LABELS_MAX {
            labels.insert(text.to_owned(), (label.clone(), process));
        }
        (label, true)
    })
}

/// A process's name, made of one that may have what names cannot.
pub(crate) fn process(name: &str) -> ProcessName {
    ProcessName::new(clean(name)).expect("a cleaned name")
}

pub(crate) const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a: the same in every run and every build, which std's hashers do not promise.
pub(crate) fn fnv(bytes: &[u8], basis: u64) -> u64 {
    bytes.iter().fold(basis, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// A hash of a value's content: the same in every run and every build.
pub(crate) fn hash<T: Serialize>(value: &T) -> u64 {
    struct Hash(u64);
    impl Hash {
        #[inline]
        fn add(&mut self, word: u64) {
            let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 = mixed ^ (mixed >> 32);
        }
    }
    impl io::Write for Hash {
        // Eight bytes at a time: arguments may be long.
        #[inline]
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (words, rest) = bytes.as_chunks::<8>();
            words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
            if !rest.is_empty() {
                let mut word = [0; 8];
                word[..rest.len()].copy_from_slice(rest);
                self.add(u64::from_le_bytes(word) ^ ((rest.len() as u64) << 56));
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut hash = Hash(FNV_BASIS);
    // What cannot be written, or panics while it is, counts as far as it could.
    let write = AssertUnwindSafe(|| bincode::serialize_into(&mut hash, value));
    let _ = panic::catch_unwind(write);
    hash.0
}

#[cfg(test)]
mod tests {
    use ddbx_protocol::PointLabel;

    use super::*;
    use crate::methods::method;

    #[test]
    fn names_tell_content_and_likes() {
        let (process, buy) = (process("shop"), method("Shop.buy"));
        let mut roots = Roots::default();
        let mut begins = |what| {
            let hash = hash(&what);
            let nth = roots.of_call(buy, hash);
            Name::Root { hash, nth, began: None }.id(|| process.clone(), buy)
        };
        let (first, other, again) =
            (begins(("apple", 1)), begins(("pear", 1)), begins(("apple", 1)));
        assert!(first.as_str().starts_with("shop/Shop.buy-") && first.as_str().ends_with("-1"));
        assert_ne!(first, other);
        assert_eq!(again.as_str(), first.as_str().trim_end_matches('1').to_owned() + "2");
        let mut siblings = BTreeMap::new();
        assert!(
            child(&first, Some(&CallPath::root(3)), "audit", &mut siblings)
                .as_str()
                .ends_with("!3/audit")
        );
        assert!(child(&first, None, "audit", &mut siblings).as_str().ends_with("/audit-2"));
    }

    #[test]
    fn a_name_is_made_when_it_is_asked_for() {
        let (home, buy) = (process("shop"), method("Shop.buy"));
        let name = Name::Root { hash: 7, nth: Likes::default().of_call(7), began: None };
        let id = name.id(|| home.clone(), buy);
        assert_eq!(id.as_str(), "shop/Shop.buy-0000000000000007-1");
        let sent = serde_json::to_string(&name).unwrap();
        let read: Name = serde_json::from_str(&sent).unwrap();
        assert_eq!(read.id(|| home.clone(), buy), id);
        // It stays the same when it has called on, wherever that is asked.
        let further = Name::told(&home, &buy.name, 7, 1);
        assert!(matches!(further, Name::Root { began: Some(_), .. }));
        let sent = serde_json::to_string(&further).unwrap();
        let read: Name = serde_json::from_str(&sent).unwrap();
        assert_eq!(read.id(|| process("another"), method("Stock.take")), id);
    }

    #[test]
    fn a_label_is_news_once_in_each_process() {
        let (here, there) = (ProcessIndex(1), ProcessIndex(2));
        assert_eq!(passed("a label", here).0.as_str(), "a-label");
        let is_news = [here, there, there].map(|process| passed("a label", process).1);
        assert_eq!(is_news, [false, true, false]);
    }

    #[test]
    fn contents_are_told_apart() {
        let all =
            [hash(&"a"), hash(&"b"), hash(&"ab"), hash(&("a", "b")), hash(&"a\0"), hash(&1u8)];
        assert!(all.iter().enumerate().all(|(n, one)| !all[..n].contains(one)), "{all:x?}");
        assert_eq!(hash(&"x".repeat(300)), hash(&"x".repeat(300)));
    }

    #[test]
    fn no_name_is_too_much() {
        assert_eq!(clean("a b/c:d"), "a-b-c-d");
        assert_eq!(process("").as_str(), "unnamed");
        let long = "在".repeat(100);
        assert!(process(&long).as_str().len() < 128);
        assert!(PointLabel::new(clean(&long)).is_ok() && MethodName::new(clean(&long)).is_ok());
        let mut deep = control("shop/main");
        for _ in 0..200 {
            deep = child(&deep, None, &"x".repeat(90), &mut BTreeMap::new());
        }
        assert_eq!(deep.home(), "shop");
    }
}
