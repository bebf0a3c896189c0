//! Every fault point of every scenario: killed there, resumed, and compared with the run that
//! nobody killed.

use helix_agents_testkit::normalise;
use serde_json::{Value, json};

use crate::support::{Story, answer, recorded_calls, write_report};

/// What is wrong with the story after a kill at the n-th point, if anything is.
async fn problem(
    scenario: &'static str,
    mode: &'static str,
    kill_at: usize,
    expected: &Expected,
) -> Result<(), String> {
    let story = Story::new(scenario, mode);
    let killed = story.run(Some(kill_at));
    // Results that end together share an append, so some runs have a few points less.
    if killed.points.len() < kill_at && killed.stdout.contains("completed") {
        return Ok(());
    }
    if !killed.was_killed() {
        return Err(format!("the worker was not killed: {} {}", killed.stdout, killed.stderr));
    }
    let recorded = story.log().await.map(|log| recorded_calls(&log));
    let before = story.trace();
    let end = match &recorded {
        Some(_) => story.resume(None),
        // Nothing was begun, as far as anybody was told.
        None => story.run(None),
    };
    // A kill after the last append leaves a session that is complete.
    let answer = answer(&end);
    let complete = answer.get("status").and_then(Value::as_str) == Some("completed");
    let was_complete = answer.get("code").and_then(Value::as_str) == Some("nothing_to_resume");
    if !complete && !was_complete {
        return Err(format!("it did not complete: {answer} {}", end.stderr));
    }
    let log = normalise::log(&story.log().await.ok_or("the session is gone")?);
    let in_doubt = scenario == "at_most_once" && log != expected.log;
    if log != expected.log && !(in_doubt && log.contains("tool_outcome_unknown")) {
        return Err(format!("another log:\n{log}"));
    }
    let stream = normalise::stream(&story.stream().await);
    if complete && !in_doubt && stream != expected.stream {
        return Err(format!("another stream:\n{stream}"));
    }
    for (call, keys) in story.trace() {
        let again = keys.len() - before.get(&call).map_or(0, Vec::len);
        if recorded.as_ref().is_some_and(|calls| calls.contains(&call)) && again > 0 {
            return Err(format!("call {call} was on record and ran again"));
        }
        if keys.len() > 2 || keys.windows(2).any(|pair| pair.first() != pair.last()) {
            return Err(format!("call {call} ran {} times under {keys:?}", keys.len()));
        }
        if scenario == "at_most_once" && log.contains(&format!("call {call} pay")) && keys.len() > 1
        {
            return Err(format!("the at-most-once call {call} ran {} times", keys.len()));
        }
    }
    Ok(())
}

struct Expected {
    log: String,
    stream: String,
}

async fn matrix(scenario: &'static str, mode: &'static str) {
    let story = Story::new(scenario, mode);
    let whole = story.run(None);
    assert_eq!(answer(&whole).get("status").unwrap(), "completed", "{}", whole.stderr);
    assert!(whole.points.len() > 10, "fault points are missing: {:?}", whole.points);
    let expected = Expected {
        log: normalise::log(&story.log().await.unwrap()),
        stream: normalise::stream(&story.stream().await),
    };
    let mut report = Vec::new();
    let mut problems = Vec::new();
    for (index, point) in whole.points.iter().enumerate() {
        let outcome = problem(scenario, mode, index + 1, &expected).await;
        report.push(json!({ "name": point, "ok": outcome.is_ok() }));
        problems.extend(outcome.err().map(|text| format!("{} {point}: {text}", index + 1)));
    }
    write_report(scenario, mode, &report);
    assert!(
        problems.is_empty(),
        "{} of {}:\n{}",
        problems.len(),
        report.len(),
        problems.join("\n")
    );
}

#[tokio::test]
async fn plain_tools_per_effect() {
    matrix("plain", "per_effect").await;
}

#[tokio::test]
async fn parallel_tools_per_effect() {
    matrix("parallel", "per_effect").await;
}

#[tokio::test]
async fn finish_tool_per_effect() {
    matrix("finish", "per_effect").await;
}

#[tokio::test]
async fn at_most_once_per_effect() {
    matrix("at_most_once", "per_effect").await;
}

#[tokio::test]
async fn plain_tools_per_step() {
    matrix("plain", "per_step").await;
}

#[tokio::test]
async fn at_most_once_per_step() {
    matrix("at_most_once", "per_step").await;
}
