//! What people see: help texts, reports and errors, and the commands of the
//! README, each compared with what it printed when it was written down.
//! `TRYCMD=overwrite cargo test -p ddbx-cli` writes them down anew.

#[test]
fn commands_print_what_they_should() {
    // As a reader of the README would: from the root of the tree.
    std::env::set_current_dir("..").unwrap();
    trycmd::TestCases::new()
        .env("NO_COLOR", "1")
        .case("cli/tests/cmd/*.trycmd")
        .case("README.md")
        .run();
}
