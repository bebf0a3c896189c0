//! Kills a worker at every fault point of every scenario, resumes the session, and compares it with a run without
//! kills.

use helix_agents::event::{Event, RecordedEvent};
use helix_agents::id::SessionId;
use helix_agents_conformance::normalise;
use helix_agents_testkit::kill::WorkerEnd;
use helix_agents_tests_e2e::scenarios::REJECTED;
use helix_agents_tests_e2e::stores::Kind;
use serde_json::Value;

use crate::reported_spans;
use crate::support::{SessionReader, Story, Trace, answer, on_each_store, recorded_calls};
use crate::sweep::{blocking, sweep};

/// The logs and streams of a story without kills.
pub(crate) struct Expected {
    /// All logs, one after the other.
    pub(crate) logs: String,
    /// The streams of all root sessions.
    pub(crate) stream: String,
}

/// Returns `true` if the call must run at most once. That includes calls that wait for approval.
pub(crate) fn runs_once(scenario: &str, logs: &SessionReader, call: &str) -> bool {
    if !matches!(scenario, "at_most_once" | "people" | "child_waits") {
        return false;
    }
    let (session, id) = call.rsplit_once('#').unwrap();
    let log = logs.get(&SessionId::from(session)).unwrap();
    log_text(log).contains(&format!("call {id} pay"))
}

/// Messages from concurrent sessions arrive at any time, so they are moved to the end of the log.
fn log_text(log: &[RecordedEvent]) -> String {
    let text = normalise::log(log);
    let (queued, rest): (Vec<_>, Vec<_>) =
        text.lines().partition(|line| line.starts_with("queued "));
    [rest, queued].concat().join("\n")
}

pub(crate) async fn read_outcome(story: &Story) -> Expected {
    let logs: SessionReader = story.logs().await;
    let mut streams = Vec::new();
    for root in logs.iter().filter(|(_, log)| is_root(log)).map(|(root, _)| root) {
        let stream = normalise::stream(&story.stream(root).await);
        // The chunks of concurrent sessions are interleaved at random.
        let (below, above): (Vec<_>, Vec<_>) =
            stream.lines().partition(|line| line.starts_with('['));
        streams.push([above, below].concat().join("\n"));
    }
    let logs = without_remote_ids(&logs_text(&logs));
    assert!(!logs.contains(REJECTED), "{logs}");
    Expected { logs, stream: without_remote_ids(&streams.join("\n")) }
}

/// Replaces the ids of remote sessions, which follow from the time of the story.
fn without_remote_ids(text: &str) -> String {
    let mut parts = text.split("remote-1-");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
        format!("{text}remote-1-ID{rest}")
    })
}

/// Returns all logs, one after the other.
pub(crate) fn logs_text(logs: &SessionReader) -> String {
    logs.values().map(|log| log_text(log)).collect::<Vec<_>>().join("\n")
}

fn is_root(log: &[RecordedEvent]) -> bool {
    let created = log.first().map(|recorded| &recorded.event);
    matches!(created, Some(Event::SessionCreated { parent: None, .. }))
}

/// Kills a worker at the n-th fault point and checks the recovery. Returns the problem, if there is one.
pub(crate) async fn problem(
    story: Story,
    scenario: &str,
    kill_at: usize,
    expected: &Expected,
) -> Result<(), String> {
    let killed = story.run_to_end(Some(kill_at));
    // Results of concurrent calls share an append, so some runs have fewer fault points.
    if killed.points.len() < kill_at && killed.stdout.contains("completed") {
        return Ok(());
    }
    if !killed.was_killed() {
        return Err(format!("the worker was not killed: {} {}", killed.stdout, killed.stderr));
    }
    story.free_leases().await;
    let before = Recorded::of(&story).await;
    before.problem(&story, scenario, expected, 1).await
}

/// The recorded results of a story and its executed calls at one moment.
pub(crate) struct Recorded {
    calls: Vec<String>,
    trace: Trace,
    /// `true` if a worker reported that streams did not answer in time, so that they may miss chunks.
    has_gaps: bool,
}

/// The warning of a worker that does not wait for its streams any longer.
const STREAMS_ARE_SLOW: &str = "streams did not answer in time";

impl Recorded {
    pub(crate) async fn of(story: &Story) -> Self {
        let calls = recorded_calls(&story.logs().await);
        Self { calls, trace: story.trace(), has_gaps: false }
    }

    /// Notes whether a worker reported that streams did not answer in time. On a busy machine this happens with short
    /// leases, because a run waits for its streams for a part of its lease.
    pub(crate) fn note_gaps(&mut self, end: &WorkerEnd) {
        self.has_gaps |= end.stderr.contains(STREAMS_ARE_SLOW);
    }

    /// Checks the story after another process has completed it. Returns the problem, if there is one. The worker and
    /// its successors were interrupted `times` times.
    pub(crate) async fn problem(
        &self,
        story: &Story,
        scenario: &str,
        expected: &Expected,
        times: usize,
    ) -> Result<(), String> {
        let end = story.run_to_end(None);
        let answer = answer(&end);
        if answer.get("status").and_then(Value::as_str) != Some("completed") {
            return Err(format!("it did not complete: {answer} {}", end.stderr));
        }
        let Expected { logs, stream } = read_outcome(story).await;
        let in_doubt = logs.contains("tool_outcome_unknown") && expected.logs.contains(" pay");
        if logs != expected.logs && !in_doubt {
            return Err(format!("different logs:\n{}", difference(&expected.logs, &logs)));
        }
        // The takeover discards what such a call showed beyond its start and end. Its end is shown when the successor
        // learns of it, concurrently with the other calls of the step.
        let logs_by_session = story.logs().await;
        let late = late_calls(&logs_by_session);
        let [whole, stream] =
            [&expected.stream, &stream].map(|text| in_order_of_calls(&move_to_end(text, &late)));
        if self.has_gaps {
            if let Some(line) = shown_too_often(&whole, &stream, in_doubt) {
                return Err(format!("the stream shows too often: {line}"));
            }
        } else if stream != whole && !in_doubt {
            return Err(format!("different stream:\n{}", difference(&whole, &stream)));
        }
        for (call, keys) in story.trace() {
            let again = keys.len() - self.trace.get(&call).map_or(0, Vec::len);
            if self.calls.contains(&call) && again > 0 {
                return Err(format!("call {call} was on record and ran again"));
            }
            if keys.len() > 1 + times || keys.windows(2).any(|pair| pair.first() != pair.last()) {
                return Err(format!("call {call} ran {} times under {keys:?}", keys.len()));
            }
            if runs_once(scenario, &logs_by_session, &call) && keys.len() > 1 {
                return Err(format!("the at-most-once call {call} ran {} times", keys.len()));
            }
        }
        story.remote_problem()?;
        reported_spans::problem(story, times).await
    }
}

/// Returns a line that occurs more often in a stream than in the expected one. If the outcome of a call is in doubt, the
/// stream also shows that, once.
fn shown_too_often<'a>(expected: &str, stream: &'a str, in_doubt: bool) -> Option<&'a str> {
    let count = |text: &str, line: &str| text.lines().filter(|other| *other == line).count();
    let limit = |line: &str| count(expected, line).max(usize::from(in_doubt));
    stream.lines().find(|line| count(stream, line) > limit(line))
}

/// Returns the calls whose results a run submitted after another run had taken over.
fn late_calls(logs: &SessionReader) -> Vec<String> {
    let mut late = Vec::new();
    for log in logs.values() {
        let mut current = None;
        for recorded in log {
            match &recorded.event {
                Event::RunStarted { run, .. } => current = Some(run),
                Event::ToolFinished(finish)
                    if finish.attempts > 0 && recorded.run.as_ref() != current =>
                {
                    late.push(finish.call.to_string());
                }
                _ => {}
            }
        }
    }
    late
}

/// Moves the starts and ends of these calls to the end of a stream, and drops their progress.
fn move_to_end(stream: &str, calls: &[String]) -> String {
    let of_late = |line: &&str| {
        let mut words = line.split_whitespace();
        words.any(|word| calls.iter().any(|call| call == word))
    };
    let (late, mut lines): (Vec<_>, Vec<_>) = stream.lines().partition(of_late);
    lines.extend(late.into_iter().filter(|line| !line.contains("progress ")));
    lines.join("\n")
}

/// Sorts the lines of concurrent calls in a stream by call. Their order depends on which process was interrupted.
fn in_order_of_calls(stream: &str) -> String {
    let call = |line: &&str| {
        let is_call = |word: &&str| {
            let parts = word.split_once('.').map(|(step, index)| [step, index]);
            parts.is_some_and(|parts| parts.iter().all(|part| part.parse::<u32>().is_ok()))
        };
        line.split_whitespace().find(is_call).map(str::to_owned)
    };
    let mut lines: Vec<_> = stream.lines().collect();
    for concurrent in lines.chunk_by_mut(|one, other| call(one).is_some() && call(other).is_some())
    {
        concurrent.sort_by_cached_key(call);
    }
    lines.join("\n")
}

/// Returns both texts from the first different line on.
pub(crate) fn difference(expected: &str, got: &str) -> String {
    let same = expected.lines().zip(got.lines()).take_while(|(one, other)| one == other).count();
    let rest = |text: &str| text.lines().skip(same).collect::<Vec<_>>().join("\n  ");
    format!("  {}\n--- not\n  {}", rest(got), rest(expected))
}

fn matrix(kind: &'static Kind, scenario: &'static str, mode: &'static str) {
    let story = Story::new(kind, scenario, mode);
    let whole = story.run_to_end(None);
    assert_eq!(answer(&whole).get("status").unwrap(), "completed", "{}", whole.stderr);
    assert!(whole.points.len() > 10, "fault points are missing: {:?}", whole.points);
    let expected = blocking().block_on(read_outcome(&story));
    blocking().block_on(reported_spans::problem(&story, 0)).unwrap();
    let points: Vec<_> = (1..).zip(whole.points).collect();
    sweep(kind, ["kill matrix"], [scenario, mode], &points, |kill_at| {
        let story = Story::new(kind, scenario, mode);
        [blocking().block_on(problem(story, scenario, *kill_at, &expected))]
    });
}

on_each_store! {
    Everywhere plain_tools_per_effect(kind) { super::matrix(kind, "plain", "per_effect") }
    Sqlite parallel_tools_per_effect(kind) { super::matrix(kind, "parallel", "per_effect") }
    Sqlite finish_tool_per_effect(kind) { super::matrix(kind, "finish", "per_effect") }
    Everywhere at_most_once_per_effect(kind) { super::matrix(kind, "at_most_once", "per_effect") }
    Sqlite plain_tools_per_step(kind) { super::matrix(kind, "plain", "per_step") }
    Sqlite at_most_once_per_step(kind) { super::matrix(kind, "at_most_once", "per_step") }
    Everywhere people_answer_per_effect(kind) { super::matrix(kind, "people", "per_effect") }
    Sqlite people_answer_per_step(kind) { super::matrix(kind, "people", "per_step") }
    Sqlite a_child_works_per_effect(kind) { super::matrix(kind, "child", "per_effect") }
    Everywhere a_child_works_per_step(kind) { super::matrix(kind, "child", "per_step") }
    Sqlite a_child_waits_per_effect(kind) { super::matrix(kind, "child_waits", "per_effect") }
    Sqlite a_remote_agent_works_per_effect(kind) { super::matrix(kind, "remote", "per_effect") }
    Sqlite a_remote_agent_works_per_step(kind) { super::matrix(kind, "remote", "per_step") }
    Sqlite a_companion_answers_per_effect(kind) { super::matrix(kind, "companion", "per_effect") }
    Sqlite a_companion_answers_per_step(kind) { super::matrix(kind, "companion", "per_step") }
    Sqlite deadlines_pass_per_effect(kind) { super::matrix(kind, "deadlines", "per_effect") }
    Sqlite deadlines_pass_per_step(kind) { super::matrix(kind, "deadlines", "per_step") }
    Sqlite a_fork_is_made_per_effect(kind) { super::matrix(kind, "fork", "per_effect") }
    Sqlite a_rewind_goes_on_per_effect(kind) { super::matrix(kind, "rewind", "per_effect") }
    Sqlite a_rewind_goes_on_per_step(kind) { super::matrix(kind, "rewind", "per_step") }
    Sqlite a_budget_is_raised_per_effect(kind) { super::matrix(kind, "budget", "per_effect") }

    /// Not per step: there the parent may crash before the step that receives the notice is recorded.
    Sqlite a_companion_beside_is_heard_per_effect(kind) {
        super::matrix(kind, "companion_beside", "per_effect")
    }

    Sqlite a_planner_makes_rounds_per_effect(kind) { super::matrix(kind, "planner", "per_effect") }
    Sqlite a_planner_makes_rounds_per_step(kind) { super::matrix(kind, "planner", "per_step") }
    Sqlite signed_replies_are_kept_per_effect(kind) { super::matrix(kind, "signed", "per_effect") }
    Sqlite signed_replies_are_kept_per_step(kind) { super::matrix(kind, "signed", "per_step") }
}
