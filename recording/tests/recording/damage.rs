//! Cut at every byte, changed in every bit: never a panic, never silent, and what
//! can be read is exact.

use std::ops::Range;

use ddbx_protocol::{ProcessName, RealTime};
use ddbx_recording::{Entry, LogWriter, Options, Segment, SegmentReader, Tail};

use crate::memory::{Memory, read};
use crate::traffic::{Controls, shop};

#[test]
fn four_kib_cut_at_every_byte() {
    let log = Log::new(4 * 1024);
    log.cut(0..log.bytes.len() + 1);
}

#[test]
fn four_kib_changed_in_every_bit() {
    let log = Log::new(4 * 1024);
    log.change(0..log.bytes.len() * 8);
}

/// A log of many small blocks, and all that is in it.
pub struct Log {
    pub process: ProcessName,
    pub bytes: Vec<u8>,
    pub entries: Vec<Entry>,
    /// Where blocks end, and how many entries there are up to there.
    ends: Vec<(usize, usize)>,
}

impl Log {
    /// About so many bytes of it.
    pub fn new(bytes_wanted: usize) -> Self {
        let purchases = bytes_wanted as u32 / 64;
        let (process, moments) = shop(1, 4, purchases, Controls::PerPurchase).swap_remove(2);
        let memory = Memory::default();
        let mut writer = LogWriter::new(memory.clone(), &process, Options::default());
        let now = RealTime::default();
        let (mut entries, mut ends) = (Vec::new(), Vec::new());
        for moments in moments.chunks(15) {
            for moment in moments {
                let entry = Entry::Event(moment.clone());
                writer.append(now, &entry);
                entries.push(entry);
            }
            writer.flush(now);
            ends.push((memory.bytes().len(), entries.len()));
            if memory.bytes().len() >= bytes_wanted {
                break;
            }
        }
        writer.close(now).unwrap();
        let bytes = memory.bytes();
        assert!(bytes.len() >= bytes_wanted && ends.len() > 3, "{} bytes", bytes.len());
        Self { process, bytes, entries, ends }
    }

    /// Cuts it at each of these places.
    pub fn cut(&self, places: Range<usize>) {
        for place in places {
            let contents = read(&self.bytes[..place], &self.process, Segment::FIRST);
            let whole = self.ends.iter().filter(|(end, _)| *end <= place);
            let readable = whole.map(|(_, count)| *count).max().unwrap_or_default();
            let read = contents.entries.iter().map(|(_, entry)| entry);
            assert!(read.eq(&self.entries[..readable]), "cut at {place}");
            let tail = contents.end.unwrap();
            let is_whole = place == self.bytes.len();
            assert_eq!(tail == Tail::Closed, is_whole, "cut at {place}: {tail:?}");
            if let Tail::Torn(at) | Tail::Open(at) = tail {
                assert!(at.byte <= place as u64);
                assert_eq!(
                    matches!(tail, Tail::Open(_)),
                    at.byte == place as u64,
                    "cut at {place}"
                );
            }
        }
    }

    /// Changes each of these bits.
    pub fn change(&self, bits: Range<usize>) {
        let mut bytes = self.bytes.clone();
        for bit in bits {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let mut reader = SegmentReader::new(&bytes[..], self.process.clone(), Segment::FIRST);
            let mut count = 0;
            let (at, _) = loop {
                match reader.read() {
                    Ok(Some(recorded)) => {
                        assert_eq!(recorded.entry, self.entries[count], "bit {bit}");
                        count += 1;
                    }
                    Ok(None) => panic!("bit {bit} was changed, and nobody noticed"),
                    Err(damage) => break damage,
                }
            };
            // Nothing is lost but the block that it is in, and what follows.
            let whole = self.ends.iter().filter(|(end, _)| *end <= bit / 8);
            assert_eq!(
                count,
                whole.map(|(_, count)| *count).max().unwrap_or_default(),
                "bit {bit}"
            );
            assert!(at.byte <= bit as u64 / 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
