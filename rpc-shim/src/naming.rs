//! Names of controls that are the same in every run.
//!
//! Counting does not give them: on several threads the order of starts is luck. So
//! a control that begins with a call is named by what it calls and with which
//! arguments, and numbered only among its likes; given names win.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU32, Ordering};

use ddbx_protocol::{
    CallId, CallPath, ControlId, MethodName, PointLabel, ProcessIndex, ProcessName,
};
use ddbx_satellite::driver::{Handle, Named};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many different beginnings are counted. After that counting starts anew.
const ROOTS_MAX: usize = 64 * 1024;

/// In how many groups beginnings are counted where their names are only looked at.
const LIKES: usize = 4 * 1024;

/// How many names of methods, and of points, a thread keeps.
const MADE_MAX: usize = 4 * 1024;

/// Who a control is. For most nobody asks: so the name of one that begins from outside is
/// made when somebody does.
#[derive(Clone)]
pub(crate) enum Name {
    /// It has a name.
    Known(ControlId),
    /// The `nth` that has begun in its home with this call.
    Root { home: Handle, method: MethodName, hash: u64, nth: u32 },
}

impl Named for Name {
    fn id(&self) -> ControlId {
        match self {
            Self::Known(id) => id.clone(),
            Self::Root { home, method, hash, nth } => {
                root(&home.name(), method.as_str(), *hash, *nth)
            }
        }
    }
}

impl From<ControlId> for Name {
    fn from(id: ControlId) -> Self {
        Self::Known(id)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            // What is only sent is not kept.
            Self::Root { home, method, hash, nth } if is_short(method) => {
                TEXT.with_borrow_mut(|text| {
                    text.of_home(home);
                    write_root(&mut text.text, method.as_str(), *hash, *nth);
                    serializer.serialize_str(&text.text)
                })
            }
            _ => self.id().serialize(serializer),
        }
    }
}

thread_local! {
    static TEXT: RefCell<Text> = RefCell::default();
}

/// A name that is written, and that of its home, which nearly always is the same.
#[derive(Default)]
struct Text {
    text: String,
    home: Option<(ProcessIndex, u64)>,
    home_bytes: usize,
}

impl Text {
    fn of_home(&mut self, home: &Handle) {
        let is = Some((home.process(), home.names_had()));
        if self.home != is {
            self.text.clear();
            let _ = write!(self.text, "{}/", home.name());
            (self.home, self.home_bytes) = (is, self.text.len());
        }
        self.text.truncate(self.home_bytes);
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ControlId::deserialize(deserializer).map(Self::Known)
    }
}

/// A call of a control, which may not have been named yet.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Called {
    pub(crate) control: Name,
    pub(crate) path: CallPath,
}

impl Called {
    pub(crate) fn id(&self) -> CallId {
        CallId { control: self.control.id(), path: self.path.clone() }
    }
}

/// How many controls have begun in a process, by what they began with.
#[derive(Default)]
pub(crate) struct Roots {
    calls: HashMap<(String, u64), u32>,
    named: BTreeMap<String, u32>,
}

impl Roots {
    /// One that begins with a call.
    pub(crate) fn of_call(&mut self, process: &ProcessName, method: &str, hash: u64) -> ControlId {
        if self.calls.len() >= ROOTS_MAX {
            self.calls.clear();
        }
        let nth = self.calls.entry((method.to_owned(), hash)).or_default();
        *nth = nth.wrapping_add(1);
        root(process, method, hash, *nth)
    }

    /// One that was given a name.
    pub(crate) fn named(&mut self, process: &ProcessName, name: &str) -> ControlId {
        control(&format!("{process}/{}", numbered(name, &mut self.named)))
    }
}

/// The same, where nobody compares the names with those of another run: all that it takes
/// is to count. Now and then it counts two different beginnings as likes.
pub(crate) struct Likes(Box<[AtomicU32]>);

impl Default for Likes {
    fn default() -> Self {
        Self((0..LIKES).map(|_| AtomicU32::default()).collect())
    }
}

impl Likes {
    pub(crate) fn of_call(&self, home: &Handle, method: MethodName, hash: u64) -> Name {
        let place = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let nth = self.0[place as usize % LIKES].fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        Name::Root { home: home.clone(), method, hash, nth }
    }
}

fn root(process: &ProcessName, method: &str, hash: u64, nth: u32) -> ControlId {
    let mut path = format!("{process}/");
    write_root(&mut path, &clean(method), hash, nth);
    control(&path)
}

fn write_root(path: &mut String, method: &str, hash: u64, nth: u32) {
    // A string takes all that it is given.
    let _ = write!(path, "{method}-{hash:016x}-{nth}");
}

/// Whether a name of a method is part of a control's as it is.
fn is_short(method: &MethodName) -> bool {
    method.as_str().len() <= NAME_BYTES_MAX
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
pub(crate) fn by_content(method: &MethodName, hash: u64, likes: &mut BTreeMap<String, u32>) -> u32 {
    let name = numbered(&format!("{method}-{hash:016x}"), likes);
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

/// The names that a thread has made: each is made once, and is known to be met where it
/// was met last.
struct Made<N>(BTreeMap<String, (N, Option<ProcessIndex>)>);

impl<N> Default for Made<N> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<N: Clone> Made<N> {
    /// A name, and whether it is news that it is met in `process`. A name that cannot be
    /// one is no reason to stop the program: it goes on under one like it.
    fn name<E: std::fmt::Debug>(
        &mut self,
        text: &str,
        process: Option<ProcessIndex>,
        make: impl Fn(String) -> Result<N, E>,
    ) -> (N, bool) {
        if let Some((name, met_in)) = self.0.get_mut(text) {
            let is_news = process.is_some() && *met_in != process;
            *met_in = process.or(*met_in);
            return (name.clone(), is_news);
        }
        let name = make(text.to_owned()).or_else(|_| make(clean(text))).expect("a cleaned name");
        // A program has as many as were written down; another kind of name may not end.
        if self.0.len() < MADE_MAX {
            self.0.insert(text.to_owned(), (name.clone(), process));
        }
        (name, process.is_some())
    }
}

thread_local! {
    static METHODS: RefCell<Made<MethodName>> = RefCell::default();
    static LABELS: RefCell<Made<PointLabel>> = RefCell::default();
}

/// The name of a method. tarpc's names are identifiers and a dot.
pub(crate) fn method(name: &str) -> MethodName {
    METHODS.with_borrow_mut(|made| made.name(name, None, MethodName::new).0)
}

/// The name of a method that is handled in a process, and whether that may be news.
pub(crate) fn handled(name: &str, process: ProcessIndex) -> (MethodName, bool) {
    METHODS.with_borrow_mut(|made| made.name(name, Some(process), MethodName::new))
}

/// The label of a point that is passed in a process, and whether that may be news.
pub(crate) fn passed(label: &str, process: ProcessIndex) -> (PointLabel, bool) {
    LABELS.with_borrow_mut(|made| made.name(label, Some(process), PointLabel::new))
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

/// A hash of a value's content.
pub(crate) fn hash<T: Serialize>(value: &T) -> u64 {
    struct Hash(u64);
    impl io::Write for Hash {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = fnv(bytes, self.0);
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
    use ddbx_protocol::{MethodName, PointLabel};

    use super::*;

    #[test]
    fn names_tell_content_and_likes() {
        let process = process("shop");
        let mut roots = Roots::default();
        let first = roots.of_call(&process, "Shop.buy", hash(&("apple", 1)));
        let other = roots.of_call(&process, "Shop.buy", hash(&("pear", 1)));
        let again = roots.of_call(&process, "Shop.buy", hash(&("apple", 1)));
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
    fn what_is_sent_is_the_name() {
        let process = crate::Process::alone("shop", &crate::course::Wanted::default()).unwrap();
        let home = process.satellite().unwrap();
        let name = Likes::default().of_call(home, method("Shop.buy"), 7);
        let long = Likes::default().of_call(home, method(&"x".repeat(200)), 7);
        for name in [name, long] {
            let sent = serde_json::to_string(&name).unwrap();
            assert_eq!(serde_json::from_str::<ControlId>(&sent).unwrap(), name.id());
        }
    }

    #[test]
    fn a_name_is_news_once_in_each_process() {
        let (here, there) = (ProcessIndex(1), ProcessIndex(2));
        assert_eq!(method("News.paper").as_str(), "News.paper");
        let is_news = [here, here, there].map(|process| handled("News.paper", process).1);
        assert_eq!(is_news, [true, false, true]);
        method("News.paper");
        assert!(!handled("News.paper", there).1, "it was called from here, not handled");
        assert_eq!(passed("a label", here).0.as_str(), "a-label");
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
