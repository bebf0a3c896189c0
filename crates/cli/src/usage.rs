//! `helix usage`: tokens, calls and cost of one or more sessions.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use helix_agents::AnyStore;
use helix_agents::clock::{Clock as _, Timestamp, short_duration};
use helix_agents::runtime_local::TokioClock;
use helix_agents::session::{SessionReader, UsageQuery, usage_of_sessions, usage_of_tree};
use helix_agents::store::SessionStatus;
use helix_agents::terminal::Screen;
use helix_agents::usage::{UsageGroup, UsageRollup};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::location::Location;
use crate::sessions::purge::{age, status};
use crate::text::{count, table};
use crate::{session_tags, storage};

/// The options of the command.
#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    /// The session, including its child sessions. Default: all sessions.
    #[arg(conflicts_with_all = ["agent", "status", "tag", "since", "before"])]
    session: Option<String>,
    /// Only the session itself, without its child sessions.
    #[arg(long, requires = "session")]
    alone: bool,
    /// Only sessions of this agent, whether root or child sessions.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only sessions with this status: `active`, `completed`, `failed`, `interrupted` or `aborted`. Running and
    /// suspended sessions are `active`.
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Option<SessionStatus>,
    /// Only sessions with this tag; can be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = session_tags::parse)]
    tag: Vec<(String, String)>,
    /// Only sessions created at or after this time: a timestamp such as `2026-01-31T12:00:00Z`, or an age
    /// such as `30d`.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Moment>,
    /// Only sessions created before this time.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    before: Option<Moment>,
}

/// A point in time on the command line.
#[derive(Debug, Clone, Copy)]
enum Moment {
    At(Timestamp),
    Ago(Duration),
}

/// Runs the command.
pub(crate) async fn run(args: UsageArgs, db: &Location, screen: &Screen) -> Result<Exit> {
    let store = storage::open_to_read(db.database()?).await?;
    let done = show(args, &store, screen).await;
    storage::close(&store).await;
    done.map(|()| Exit::Completed)
}

async fn show(args: UsageArgs, store: &AnyStore, screen: &Screen) -> Result<()> {
    let logs = SessionReader::of(store);
    let (of, used) = match &args.session {
        Some(session) => {
            let session = storage::head(store, session).await?.session;
            let used = match args.alone {
                true => logs.overview(&session).await?.usage().clone(),
                false => usage_of_tree(logs, &session).await?,
            };
            (("session", json!(session)), used)
        }
        None => {
            let query = args.query(TokioClock::new().now());
            let report = usage_of_sessions(logs, &query).await?;
            (("sessions", json!(report.sessions)), report.usage)
        }
    };
    if screen.is_json() {
        screen.json(&document(of, &used))?;
        return Ok(());
    }
    let rows: Vec<_> = used.groups().iter().map(row).collect();
    let head = ["TYPE", "NAME", "CALLS", "FAILED", "IN", "OUT", "COST", "TIME", "AMOUNT"];
    for line in table(head, &rows) {
        screen.line(line)?;
    }
    let (name, value) = of;
    let of = value.as_str().map_or_else(|| format!("{value} {name}"), |id| format!("{name} {id}"));
    screen.line(format!("{of}: {}", totals(&used)))?;
    Ok(())
}

impl UsageArgs {
    fn query(&self, now: Timestamp) -> UsageQuery {
        let at = |moment: &Moment| match *moment {
            Moment::At(at) => at,
            Moment::Ago(ago) => {
                let millis = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
                Timestamp(now.0.saturating_sub(millis))
            }
        };
        let mut query = UsageQuery::new();
        query.filter.agent = self.agent.as_deref().map(Into::into);
        query.filter.status = self.status;
        query.filter.created_from = self.since.as_ref().map(at);
        query.filter.created_before = self.before.as_ref().map(at);
        query.filter.tags = self.tag.iter().cloned().collect();
        query
    }
}

/// The JSON output: totals, and one row per source.
fn document((name, value): (&str, Value), used: &UsageRollup) -> Value {
    json!({
        name: value,
        "tokens": used.tokens,
        "steps": used.steps,
        "tool_calls": used.tool_calls,
        "cost": used.cost,
        "sources": used.groups(),
    })
}

fn row(group: &UsageGroup) -> [String; 9] {
    // Values that do not apply to a kind of source are omitted.
    let some = |shown: bool, text: String| if shown { text } else { String::new() };
    let tokens = &group.tokens;
    [
        group.source_type.to_string(),
        group.source_name.to_string(),
        group.calls.to_string(),
        group.failed.to_string(),
        some(!tokens.is_zero(), tokens.input_tokens.to_string()),
        some(!tokens.is_zero(), tokens.output_tokens.to_string()),
        some(!group.cost.is_zero(), group.cost.to_string()),
        some(group.took_ms > 0, short_duration(Duration::from_millis(group.took_ms))),
        some(group.amount != 0.0, group.amount.to_string()),
    ]
}

fn totals(used: &UsageRollup) -> String {
    let UsageRollup { tokens, steps, tool_calls, cost, .. } = used;
    let (input, output) = (tokens.input_tokens, tokens.output_tokens);
    let model_calls = count(*steps, "model call");
    let tool_calls = count(*tool_calls, "tool call");
    format!("{model_calls}, {input} tokens in, {output} out, {tool_calls}, {cost}")
}

fn moment(text: &str) -> Result<Moment, String> {
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Ok(Moment::At(Timestamp(at.as_millisecond())));
    }
    let wrong = |problem| {
        format!("{problem}; expected a time such as `2026-01-31T12:00:00Z` or an age such as `30d`")
    };
    age(text).map(Moment::Ago).map_err(wrong)
}
