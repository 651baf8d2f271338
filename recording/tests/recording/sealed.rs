//! A finished recording, manifests and seal included: cut at every byte, changed in
//! every bit, and never silent.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use ddbx_protocol::{ProcessName, RealTime, SessionName};
use ddbx_recording::{
    Entry, Keep, LogWriter, NewProcess, Options, Recording, SessionManifest, join, seal, verify,
};
use tempfile::TempDir;

use crate::traffic::{Controls, shop};

#[test]
fn a_finished_recording_cut_at_every_byte() {
    let sealed = Sealed::new(512);
    sealed.cut(0..sealed.len());
}

#[test]
fn a_finished_recording_changed_in_every_bit() {
    let sealed = Sealed::new(512);
    sealed.change(0..sealed.len() * 8);
}

/// A finished recording of two processes, and what is in its files.
pub struct Sealed {
    directory: TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Sealed {
    /// With about so many bytes in its logs.
    pub fn new(log_bytes: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let name = SessionName::new("shop").unwrap();
        let session = SessionManifest::new(name, "2026-01-01T00:00:00Z", Keep::All);
        let logs = shop(1, 2, log_bytes as u32 / 64, Controls::Named);
        let mut files = vec!["session.json".to_owned(), "seal.json".to_owned()];
        for (name, moments) in &logs[..2] {
            let new = NewProcess { name: name.clone(), pid: 42, command: None };
            let storage = join(directory.path(), &session, new).unwrap();
            let mut writer = LogWriter::new(storage, name, Options::default());
            let now = RealTime::default();
            for moments in moments.chunks(15) {
                moments.iter().for_each(|moment| writer.append(now, &Entry::Event(moment.clone())));
                writer.flush(now);
            }
            writer.close(now).unwrap();
            files.extend([format!("{name}@1/process.json"), format!("{name}@1/000001.log")]);
        }
        let exits = logs[..2].iter().map(|(name, _)| (name.clone(), 0));
        seal(directory.path(), exits.collect::<BTreeMap<ProcessName, u8>>()).unwrap();
        let paths = files.into_iter().map(|file| directory.path().join(file));
        let files = paths.map(|path| (path.clone(), fs::read(&path).unwrap())).collect();
        let sealed = Self { directory, files };
        assert!(!sealed.is_refused(), "it is in order as it is");
        sealed
    }

    /// How many bytes all its files have.
    pub fn len(&self) -> usize {
        self.files.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Cuts a file at each of these places, counted through all files.
    pub fn cut(&self, places: Range<usize>) {
        for place in places {
            self.spoil(place, |file, _, at| file.set_len(at).unwrap());
        }
    }

    /// Changes each of these bits, counted through all files.
    pub fn change(&self, bits: Range<usize>) {
        for bit in bits {
            let changed = |byte: u8| byte ^ 1 << (bit % 8);
            self.spoil(bit / 8, |file, byte, at| file.write_all_at(&[changed(byte)], at).unwrap());
        }
    }

    /// In place: most file systems are slow to write small files anew.
    fn spoil(&self, place: usize, spoil: impl FnOnce(&File, u8, u64)) {
        let mut at = place;
        for (path, bytes) in &self.files {
            if at < bytes.len() {
                let file = OpenOptions::new().write(true).open(path).unwrap();
                spoil(&file, bytes[at], at as u64);
                assert!(self.is_refused(), "byte {at} of {}", path.display());
                return file.write_all_at(&bytes[at..], at as u64).unwrap();
            }
            at -= bytes.len();
        }
        panic!("there is no byte {place}");
    }

    fn is_refused(&self) -> bool {
        Recording::open(self.directory.path())
            .map_or(true, |recording| !verify(&recording).is_sound())
    }
}
