//! What people would use instead, if it is built, and a collector for it.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;

/// One of them.
pub struct Other {
    pub name: &'static str,
    /// Where its program is, below `bench/others`.
    program: &'static str,
    /// What builds it.
    pub build: &'static str,
}

/// tracing with OpenTelemetry.
pub const OTLP: Other = Other {
    name: "OTLP tracing",
    program: "target/release/ddbx-bench-others",
    build: "cargo build --release --manifest-path bench/others/Cargo.toml",
};

/// tokio-console.
pub const CONSOLE: Other = Other {
    name: "tokio-console",
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

/// Takes whatever is sent to it, and forgets it. It is there as long as this program.
pub fn sink() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever hangs up has sent enough.
            thread::spawn(move || _ = swallow(&stream));
        }
    });
    Ok(address)
}

fn swallow(stream: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let header = line.trim_end().to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            if header.is_empty() {
                break;
            }
        }
        io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
        (&*stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
    }
}
