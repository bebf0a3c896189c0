//! A story whose worker was killed, and the processes that resume it concurrently.

use std::process::Stdio;
use std::sync::Arc;

use helix_agents::event::Event;
use helix_agents::id::SessionId;
use helix_agents::session::load;
use helix_agents_conformance::normalise;
use helix_agents_testkit::kill::WorkerEnd;
use helix_agents_tests_e2e::stores::Kind;
use serde_json::Value;

use super::KNOWN;
use crate::kill_matrix::{Expected, read_outcome};
use crate::support::{Extent, SessionReader, Story, answer};
use crate::sweep::{ProcessPermit, blocking};

/// The story without kills.
pub(super) struct Whole {
    pub(super) expected: Expected,
    pub(super) transcript: String,
    /// The log of a fork, if the story can be forked.
    pub(super) fork: Option<String>,
}

/// The runtime and store of a story.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stage {
    pub(super) runtime: &'static str,
    pub(super) kind: &'static Kind,
}

impl Stage {
    pub(super) fn story(self, [scenario, mode]: [&'static str; 2]) -> Story {
        Story::on(self.runtime, self.kind, scenario, mode)
    }

    /// Returns `true` if an engine executes the runs. It resumes a run as soon as there is a worker, so a process that
    /// resumes the run may be second.
    pub(super) fn has_engine(self) -> bool {
        self.runtime != "local"
    }

    /// Returns the numbers of processes that the n-th fault point of a scenario is tested with, one after the other.
    fn processes(self, index: usize) -> &'static [usize] {
        match (Extent::on(self.kind), self.has_engine(), index % 16) {
            (Extent::Full, false, _) => &[2, 8, 32],
            (Extent::Full, true, number) if number % 4 == 3 => &[8],
            (Extent::Full, true, _) => &[2],
            (Extent::Usual, true, 5 | 13) => &[2],
            (Extent::Sample, true, 9) => &[2],
            (_, true, _) => &[],
            (Extent::Sample, false, number) if number % 2 == 0 => &[],
            (Extent::Sample, false, _) => &[2],
            (Extent::Usual, false, 7) => &[32],
            (Extent::Usual, false, 3 | 11 | 15) => &[8],
            (Extent::Usual, false, _) => &[2],
        }
    }
}

/// One kill, and the number of processes that resume afterwards.
pub(super) struct Case {
    stage: Stage,
    pub(super) scenario: &'static str,
    mode: &'static str,
    verb: &'static str,
    pub(super) kill_at: usize,
    pub(super) processes: usize,
    pub(super) whole: Arc<Whole>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { scenario, kill_at, processes, .. } = self;
        write!(f, "{scenario} at {kill_at} and {processes} processes")
    }
}

/// Returns the fault points of a scenario, each with at least one number of processes.
pub(super) fn cases(
    stage: Stage,
    verb: &'static str,
    [scenario, mode]: [&'static str; 2],
) -> Vec<(Case, String)> {
    let story = stage.story([scenario, mode]);
    let end = begin(&story, verb, None);
    assert_eq!(answer(&end).get("status").unwrap(), "completed", "{}", end.stderr);
    let whole = Arc::new(blocking().block_on(whole(&story)));
    let mut cases = Vec::new();
    for (index, point) in end.points.into_iter().enumerate() {
        cases.extend(stage.processes(index).iter().map(|processes| {
            let (kill_at, processes) = (index + 1, *processes);
            let whole = Arc::clone(&whole);
            (Case { stage, scenario, mode, verb, kill_at, processes, whole }, point.clone())
        }));
    }
    cases
}

async fn whole(story: &Story) -> Whole {
    let expected = read_outcome(story).await;
    let store = &*story.stores().await.state;
    let fold = load(store, &SessionId::from("story")).await.unwrap();
    let transcript = normalise::transcript(fold.transcript());
    drop(story.command("fork").arg("fork-0").output().unwrap());
    let mut logs = story.logs().await;
    let fork = logs.remove(&SessionId::from("fork-0")).map(|log| normalise::log(&log));
    Whole { expected, transcript, fork }
}

fn begin(story: &Story, verb: &str, kill_at: Option<usize>) -> WorkerEnd {
    if verb == "run" { story.run(kill_at) } else { story.run_to_end(kill_at) }
}

impl Case {
    /// Returns `true` if an engine executes the runs.
    pub(super) fn has_engine(&self) -> bool {
        self.stage.has_engine()
    }

    /// Returns the story after the kill. `None` if it completed before, because results of concurrent calls share an
    /// append.
    pub(super) fn killed(&self) -> Option<Story> {
        let story = self.stage.story([self.scenario, self.mode]);
        let end = begin(&story, self.verb, Some(self.kill_at));
        if !end.was_killed() {
            let status = answer(&end).get("status").cloned();
            assert_eq!(status, Some("completed".into()), "{} {}", end.stdout, end.stderr);
            return None;
        }
        blocking().block_on(story.free_leases());
        // A kill before the session was created leaves nothing to resume.
        if blocking().block_on(story.logs()).is_empty() {
            drop(story.run(None));
        }
        Some(story)
    }

    /// Executes a verb in all processes concurrently, each with its own argument. Returns their answers.
    pub(super) fn at_once(
        &self,
        story: &Story,
        verb: &str,
        argument: impl Fn(usize) -> Option<String>,
    ) -> Result<Vec<Value>, String> {
        let _permit = ProcessPermit::of(self.processes);
        let spawned: Vec<_> = (0..self.processes)
            .map(|index| {
                let mut command = story.command(verb);
                command.args(argument(index));
                command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
                command.spawn().unwrap()
            })
            .collect();
        let ended = spawned.into_iter().map(|child| {
            let output = child.wait_with_output().unwrap();
            serde_json::from_slice(&output.stdout)
                .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())
        });
        ended.collect()
    }

    /// Resumes in all processes concurrently: one of them must run, if there was anything to resume. An engine may be
    /// faster.
    pub(super) fn resume_at_once(
        &self,
        story: &Story,
        before: &SessionReader,
    ) -> Result<(), String> {
        let root = before.get(&SessionId::from("story"));
        let ends = |log: &Vec<_>| {
            log.iter().any(|recorded: &helix_agents::event::RecordedEvent| {
                matches!(recorded.event, Event::RunEnded { .. })
            })
        };
        let unfinished = usize::from(root.is_some_and(|log| !ends(log)));
        let answers = self.at_once(story, "resume", |_| None)?;
        let (ran, refused) = ran_and_refused(&answers);
        let known = refused.iter().all(|code| KNOWN.contains(&code.as_str()));
        let fits = if self.stage.has_engine() { ran <= unfinished } else { ran == unfinished };
        if !fits || !known {
            return Err(format!("{ran} of {} ran, the others: {refused:?}", answers.len()));
        }
        Ok(())
    }
}

/// Returns the number of completed processes, and the error codes of the others.
pub(super) fn ran_and_refused(answers: &[Value]) -> (usize, Vec<String>) {
    let mut refused = Vec::new();
    let mut ran = 0;
    for answer in answers {
        match answer.get("code").and_then(Value::as_str) {
            Some(code) => refused.push(code.to_owned()),
            None if answer.get("status").is_some_and(|status| status == "completed") => ran += 1,
            None => refused.push(answer.to_string()),
        }
    }
    (ran, refused)
}

/// Checks that each log starts with its previous events.
pub(super) fn begins_with(before: &SessionReader, after: &SessionReader) -> Result<(), String> {
    for (session, log) in before {
        let now = after.get(session).map_or(&[][..], Vec::as_slice);
        if !now.starts_with(log) {
            return Err(format!("the log of {session} does not start with its previous events"));
        }
    }
    Ok(())
}
