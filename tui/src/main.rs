//! `ddbx-tui`: the screen, in a terminal of its own.

fn main() -> std::process::ExitCode {
    ddbx_tui::main()
}
