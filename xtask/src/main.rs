//! The repository's automation: `cargo xtask <command>`.
//!
//! There is one module per command, with its name. A gate that only reads the repository returns its complaints as
//! text, so that its rules are tested without a repository. A gate that runs another program passes that program's
//! output through.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program prints to its terminal"
)]

use std::process::ExitCode;

use anyhow::{Result, bail};

mod behaviour;
mod bench;
mod cassettes;
mod ci;
mod compat;
mod cycles;
mod deny;
mod docs;
mod e2e;
mod fmt;
mod frontends;
mod fuzz;
mod imports;
mod layers;
mod lint;
mod process;
mod python;
mod report;
mod servers;
mod sim;
mod suites;
mod telemetry;
mod test;
mod tidy;
mod tools;
mod words;
mod workspace;

use test::tier::Tier;

const USAGE: &str = "\
usage: cargo xtask <command>

  ci [--deep]         every gate below up to `docs`; what .ci/run calls
  fmt [--fix]         rustfmt
  lint                clippy, warnings are errors
  layers              permitted dependencies between crates, and between the layers of the core crate
  cycles              no import cycle spans more than three files
  tidy                rules about text, manifests and ARCHITECTURE.md
  words               the language of documentation, comments and messages
  deny                licences, bans and sources of all packages, by deny.toml
  compat              programs that use sqlx beside the default features
  suites              every store and runtime runs every scenario
  test [--gate|--deep] [args…]
                      the quick tests, which need no server, or those of CI, or all of them; the arguments are
                      passed to nextest
  behaviour [--write] [--seeds PATH]
                      behaviours of the reference pages, and the tests of the last run that prove them
  cassettes [DIR [FILTER]]
                      provider traffic through the model adapters, by default ../shared/cassettes
  fuzz DIR [--minutes M | --cases N] [--seed N] [--format NAME] [--case N]
                      mutated replies through the adapters; inputs that break a rule are written to target/fuzz
  e2e --check         the guide has the results of the last run of the end-to-end tests
  frontends [--only stories|ag-ui|chat] [--store S|all]
                      the real clients of the AI SDK and of AG-UI, in Node and in Chromium; in `ci` only with --deep
  telemetry [--store sqlite|postgres|all] [--only TEST]
                      spans of the command `helix` in Arize Phoenix; in `ci` only with --deep
  docs [--write]      rustdoc, the book and its links; --write updates the generated pages

  e2e [--store S|all] [--runtime R] [--scenario WORD] [--seed[s] N] [--full]
                      the end-to-end tests; writes their results into the guide
  bench [GROUP…] [--json] [--quick] [--write]
                      the cost of a step, compared with a bare loop, our targets and other frameworks;
                      --write updates the guide
  sim [--hours H] [--stories N] [--seed N] [--without FAULT,…] [--story TEXT]
                      simulated stories by seed, on all cores; failed stories are added to tests-sim/known.txt
  sim --mutants [--seed N]
                      the number of stories until each defect that is put into the library is detected
  servers [up|down|status]
                      the servers that tests need; `test` and `e2e` start them
  servers NAME [--port N]
                      one of them, or a model for demos";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match workspace::enter().and_then(|()| dispatch(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[&str]) -> Result<()> {
    match args {
        ["ci"] => ci::run(Tier::Gate),
        ["ci", "--deep"] => ci::run(Tier::Deep),
        ["fmt"] => fmt::check(),
        ["fmt", "--fix"] => fmt::fix(),
        ["lint"] => lint::run(),
        ["layers"] => report::gate("layers", layers::complaints),
        ["cycles"] => report::gate("cycles", cycles::complaints),
        ["tidy"] => report::gate("tidy", tidy::complaints),
        ["words"] => report::gate("words", words::complaints),
        ["deny"] => report::gate("deny", deny::complaints),
        ["compat"] => report::gate("compat", || compat::complaints(Tier::Deep)),
        ["suites"] => report::gate("suites", suites::complaints),
        ["test", rest @ ..] => test::run(rest),
        ["behaviour", rest @ ..] => behaviour::run(rest),
        ["cassettes", rest @ ..] => cassettes::run(rest),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["frontends", rest @ ..] => frontends::run(rest),
        ["telemetry", rest @ ..] => telemetry::run(rest),
        ["docs"] => docs::run(),
        ["docs", "--write"] => docs::write(),
        ["e2e", rest @ ..] => e2e::run(rest),
        ["bench", rest @ ..] => bench::run(rest),
        ["servers", rest @ ..] => servers::run(rest),
        ["sim", rest @ ..] => sim::run(rest),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        [] => bail!("no command given\n\n{USAGE}"),
        _ => bail!("unknown command `{}`\n\n{USAGE}", args.join(" ")),
    }
}
