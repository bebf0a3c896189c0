//! `servers`: programs on loopback that tests and demos talk to.
//!
//! They outlive the command that starts them. Each leaves a record and a log in `target/servers/`, and `down` stops
//! exactly what a record names.

use std::fs::File;

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;

mod account;
mod daemon;
mod folder;
mod model;
mod pgbouncer;
mod postgres;
mod python;
mod redis;
mod temporal;

#[cfg(test)]
mod tests;

/// One kind of server. Its name is the subcommand that starts it.
struct Kind {
    name: &'static str,
    about: &'static str,
    /// The variable by which tests are told of another server than ours, if they need one at all. `up` starts those.
    instead: Option<&'static str>,
    port: u16,
    /// What asks it to end.
    stop: Signal,
    start: fn(port: Port) -> Result<()>,
}

/// Where a server is to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Port {
    /// There, or on any free port if that one is taken.
    Wished(u16),
    /// There or not at all.
    Exactly(u16),
}

const KINDS: &[Kind] = &[
    Kind {
        name: model::NAME,
        about: "a real small language model with an OpenAI-compatible interface",
        instead: None,
        port: model::PORT,
        stop: model::STOP,
        start: model::start,
    },
    Kind {
        name: postgres::NAME,
        about: "an empty PostgreSQL for tests",
        instead: Some(postgres::INSTEAD),
        port: postgres::PORT,
        stop: postgres::STOP,
        start: postgres::start,
    },
    // After the server that it stands in front of.
    Kind {
        name: pgbouncer::NAME,
        about: "a PgBouncer in front of that PostgreSQL, in transaction mode",
        instead: Some("HELIX_TEST_PGBOUNCER_URL"),
        port: pgbouncer::PORT,
        stop: pgbouncer::STOP,
        start: pgbouncer::start,
    },
    Kind {
        name: redis::NAME,
        about: "an empty Redis for tests",
        instead: Some("HELIX_TEST_REDIS_URL"),
        port: redis::PORT,
        stop: redis::STOP,
        start: redis::start,
    },
    Kind {
        name: temporal::NAME,
        about: "an empty Temporal for tests",
        instead: Some("HELIX_TEST_TEMPORAL_URL"),
        port: temporal::PORT,
        stop: temporal::STOP,
        start: temporal::start,
    },
];

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
            let port = port(kind, options)?;
            let _alone = alone()?;
            (kind.start)(port)
        }
    }
}

fn port(kind: &Kind, options: &[&str]) -> Result<Port> {
    match options {
        [] => Ok(Port::Wished(kind.port)),
        ["--port", port] => {
            Ok(Port::Exactly(port.parse().with_context(|| format!("{port} is no port"))?))
        }
        _ => bail!(
            "cannot read `{}`; usage: cargo xtask servers {} [--port N]",
            options.join(" "),
            kind.name
        ),
    }
}

/// Starts what tests need and does not run.
pub(crate) fn up() -> Result<()> {
    let _alone = alone()?;
    for kind in KINDS {
        let Some(variable) = kind.instead else { continue };
        if instead(variable).is_some() {
            println!("{}: tests use what {variable} says", kind.name);
        } else {
            (kind.start)(Port::Wished(kind.port))?;
        }
    }
    Ok(())
}

/// What a variable says, if it says anything.
fn instead(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|it| !it.is_empty())
}

/// The first version, such as 7.0 or 1.18.0, that a program names when it is asked for its own.
fn version(text: &str) -> Option<(u32, u32)> {
    let words = text.split(|it: char| it.is_whitespace() || it == '=');
    words.map(|word| word.trim_start_matches('v')).find_map(|word| {
        let mut numbers = word.split('.').map(|it| it.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    })
}

fn down() -> Result<()> {
    let _alone = alone()?;
    let mut stopped = 0;
    for kind in KINDS.iter().rev() {
        if let Some(record) = daemon::stop(kind.name, kind.stop)? {
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
            Some(it) => println!("{}: process {} on {}", kind.name, it.pid, it.url),
            None => println!("{}: not running ({})", kind.name, kind.about),
        }
    }
    Ok(())
}

/// Makes whoever else starts or stops servers here wait until the answer is dropped.
fn alone() -> Result<File> {
    let path = daemon::folder()?.join("lock");
    let file = File::create(&path).with_context(|| format!("could not open {}", path.display()))?;
    file.lock().with_context(|| format!("could not lock {}", path.display()))?;
    Ok(file)
}
