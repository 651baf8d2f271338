use std::sync::Mutex;

use super::*;

/// A writer whose text can be read while it is written.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn sink(&self, colours: bool) -> Sink {
        Sink { writer: Box::new(self.clone()), colours }
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[tokio::test]
async fn lines_and_notes_keep_their_order() {
    let both = Shared::default();
    let sinks = Sinks { lines: both.sink(false), notes: both.sink(false) };
    let printer = Printer::start(&["inventory", "web"], sinks).unwrap();
    printer.note("web started".to_owned());
    printer.speaker(1).line("\u{1b}[31mone\u{1b}[2J".to_owned()).await;
    printer.note("web exited".to_owned());
    printer.speaker(0).line("two".to_owned()).await;
    printer.finish().await.unwrap();
    assert_eq!(
        both.text(),
        "ddbx      | web started\nweb       | one\nddbx      | web exited\ninventory | two\n"
    );
}

#[tokio::test]
async fn colours_tell_processes_apart() {
    let lines = Shared::default();
    let sinks = Sinks { lines: lines.sink(true), notes: Shared::default().sink(true) };
    let printer = Printer::start(&["a", "b"], sinks).unwrap();
    printer.speaker(0).line("\u{1b}[31mred".to_owned()).await;
    printer.speaker(1).line("plain".to_owned()).await;
    printer.finish().await.unwrap();
    assert_eq!(
        lines.text(),
        "\u{1b}[36ma    |\u{1b}[0m \u{1b}[31mred\u{1b}[0m\n\u{1b}[33mb    |\u{1b}[0m plain\n"
    );
}

#[tokio::test]
async fn an_output_that_is_gone_is_reported() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let lines = Sink { writer: Box::new(Gone), colours: false };
    let sinks = Sinks { lines, notes: Shared::default().sink(false) };
    let mut printer = Printer::start(&["a"], sinks).unwrap();
    let speaker = printer.speaker(0);
    speaker.line("one".to_owned()).await;
    assert_eq!(printer.failed().await.kind(), io::ErrorKind::BrokenPipe);
    // And nobody hangs who goes on speaking.
    for _ in 0..100 {
        speaker.line("x".repeat(1 << 16)).await;
    }
}
