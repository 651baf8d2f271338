//! Bytes of a pipe, cut into lines.

/// How much of a line is kept; what follows up to its end is left out.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Collects bytes until a line is complete. Memory is bounded, whatever comes.
#[derive(Default)]
pub(crate) struct Lines {
    partial: Vec<u8>,
    cut: bool,
}

impl Lines {
    /// Takes bytes and gives the lines that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut complete = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (piece, ended) = match piece.strip_suffix(b"\n") {
                Some(piece) => (piece, true),
                None => (piece, false),
            };
            let room = LINE_BYTES_MAX - self.partial.len();
            self.cut |= piece.len() > room;
            self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
            if ended {
                complete.push(self.take());
            }
        }
        complete
    }

    /// What was never ended by a newline, if there is such.
    pub(crate) fn finish(mut self) -> Option<String> {
        (!self.partial.is_empty()).then(|| self.take())
    }

    fn take(&mut self) -> String {
        let line = std::mem::take(&mut self.partial);
        let mut text =
            String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned();
        if std::mem::take(&mut self.cut) {
            text.push_str(" … (cut)");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_however_the_bytes_come_in() {
        let bytes = "one\r\n\ntwo ü\nthree".as_bytes();
        for size in 1..bytes.len() {
            let mut lines = Lines::default();
            let mut seen: Vec<_> = bytes.chunks(size).flat_map(|part| lines.push(part)).collect();
            seen.extend(lines.finish());
            assert_eq!(seen, ["one", "", "two ü", "three"], "by {size}");
        }
        assert_eq!(Lines::default().finish(), None);
    }

    #[test]
    fn long_lines_are_cut_and_bad_bytes_replaced() {
        let mut lines = Lines::default();
        for _ in 0..100 {
            assert!(lines.push(&[b'x'; 10_000]).is_empty());
        }
        assert!(lines.partial.len() <= LINE_BYTES_MAX);
        let seen = lines.push(b"\nshort\n\xff\n");
        assert_eq!(seen[0], format!("{} … (cut)", "x".repeat(LINE_BYTES_MAX)));
        assert_eq!(seen[1..], ["short", "\u{fffd}"]);

        let exact = [vec![b'x'; LINE_BYTES_MAX], b"\n".to_vec()].concat();
        assert_eq!(lines.push(&exact), ["x".repeat(LINE_BYTES_MAX)]);
    }
}
