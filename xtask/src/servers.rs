//! `servers`: servers on loopback for tests and demos.
//!
//! They outlive the command that starts them. Each has a record and a log in `target/servers/`, and `down` stops
//! exactly the recorded processes.

use std::fs::File;

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;

mod account;
mod daemon;
mod folder;
mod model;
mod pgbouncer;
mod postgres;
mod redis;
mod temporal;

#[cfg(test)]
mod tests;

/// One kind of server. Its name is the subcommand that starts it.
struct Kind {
    name: &'static str,
    about: &'static str,
    /// The variable with the URL of another server for tests. `None` if tests need no such server. `up` starts the
    /// kinds that have a variable.
    url_variable: Option<&'static str>,
    port: u16,
    /// The signal that stops it.
    stop: Signal,
    start: fn(port: Port) -> Result<()>,
}

/// The port of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Port {
    /// This port, or any free one if it is taken.
    Preferred(u16),
    /// This port only.
    Exactly(u16),
}

const KINDS: &[Kind] = &[
    Kind {
        name: model::NAME,
        about: "a real small language model with an OpenAI-compatible interface",
        url_variable: None,
        port: model::PORT,
        stop: model::STOP,
        start: model::start,
    },
    Kind {
        name: postgres::NAME,
        about: "an empty PostgreSQL for tests",
        url_variable: Some(postgres::URL_VARIABLE),
        port: postgres::PORT,
        stop: postgres::STOP,
        start: postgres::start,
    },
    // After the server that it connects to.
    Kind {
        name: pgbouncer::NAME,
        about: "a PgBouncer for that PostgreSQL, in transaction mode",
        url_variable: Some("HELIX_TEST_PGBOUNCER_URL"),
        port: pgbouncer::PORT,
        stop: pgbouncer::STOP,
        start: pgbouncer::start,
    },
    Kind {
        name: redis::NAME,
        about: "an empty Redis for tests",
        url_variable: Some("HELIX_TEST_REDIS_URL"),
        port: redis::PORT,
        stop: redis::STOP,
        start: redis::start,
    },
    Kind {
        name: temporal::NAME,
        about: "an empty Temporal for tests",
        url_variable: Some("HELIX_TEST_TEMPORAL_URL"),
        port: temporal::PORT,
        stop: temporal::STOP,
        start: temporal::start,
    },
];

/// Executes the rest of the command line.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    match args {
        [] | ["up"] => up(),
        ["down"] => down(),
        ["status"] => status(),
        [name, options @ ..] => {
            let kind = KINDS.iter().find(|kind| kind.name == *name);
            let kind = kind.with_context(|| {
                let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
                format!("no server is called {name}; known servers: {}", names.join(", "))
            })?;
            let port = port(kind, options)?;
            let _lock = lock_servers()?;
            (kind.start)(port)
        }
    }
}

fn port(kind: &Kind, options: &[&str]) -> Result<Port> {
    match options {
        [] => Ok(Port::Preferred(kind.port)),
        ["--port", port] => {
            Ok(Port::Exactly(port.parse().with_context(|| format!("{port} is not a port"))?))
        }
        _ => bail!(
            "unknown options `{}`; usage: cargo xtask servers {} [--port N]",
            options.join(" "),
            kind.name
        ),
    }
}

/// Starts the servers that tests need and that do not run.
pub(crate) fn up() -> Result<()> {
    start(|_| true)
}

/// Starts the server with this name, if tests need it and it does not run.
pub(crate) fn up_only(name: &str) -> Result<()> {
    start(|kind| kind.name == name)
}

fn start(is_wanted: impl Fn(&Kind) -> bool) -> Result<()> {
    let _lock = lock_servers()?;
    for kind in KINDS.iter().filter(|kind| is_wanted(kind)) {
        let Some(variable) = kind.url_variable else { continue };
        if url_from_environment(variable).is_some() {
            println!("{}: tests use the server of {variable}", kind.name);
        } else {
            (kind.start)(Port::Preferred(kind.port))?;
        }
    }
    Ok(())
}

/// Returns the URL of a server that tests need, after [`up`].
pub(crate) fn url(name: &str) -> Result<String> {
    let kind = KINDS.iter().find(|kind| kind.name == name);
    if let Some(url) = kind.and_then(|kind| kind.url_variable).and_then(url_from_environment) {
        return Ok(url);
    }
    let record = daemon::running(name)?;
    Ok(record.with_context(|| format!("{name} does not run"))?.url)
}

/// Returns the value of a variable, if it is set and not empty.
fn url_from_environment(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

/// Returns the first version, such as 7.0 or 1.18.0, in the output of a program.
pub(crate) fn version(text: &str) -> Option<(u32, u32)> {
    let words = text.split(|letter: char| letter.is_whitespace() || letter == '=');
    words.map(|word| word.trim_start_matches('v')).find_map(|word| {
        let mut numbers = word.split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    })
}

fn down() -> Result<()> {
    let _lock = lock_servers()?;
    let mut stopped = 0;
    for kind in KINDS.iter().rev() {
        if let Some(record) = daemon::stop(kind.name, kind.stop)? {
            println!("{}: stopped process {}", kind.name, record.pid);
            stopped += 1;
        }
    }
    if stopped == 0 {
        println!("no server was running");
    }
    Ok(())
}

fn status() -> Result<()> {
    for kind in KINDS {
        match daemon::running(kind.name)? {
            Some(record) => println!("{}: process {} on {}", kind.name, record.pid, record.url),
            None => println!("{}: not running ({})", kind.name, kind.about),
        }
    }
    Ok(())
}

/// Locks the servers of this checkout until the returned file is dropped. Other commands that start or stop servers
/// wait.
fn lock_servers() -> Result<File> {
    let path = daemon::folder()?.join("lock");
    let file = File::create(&path).with_context(|| format!("could not open {}", path.display()))?;
    file.lock().with_context(|| format!("could not lock {}", path.display()))?;
    Ok(file)
}
