//! The `ddbx` command again: tests find only the programs of their own package.

use std::process::ExitCode;

fn main() -> ExitCode {
    ddbx_cli::main()
}
