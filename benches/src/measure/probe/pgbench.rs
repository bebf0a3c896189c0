//! The append statement, executed by pgbench, PostgreSQL's own benchmark, and by the store,
//! alternating.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use helix_agents::prelude::StateStore;
use sqlx::{AssertSqlSafe, Row as _};
use tokio::process::Command;
use tokio::task::JoinSet;

use super::log::{BODY, Log, RUN, RUNTIME};
use super::statement::{Text, lease_ms};
use crate::measure::place::{Location, Opener, Place};
use crate::probe::Appends;

/// Debian's location of the programs, which are not in `PATH`.
const DEBIAN: &str = "/usr/lib/postgresql";

const NOT_POSTGRES: &str = "pgbench requires PostgreSQL";

/// Measures several rounds, each with empty tables.
pub(super) async fn measure<F>(
    place: impl Fn() -> F,
    connections: u32,
    seconds: u32,
    rounds: u32,
) -> Result<Appends>
where
    F: Future<Output = Result<Place>>,
{
    let mut appends = Appends { pgbench: Vec::new(), store: Vec::new() };
    for _ in 0..rounds {
        let place = place().await?;
        appends.pgbench.push(by_pgbench(&place, connections, seconds).await?);
        appends.store.push(by_store(&place, connections, seconds).await?);
        place.remove().await?;
    }
    Ok(appends)
}

/// Measures the store. Each connection appends to its own session.
async fn by_store(place: &Place, connections: u32, seconds: u32) -> Result<f64> {
    let Opener::Postgres(builder) = &place.opener else { bail!("{NOT_POSTGRES}") };
    let store = builder.clone().connections(connections as usize).open().await?;
    let store: Arc<dyn StateStore> = Arc::new(store);
    let mut logs = Vec::new();
    for number in 0..connections {
        logs.push(Log::create(Arc::clone(&store), &format!("store-{number}")).await?);
    }
    let started = Instant::now();
    let end = started + Duration::from_secs(seconds.into());
    let mut writers = JoinSet::new();
    for mut log in logs {
        writers.spawn(async move {
            let mut appends = 0_u32;
            while Instant::now() < end {
                log.append().await?;
                appends += 1;
            }
            anyhow::Ok(appends)
        });
    }
    let mut appends = 0.0;
    while let Some(writer) = writers.join_next().await {
        appends += f64::from(writer.context("a writer panicked")??);
    }
    Ok(appends / started.elapsed().as_secs_f64())
}

/// Measures pgbench. Its clients count the versions of their sessions themselves.
async fn by_pgbench(place: &Place, connections: u32, seconds: u32) -> Result<f64> {
    let Location::Postgres(location) = &place.location else { bail!("{NOT_POSTGRES}") };
    for number in 0..connections {
        Log::create(Arc::clone(&place.handles.state), &number.to_string()).await?;
    }
    let script = tempfile::NamedTempFile::new()?;
    std::fs::write(script.path(), self::script(&Text::of_append(location).await?)?)?;
    let mut pgbench = Command::new(program()?);
    pgbench
        .args(["--no-vacuum", "--protocol", "prepared", "--define", "version=1"])
        .args(["--define", &format!("body={}", String::from_utf8_lossy(&BODY))])
        .args(["--client", &connections.to_string(), "--jobs", &connections.min(2).to_string()])
        .args(["--time", &seconds.to_string()])
        .arg("--file")
        .arg(script.path())
        .arg(&location.url)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = pgbench.output().await.context("pgbench did not start")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "pgbench failed: {errors}");
    let output = String::from_utf8_lossy(&output.stdout);
    let done: i64 = number(&output, "number of transactions actually processed:")?.parse()?;
    let taken = "SELECT sum(version - 1)::bigint FROM {s}.sessions WHERE session ~ '^[0-9]+$'";
    let mut connection = location.connect().await?;
    let taken = sqlx::query(AssertSqlSafe(location.sql(taken))).fetch_one(&mut connection).await?;
    let taken: i64 = taken.try_get(0)?;
    ensure!(taken == done, "pgbench reports {done} transactions, but there are {taken} appends");
    Ok(number(&output, "tps =")?.parse()?)
}

/// Returns the statement with pgbench's variables as parameters, each cast to the type that the
/// store sends.
fn script(text: &Text) -> Result<String> {
    let lease = lease_ms().to_string();
    let (run, runtime) = (format!("'{RUN}'"), format!("'{RUNTIME}'"));
    let values: [&str; 18] = [
        ":client_id",
        ":version",
        ":version",
        "1",
        ":next",
        &run,
        "1",
        ":body",
        "false",
        &lease,
        "NULL",
        "false",
        "NULL",
        "'active'",
        &run,
        &runtime,
        "0",
        "NULL",
    ];
    ensure!(text.types.len() == values.len(), "the statement has {} parameters", text.types.len());
    let mut sql = text.sql.clone();
    // Replace the last parameters first, because `$1` is a prefix of `$10`.
    for (index, (value, kind)) in values.iter().zip(&text.types).enumerate().rev() {
        sql = sql.replace(&format!("${}", index + 1), &format!("{value}::{kind}"));
    }
    let mut script = "\\set next :version + 1\n".to_owned();
    writeln!(script, "{};\n\\set version :next", sql.trim())?;
    Ok(script)
}

/// Returns the word after a label.
fn number<'o>(output: &'o str, label: &str) -> Result<&'o str> {
    let found = output.lines().find_map(|line| line.strip_prefix(label)?.split_whitespace().next());
    found.with_context(|| format!("the output of pgbench has no `{label}`"))
}

/// Returns the path of `pgbench`: from `PATH`, or the newest version in Debian's location.
fn program() -> Result<PathBuf> {
    const NAME: &str = "pgbench";
    let path: OsString = std::env::var_os("PATH").unwrap_or_default();
    let in_path =
        std::env::split_paths(&path).map(|folder| folder.join(NAME)).find(|file| file.is_file());
    let in_debian = || {
        let versions = std::fs::read_dir(DEBIAN).ok()?.flatten().map(|entry| entry.path());
        let number = |version: &PathBuf| version.file_name()?.to_str()?.parse::<u32>().ok();
        let newest = versions
            .filter(|version| version.join("bin").join(NAME).is_file())
            .max_by_key(number)?;
        Some(newest.join("bin").join(NAME))
    };
    in_path.or_else(in_debian).context("pgbench was not found; it is part of PostgreSQL")
}
