//! `servers`: programs on loopback that tests and demos talk to.
//!
//! They outlive the command that starts them. Each leaves a record and a log in `target/servers/`, and `down` stops
//! exactly what a record names.

use anyhow::{Context as _, Result, bail};

mod daemon;
mod model;

#[cfg(test)]
mod tests;

/// One kind of server. Its name is the subcommand that starts it.
struct Kind {
    name: &'static str,
    about: &'static str,
    /// Whether `up` starts it.
    needed_by_tests: bool,
    port: u16,
    start: fn(port: u16) -> Result<()>,
}

const KINDS: &[Kind] = &[Kind {
    name: model::NAME,
    about: "a real small language model with an OpenAI-compatible interface",
    needed_by_tests: false,
    port: model::PORT,
    start: model::start,
}];

/// Reads the rest of the command line and does it.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    match args {
        [] | ["up"] => up(),
        ["down"] => down(),
        ["status"] => status(),
        [name, options @ ..] => {
            let kind = KINDS.iter().find(|it| it.name == *name);
            let kind = kind.with_context(|| {
                let names: Vec<&str> = KINDS.iter().map(|it| it.name).collect();
                format!("no server is called {name}; there are: {}", names.join(", "))
            })?;
            (kind.start)(port(kind, options)?)
        }
    }
}

fn port(kind: &Kind, options: &[&str]) -> Result<u16> {
    match options {
        [] => Ok(kind.port),
        ["--port", port] => port.parse().with_context(|| format!("{port} is no port")),
        _ => bail!(
            "cannot read `{}`; usage: cargo xtask servers {} [--port N]",
            options.join(" "),
            kind.name
        ),
    }
}

fn up() -> Result<()> {
    let needed: Vec<&Kind> = KINDS.iter().filter(|it| it.needed_by_tests).collect();
    if needed.is_empty() {
        println!("no test needs a server");
        for kind in KINDS {
            println!("`cargo xtask servers {}` starts {}", kind.name, kind.about);
        }
    }
    needed.iter().try_for_each(|it| (it.start)(it.port))
}

fn down() -> Result<()> {
    let mut stopped = 0;
    for kind in KINDS {
        if let Some(record) = daemon::stop(kind.name)? {
            println!("{}: stopped process {}", kind.name, record.pid);
            stopped += 1;
        }
    }
    if stopped == 0 {
        println!("nothing was running");
    }
    Ok(())
}

fn status() -> Result<()> {
    for kind in KINDS {
        match daemon::running(kind.name)? {
            Some(it) => println!("{}: process {} on 127.0.0.1:{}", kind.name, it.pid, it.port),
            None => println!("{}: not running ({})", kind.name, kind.about),
        }
    }
    Ok(())
}
