//! Left on for ever, it keeps the end.

use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use ddbx_protocol::RealTime;
use ddbx_recording::{
    Entry, Keep, LogWriter, Options, ReadError, Recorded, Recording, Segment, Tail, join, verify,
};

use crate::directory::{new_process, session};
use crate::memory;
use crate::traffic::{Controls, shop};

const KEEP: Keep = Keep::LastMib(NonZeroU32::MIN);
const MIB: u64 = 1024 * 1024;

fn segments(directory: &Path) -> Vec<Segment> {
    let mut found: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            Some(Segment(name.strip_suffix(".log")?.parse().unwrap()))
        })
        .collect();
    found.sort();
    found
}

#[test]
fn the_last_mib_is_kept_and_can_be_read_meanwhile() {
    let temporary = tempfile::tempdir().unwrap();
    let (name, moments) = shop(3, 4, 8_000, Controls::PerPurchase).swap_remove(2);
    let files = join(temporary.path(), &session(KEEP), new_process(&name)).unwrap();
    let directory = files.directory().to_owned();
    let options = Options { keep: KEEP, sync_after: None, ..Options::default() };
    let mut writer = LogWriter::new(files, &name, options);
    let recording = Recording::open(temporary.path()).unwrap();
    let mut follower = recording.logs()[0].read().unwrap();
    let mut followed = Vec::new();
    let mut now = RealTime::default();
    let entries: Vec<_> = moments.into_iter().map(Entry::Event).collect();
    let mut largest = 0;
    for some in entries.chunks(300) {
        now = now + Duration::from_millis(25);
        some.iter().for_each(|entry| writer.append(now, entry));
        writer.poll(now);
        let kept = segments(&directory);
        let bytes = |segment: &Segment| {
            fs::metadata(directory.join(format!("{:06}.log", segment.0))).unwrap().len()
        };
        largest = largest.max(kept.iter().map(bytes).sum());
        followed.extend(follower.by_ref().map(|recorded| recorded.unwrap().entry));
    }
    writer.close(now).unwrap();
    followed.extend(follower.by_ref().map(|recorded| recorded.unwrap().entry));
    assert!(followed == entries, "who follows closely sees all");
    assert_eq!(follower.tail(), Tail::Closed);
    assert!(largest <= MIB && largest > MIB / 2, "{largest} bytes were kept");

    let kept = segments(&directory);
    assert!(kept[0] > Segment::FIRST && kept.len() <= 4);
    let all: Vec<Recorded> = recording.logs()[0].read().unwrap().map(Result::unwrap).collect();
    let all: Vec<Entry> = all.into_iter().map(|recorded| recorded.entry).collect();
    assert!(entries.ends_with(&all));
    let mut one_by_one = Vec::new();
    for segment in &kept {
        let bytes = fs::read(directory.join(format!("{:06}.log", segment.0))).unwrap();
        let contents = memory::read(&bytes, &name, *segment);
        assert!(contents.end.is_ok() && !contents.entries.is_empty());
        one_by_one.extend(contents.entries.into_iter().map(|(_, entry)| entry));
    }
    assert!(one_by_one == all, "each segment can be read by itself");
    let found = verify(&recording);
    assert!(found.is_sound(), "{:?}", found.findings.iter().find(|finding| finding.is_wrong()));

    // In the middle of a log a file that is cut, or gone, is damage.
    let middle = directory.join(format!("{:06}.log", kept[1].0));
    let bytes = fs::read(&middle).unwrap();
    fs::write(&middle, &bytes[..bytes.len() - 1]).unwrap();
    let error = recording.logs()[0].read().unwrap().find_map(Result::err).unwrap();
    assert!(error.to_string().contains("goes on in another"), "{error}");
    fs::remove_file(&middle).unwrap();
    let error = recording.logs()[0].read().unwrap().find_map(Result::err).unwrap();
    assert!(matches!(error, ReadError::SegmentGone { .. }), "{error}");
}
