//! Notes to bytes: the same as the events that they are in full, without making those.

use ddbx_protocol::{ProcessIndex, ProcessName};

use super::Encoder;
use crate::format::body::{BEGUN, kind, slot};
use crate::format::varint;
use crate::note::{Beginning, Happens, Noted, SentAs, Who};

/// What the name of a control that has begun with a call has beside the names of its home and
/// of the method, at most.
const DIGITS: usize = 29;

impl Encoder {
    /// Adds a note to the open block.
    pub fn push_note(&mut self, noted: &Noted) {
        let Noted { number, at, delay, note } = noted;
        self.begin_entry(Some(*number));
        let kind = match note.what {
            Happens::CallSent { .. } => kind::CALL_SENT,
            Happens::CallArrived { .. } => kind::CALL_ARRIVED,
            Happens::ReturnSent => kind::RETURN_SENT,
            Happens::ReturnArrived { .. } => kind::RETURN_ARRIVED,
        };
        let (tag_at, tag) = self.begin_event(kind, *number, *at, *delay);
        let control = match &note.control {
            Who::Named(name) => self.control(name, 0),
            Who::Begun(beginning) => self.begun(beginning),
        };
        let tag = tag | self.path(control, note.path.numbers());
        match note.what {
            Happens::CallSent { method, content } => {
                self.methods.put(&mut self.body, method, 0);
                self.body.extend(content.to_le_bytes());
            }
            Happens::CallArrived { method, sent_as } => {
                self.methods.put(&mut self.body, method, 0);
                self.sent_as(sent_as);
            }
            Happens::ReturnSent => {}
            Happens::ReturnArrived { sent_as } => self.sent_as(sent_as),
        }
        self.body[tag_at] = tag;
    }

    /// From now on a process that notes name by its number has this name.
    pub fn meet(&mut self, process: ProcessIndex, name: &ProcessName) {
        if self.peers.meet(process, name) {
            // Whoever has begun there has another name, too.
            self.begun.clear();
        }
    }

    #[inline]
    fn begun(&mut self, beginning: &Beginning) -> usize {
        match self.begun.find(beginning) {
            Some(number) => self.controls.put_again(&mut self.body, number, 0),
            None => self.define_begun(beginning),
        }
    }

    fn define_begun(&mut self, beginning: &Beginning) -> usize {
        let Beginning { home, method, hash, nth } = *beginning;
        // No name of a process is longer.
        let bytes = 128 + method.as_str().len() + DIGITS;
        let number = self.controls.define_made(&mut self.body, bytes);
        self.process(home, 0);
        self.methods.put(&mut self.body, method, 0);
        self.body.extend(hash.to_le_bytes());
        varint::put(&mut self.body, u64::from(nth));
        slot(&mut self.memory.calls, number).extend_from_slice(&BEGUN);
        self.begun.is_defined(*beginning, number);
        number
    }

    #[inline]
    fn process(&mut self, process: ProcessIndex, reserved: u64) -> usize {
        match self.peers.number(process) {
            Some(number) => self.processes.put_again(&mut self.body, number, reserved),
            None => {
                let name = self.peers.name(process);
                let number = self.processes.put(&mut self.body, &name, reserved);
                self.peers.has_number(process, number);
                number
            }
        }
    }

    #[inline]
    fn sent_as(&mut self, sent_as: SentAs) {
        let Some(process) = sent_as.process() else { return self.body.push(0) };
        let process = self.process(process, 1);
        self.departs(process, sent_as.number);
    }
}
