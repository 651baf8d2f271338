//! Notes to bytes: the same as the events that they are in full, without making those.

use std::{mem, ptr};

use ddbx_protocol::bounded::Short;
use ddbx_protocol::{
    ControlId, Delay, EventNumber, MethodName, ProcessIndex, ProcessName, RealTime,
};

use super::Encoder;
use crate::format::body::{BEGUN, kind, slot};
use crate::format::varint::{self, Few, Out as _};
use crate::note::{Beginning, Happens, Noted, SentAs, Who};
use crate::queue::Usual;

/// What the name of a control that has begun with a call has beside the name of the method, at
/// most: that of its home, and digits.
const MORE_BYTES: usize = 128 + 29;

impl Encoder {
    /// Adds a note to the open block.
    pub fn push_note(&mut self, noted: &Noted) {
        let Noted { number, at, delay, note } = noted;
        let (path, what) = (note.path.numbers(), note.what);
        match &note.control {
            Who::Named(name) => {
                self.put_note((*number, *at, *delay), path, what, |it, few| it.named(few, name));
            }
            Who::Begun(beginning) => {
                let begun = |it: &mut Self, few| it.begun(few, beginning, false);
                self.put_note((*number, *at, *delay), path, what, begun);
            }
        }
    }

    /// The same with one that is as nearly all are.
    #[inline]
    pub(crate) fn push_usual(&mut self, number: EventNumber, usual: &Usual) {
        let (beginning, nth, what) = (usual.beginning(), usual.nth(), usual.what());
        // Here the control begins, or comes to this process: nobody need be asked for it. Was it
        // here nevertheless, because a process calls itself, then it is defined again.
        let is_call = matches!(what, Happens::CallSent { .. } | Happens::CallArrived { .. });
        let is_new = nth == 1 && is_call;
        let begun = |it: &mut Self, few| it.begun(few, &beginning, is_new);
        self.put_note((number, usual.at, usual.delay), &[nth], what, begun);
    }

    /// Mostly all that a note names was named before, so a few bytes say it; what is not goes
    /// into the block at once, and they before it.
    #[inline(always)]
    fn put_note(
        &mut self,
        (number, at, delay): (EventNumber, RealTime, Delay),
        path: &[u32],
        what: Happens,
        control: impl FnOnce(&mut Self, Few) -> (Few, usize),
    ) {
        self.begin_entry(Some(number));
        let kind = match what {
            Happens::CallSent { .. } => kind::CALL_SENT,
            Happens::CallArrived { .. } => kind::CALL_ARRIVED,
            Happens::ReturnSent => kind::RETURN_SENT,
            Happens::ReturnArrived { .. } => kind::RETURN_ARRIVED,
        };
        let tag_at = self.body.len();
        let mut few = Few::at_the_end_of(mem::take(&mut self.body));
        let tag = self.begin_event(&mut few, kind, number, at, delay);
        let (few, control) = control(self, few);
        let (mut few, which) = match self.usual_path(control, path) {
            Some(which) => (few, which),
            None => few.put(|body| self.other_path(body, control, path)),
        };
        match what {
            Happens::CallSent { method, content } => {
                few = self.method(few, method);
                few.extend(content.to_le_bytes());
            }
            Happens::CallArrived { method, sent_as } => {
                few = self.method(few, method);
                few = self.sent_as(few, sent_as);
            }
            Happens::ReturnSent => {}
            Happens::ReturnArrived { sent_as } => few = self.sent_as(few, sent_as),
        }
        self.body = few.end();
        self.body[tag_at] = tag | which;
    }

    /// From now on a process that notes name by its number has this name.
    pub fn meet(&mut self, process: ProcessIndex, name: &ProcessName) {
        if self.peers.meet(process, name) {
            // Whoever has begun there has another name, too.
            self.begun.clear();
        }
    }

    #[inline(always)]
    fn named(&mut self, mut few: Few, name: &ControlId) -> (Few, usize) {
        match self.controls.find(name) {
            Some(number) => {
                self.controls.put_again(&mut few, number, 0);
                (few, number)
            }
            None => few.put(|body| self.named_anew(body, name)),
        }
    }

    #[cold]
    fn named_anew(&mut self, body: Vec<u8>, name: &ControlId) -> (Vec<u8>, usize) {
        self.with_body(body, |it| it.control(name, 0))
    }

    #[inline(never)]
    fn other_path(&mut self, body: Vec<u8>, control: usize, path: &[u32]) -> (Vec<u8>, u8) {
        self.with_body(body, |it| it.path(control, path))
    }

    /// With the body back where it belongs.
    fn with_body<R>(&mut self, body: Vec<u8>, put: impl FnOnce(&mut Self) -> R) -> (Vec<u8>, R) {
        self.body = body;
        let result = put(self);
        (mem::take(&mut self.body), result)
    }

    #[inline(always)]
    fn begun(&mut self, mut few: Few, beginning: &Beginning, is_new: bool) -> (Few, usize) {
        if !is_new && let Some(number) = self.begun.find(beginning) {
            self.controls.put_again(&mut few, number, 0);
            return (few, number);
        }
        let Beginning { home, method, hash, nth } = *beginning;
        let number = self.controls.define_made(&mut few, MORE_BYTES + method.as_str().len());
        (few, _) = self.process(few, home, 0);
        few = self.method(few, method);
        few.extend(hash.to_le_bytes());
        varint::put(&mut few, u64::from(nth));
        let (calls, begun) = (&mut self.memory.calls, Short::from_slice(&BEGUN));
        match calls.len() == number {
            true => calls.push(begun),
            false => *slot(calls, number) = begun,
        }
        self.begun.is_defined(*beginning, number);
        (few, number)
    }

    #[inline(always)]
    fn method(&mut self, mut few: Few, method: &'static MethodName) -> Few {
        // One event after the other is mostly about the same.
        match self.last_method {
            Some((last, number)) if ptr::eq(last, method) => {
                self.methods.put_again(&mut few, number, 0);
                few
            }
            _ => few.put(|body| self.another_method(body, method)).0,
        }
    }

    #[cold]
    fn another_method(&mut self, mut body: Vec<u8>, method: &'static MethodName) -> (Vec<u8>, ()) {
        let number = self.methods.put(&mut body, method, 0);
        self.last_method = Some((method, number));
        (body, ())
    }

    #[inline(always)]
    fn process(&mut self, mut few: Few, process: ProcessIndex, reserved: u64) -> (Few, usize) {
        match self.peers.number(process) {
            Some(number) => {
                self.processes.put_again(&mut few, number, reserved);
                (few, number)
            }
            None => few.put(|body| self.another_process(body, process, reserved)),
        }
    }

    #[cold]
    fn another_process(
        &mut self,
        mut body: Vec<u8>,
        process: ProcessIndex,
        reserved: u64,
    ) -> (Vec<u8>, usize) {
        let name = self.peers.name(process);
        let number = self.processes.put(&mut body, &name, reserved);
        self.peers.has_number(process, number);
        (body, number)
    }

    #[inline(always)]
    fn sent_as(&mut self, mut few: Few, sent_as: SentAs) -> Few {
        let Some(process) = sent_as.process() else {
            few.byte(0);
            return few;
        };
        let (mut few, process) = self.process(few, process, 1);
        let last = slot(&mut self.memory.departures, process);
        varint::put_difference(&mut few, *last, sent_as.number.0);
        *last = sent_as.number.0;
        few
    }
}
