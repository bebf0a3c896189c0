//! The append's statement from pgbench, PostgreSQL's own benchmark, and from the store, by turns.

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

use super::log::{BODY, Log, RUN, RUNTIME, used};
use super::statement::{Text, lease_ms};
use crate::measure::place::{Corner, Place, Way};
use crate::probe::Appends;

/// Where Debian keeps the programs, which are not in `PATH`.
const DEBIAN: &str = "/usr/lib/postgresql";

const NOT_POSTGRES: &str = "pgbench is for PostgreSQL";

/// Each round on empty tables.
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

/// Sessions that each connection has one of, and goes on with.
async fn by_store(place: &Place, connections: u32, seconds: u32) -> Result<f64> {
    let Way::Postgres(builder) = &place.way else { bail!("{NOT_POSTGRES}") };
    let store = builder.clone().connections(connections as usize).open().await?;
    let store: Arc<dyn StateStore> = Arc::new(store);
    let mut logs = Vec::new();
    for number in 0..connections {
        logs.push(Log::create(Arc::clone(&store), &format!("store-{number}")).await?);
    }
    let begun = Instant::now();
    let end = begun + Duration::from_secs(seconds.into());
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
    Ok(appends / begun.elapsed().as_secs_f64())
}

/// The same by pgbench, whose clients count on which version they have come.
async fn by_pgbench(place: &Place, connections: u32, seconds: u32) -> Result<f64> {
    let Corner::Postgres(corner) = &place.corner else { bail!("{NOT_POSTGRES}") };
    for number in 0..connections {
        Log::create(Arc::clone(&place.handles.state), &number.to_string()).await?;
    }
    let script = tempfile::NamedTempFile::new()?;
    std::fs::write(script.path(), self::script(&Text::of_append(corner).await?)?)?;
    let mut pgbench = Command::new(program()?);
    pgbench
        .args(["--no-vacuum", "--protocol", "prepared", "--define", "version=1"])
        .args(["--define", &format!("body={}", String::from_utf8_lossy(&BODY))])
        .args(["--define", &format!("usage={}", serde_json::to_string(&used(1))?)])
        .args(["--client", &connections.to_string(), "--jobs", &connections.min(2).to_string()])
        .args(["--time", &seconds.to_string()])
        .arg("--file")
        .arg(script.path())
        .arg(&corner.url)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = pgbench.output().await.context("pgbench did not start")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "pgbench failed: {errors}");
    let output = String::from_utf8_lossy(&output.stdout);
    let done: i64 = number(&output, "number of transactions actually processed:")?.parse()?;
    let taken = "SELECT sum(version - 1)::bigint FROM {s}.sessions WHERE session ~ '^[0-9]+$'";
    let mut connection = corner.connect().await?;
    let taken = sqlx::query(AssertSqlSafe(corner.sql(taken))).fetch_one(&mut connection).await?;
    let taken: i64 = taken.try_get(0)?;
    ensure!(taken == done, "pgbench says {done} transactions, and {taken} appends were taken");
    Ok(number(&output, "tps =")?.parse()?)
}

/// The statement with pgbench's variables for its parameters, each cast to the type that the store sends.
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
        ":usage",
        "'active'",
        &run,
        &runtime,
        "0",
        "NULL",
    ];
    ensure!(text.types.len() == values.len(), "the statement has {} parameters", text.types.len());
    let mut sql = text.sql.clone();
    // The last ones first: `$1` begins `$10`.
    for (index, (value, kind)) in values.iter().zip(&text.types).enumerate().rev() {
        sql = sql.replace(&format!("${}", index + 1), &format!("{value}::{kind}"));
    }
    let mut script = "\\set next :version + 1\n".to_owned();
    writeln!(script, "{};\n\\set version :next", sql.trim())?;
    Ok(script)
}

/// What stands behind a word, up to the next space.
fn number<'o>(output: &'o str, word: &str) -> Result<&'o str> {
    let found = output.lines().find_map(|line| line.strip_prefix(word)?.split_whitespace().next());
    found.with_context(|| format!("pgbench does not say `{word}`"))
}

/// `pgbench` in `PATH`, or of the newest version that Debian has.
fn program() -> Result<PathBuf> {
    const NAME: &str = "pgbench";
    let path: OsString = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|it| it.join(NAME)).find(|it| it.is_file());
    let in_debian = || {
        let versions = std::fs::read_dir(DEBIAN).ok()?.flatten().map(|it| it.path());
        let number = |it: &PathBuf| it.file_name()?.to_str()?.parse::<u32>().ok();
        let newest =
            versions.filter(|it| it.join("bin").join(NAME).is_file()).max_by_key(number)?;
        Some(newest.join("bin").join(NAME))
    };
    in_path.or_else(in_debian).context("pgbench is not here; it comes with PostgreSQL")
}
