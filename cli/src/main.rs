//! The `ddbx` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ddbx_cli::main()
}
