//! What people would use instead, if it is built, and a collector for it.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::abba::Contrast;
use super::variants::of_other;

/// One of them.
pub struct Other {
    pub name: &'static str,
    pub contrast: [Contrast; 1],
    /// Where its program is, below `bench/others`.
    program: &'static str,
    /// What builds it.
    pub build: &'static str,
}

/// tracing with OpenTelemetry.
pub static OTLP: Other = Other {
    name: "OTLP tracing",
    contrast: of_other("OTLP tracing"),
    program: "target/release/ddbx-bench-others",
    build: "cargo build --release --manifest-path bench/others/Cargo.toml",
};

/// tokio-console.
pub static CONSOLE: Other = Other {
    name: "tokio-console",
    contrast: of_other("tokio-console"),
    program: "target/console/release/ddbx-bench-others",
    build: "RUSTFLAGS=\"--cfg tokio_unstable\" cargo build --release --features console \
            --manifest-path bench/others/Cargo.toml --target-dir bench/others/target/console",
};

impl Other {
    /// Its program, if it is built.
    pub fn program(&self) -> Option<PathBuf> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("others").join(self.program);
        program.exists().then_some(program)
    }
}

/// Takes whatever is sent to it, and forgets all but how much it was. It is there as long as
/// this program.
pub struct Sink {
    pub address: SocketAddr,
    received: Arc<AtomicU64>,
}

impl Sink {
    /// At a port that the system chooses.
    pub fn open() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let received = Arc::new(AtomicU64::new(0));
        let counts = received.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counts = counts.clone();
                // Whoever hangs up has sent enough.
                thread::spawn(move || _ = swallow(&stream, &counts));
            }
        });
        Ok(Self { address, received })
    }

    /// How many bytes so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

/// One request after the other.
fn swallow(stream: &TcpStream, received: &AtomicU64) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(length) = content_length(&mut reader)? {
        let swallowed = io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
        received.fetch_add(swallowed, Ordering::Relaxed);
        (&*stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
    }
    Ok(())
}

/// Of the next request; none if there is no more.
fn content_length(reader: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let header = line.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            return Ok(Some(length));
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
}
