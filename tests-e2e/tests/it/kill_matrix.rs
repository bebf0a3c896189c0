//! Every fault point of every scenario: killed there, resumed, and compared with the run that
//! nobody killed.

use helix_agents::event::{Event, RecordedEvent};
use helix_agents_testkit::normalise;
use helix_agents_tests_e2e::stores::Kind;
use serde_json::Value;

use crate::support::{SessionReader, Story, Trace, answer, on_each_store, recorded_calls};
use crate::sweep::{blocking, sweep};

/// The story that nobody killed.
pub(crate) struct Expected {
    /// All logs, one after the other.
    pub(crate) logs: String,
    /// All streams of roots.
    pub(crate) stream: String,
}

/// Calls that wait for people run at most once.
pub(crate) fn runs_once(scenario: &str, logs: &str, call: &str) -> bool {
    let id = call.rsplit_once('#').map_or(call, |(_, id)| id);
    let pays = logs.contains(&format!("call {id} pay"));
    pays && matches!(scenario, "at_most_once" | "people" | "child_waits")
}

/// What was told to a session by one beside it came when it came: it stands at the log's end.
fn log_text(log: &[RecordedEvent]) -> String {
    let text = normalise::log(log);
    let (told, rest): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with("queued "));
    [rest, told].concat().join("\n")
}

pub(crate) async fn told(story: &Story) -> Expected {
    let logs: SessionReader = story.logs().await;
    let mut streams = Vec::new();
    for root in logs.iter().filter(|(_, log)| is_root(log)).map(|(root, _)| root) {
        let stream = normalise::stream(&story.stream(root).await);
        // What sessions that work side by side show is interwoven by chance.
        let (below, above): (Vec<_>, Vec<_>) =
            stream.lines().partition(|line| line.starts_with('['));
        streams.push([above, below].concat().join("\n"));
    }
    Expected { logs: logs_text(&logs), stream: streams.join("\n") }
}

/// All logs, one after the other.
pub(crate) fn logs_text(logs: &SessionReader) -> String {
    logs.values().map(|log| log_text(log)).collect::<Vec<_>>().join("\n")
}

fn is_root(log: &[RecordedEvent]) -> bool {
    let created = log.first().map(|recorded| &recorded.event);
    matches!(created, Some(Event::SessionCreated { parent: None, .. }))
}

/// What is wrong with the story after a kill at the n-th point, if anything is.
pub(crate) async fn problem(
    story: Story,
    scenario: &str,
    kill_at: usize,
    expected: &Expected,
) -> Result<(), String> {
    let killed = story.tell(Some(kill_at));
    // Results that end together share an append, so some runs have a few points less.
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

/// What a story had on record at a moment, and which calls had run by then.
pub(crate) struct Recorded {
    calls: Vec<String>,
    trace: Trace,
}

impl Recorded {
    pub(crate) async fn of(story: &Story) -> Self {
        Self { calls: recorded_calls(&story.logs().await), trace: story.trace() }
    }

    /// What is wrong with the story once another process has completed it, if anything is. The worker
    /// and its successors were interrupted `times` times.
    pub(crate) async fn problem(
        &self,
        story: &Story,
        scenario: &str,
        expected: &Expected,
        times: usize,
    ) -> Result<(), String> {
        let end = story.tell(None);
        let answer = answer(&end);
        if answer.get("status").and_then(Value::as_str) != Some("completed") {
            return Err(format!("it did not complete: {answer} {}", end.stderr));
        }
        let Expected { logs, stream } = told(story).await;
        let in_doubt = logs.contains("tool_outcome_unknown") && expected.logs.contains(" pay");
        if logs != expected.logs && !in_doubt {
            return Err(format!("other logs:\n{}", difference(&expected.logs, &logs)));
        }
        // What such a call showed beside its start and end was taken back at the takeover, and its end is shown
        // when the successor learns of it: beside the other calls of the step.
        let late = late_calls(&story.logs().await);
        let [whole, stream] =
            [&expected.stream, &stream].map(|text| in_order_of_calls(&apart(text, &late)));
        if stream != whole && !in_doubt {
            return Err(format!("another stream:\n{}", difference(&whole, &stream)));
        }
        for (call, keys) in story.trace() {
            let again = keys.len() - self.trace.get(&call).map_or(0, Vec::len);
            if self.calls.contains(&call) && again > 0 {
                return Err(format!("call {call} was on record and ran again"));
            }
            if keys.len() > 1 + times || keys.windows(2).any(|pair| pair.first() != pair.last()) {
                return Err(format!("call {call} ran {} times under {keys:?}", keys.len()));
            }
            if runs_once(scenario, &logs, &call) && keys.len() > 1 {
                return Err(format!("the at-most-once call {call} ran {} times", keys.len()));
            }
        }
        Ok(())
    }
}

/// The calls whose results a run handed in after another one had taken over.
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

/// A stream with the starts and ends of these calls behind the rest, and without their progress.
fn apart(stream: &str, calls: &[String]) -> String {
    let of_late = |line: &&str| {
        let mut words = line.split_whitespace();
        words.any(|word| calls.iter().any(|call| call == word))
    };
    let (late, mut lines): (Vec<_>, Vec<_>) = stream.lines().partition(of_late);
    lines.extend(late.into_iter().filter(|line| !line.contains("progress ")));
    lines.join("\n")
}

/// A stream in which what calls show side by side stands in the order of the calls. Which of them is first depends on
/// which process was interrupted.
fn in_order_of_calls(stream: &str) -> String {
    let call = |line: &&str| {
        let is_call = |word: &&str| {
            let parts = word.split_once('.').map(|(step, index)| [step, index]);
            parts.is_some_and(|parts| parts.iter().all(|part| part.parse::<u32>().is_ok()))
        };
        line.split_whitespace().find(is_call).map(str::to_owned)
    };
    let mut lines: Vec<_> = stream.lines().collect();
    for side_by_side in
        lines.chunk_by_mut(|one, other| call(one).is_some() && call(other).is_some())
    {
        side_by_side.sort_by_cached_key(call);
    }
    lines.join("\n")
}

/// From the first line that differs on.
pub(crate) fn difference(expected: &str, got: &str) -> String {
    let same = expected.lines().zip(got.lines()).take_while(|(one, other)| one == other).count();
    let rest = |text: &str| text.lines().skip(same).collect::<Vec<_>>().join("\n  ");
    format!("  {}\n--- not\n  {}", rest(got), rest(expected))
}

fn matrix(kind: &'static Kind, scenario: &'static str, mode: &'static str) {
    let story = Story::new(kind, scenario, mode);
    let whole = story.tell(None);
    assert_eq!(answer(&whole).get("status").unwrap(), "completed", "{}", whole.stderr);
    assert!(whole.points.len() > 10, "fault points are missing: {:?}", whole.points);
    let expected = blocking().block_on(told(&story));
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
    Sqlite a_companion_answers_per_effect(kind) { super::matrix(kind, "companion", "per_effect") }
    Sqlite a_companion_answers_per_step(kind) { super::matrix(kind, "companion", "per_step") }
    Sqlite deadlines_pass_per_effect(kind) { super::matrix(kind, "deadlines", "per_effect") }
    Sqlite deadlines_pass_per_step(kind) { super::matrix(kind, "deadlines", "per_step") }
    Sqlite a_fork_is_made_per_effect(kind) { super::matrix(kind, "fork", "per_effect") }
    Sqlite a_rewind_goes_on_per_effect(kind) { super::matrix(kind, "rewind", "per_effect") }
    Sqlite a_rewind_goes_on_per_step(kind) { super::matrix(kind, "rewind", "per_step") }
    Sqlite a_budget_is_raised_per_effect(kind) { super::matrix(kind, "budget", "per_effect") }

    /// Not per step: there a caller may die before the step is on record in which it was to hear.
    Sqlite a_companion_beside_is_heard_per_effect(kind) {
        super::matrix(kind, "companion_beside", "per_effect")
    }

    Sqlite a_planner_makes_rounds_per_effect(kind) { super::matrix(kind, "planner", "per_effect") }
    Sqlite a_planner_makes_rounds_per_step(kind) { super::matrix(kind, "planner", "per_step") }
}
