//! Many processes resume one session concurrently: one runs it, the others are refused.

use std::process::Stdio;

use helix_agents_conformance::normalise;
use helix_agents_tests_e2e::stores::Kind;
use serde_json::Value;

use crate::support::{Story, answer, on_each_store};
use crate::sweep::blocking;

on_each_store! {
    Sqlite of_eight_processes_one_runs_and_seven_are_told(kind) {
        super::one_of_eight_continues("local", kind, 1)
    }
    Sqlite a_resumer_that_is_killed_in_its_start_leaves_the_session_to_the_next(kind) {
        super::a_resumer_that_is_killed_in_its_start_leaves_the_session_to_the_next(kind)
    }
    Sqlite a_run_that_is_killed_again_and_again_gets_to_its_end(kind) {
        super::a_run_that_is_killed_again_and_again_gets_to_its_end(kind)
    }
}

mod durable {
    use super::on_each_store;

    on_each_store! {
        Sqlite of_eight_processes_one_goes_on(kind) {
            crate::kill_resumers::one_of_eight_continues("durable", kind, 1)
        }
    }
}

mod temporal {
    use super::on_each_store;

    on_each_store! {
        /// A worker that is refused ends while it still holds tasks that the engine has assigned to it.
        Sqlite of_eight_workers_one_goes_on(kind) {
            crate::kill_resumers::one_of_eight_continues("temporal", kind, 2)
        }
    }
}

fn one_of_eight_continues(runtime: &str, kind: &'static Kind, most: usize) {
    let story = Story::on(runtime, kind, "parallel", "per_effect").with_short_leases();
    let whole = Story::on(runtime, kind, "parallel", "per_effect").run(None);
    let point = whole.points.iter().position(|name| name == "journal.after_append").unwrap();
    assert!(story.run(Some(point + 1)).was_killed());
    if runtime != "local" {
        blocking().block_on(story.free_leases());
    }
    let spawn = |_| {
        let mut command = story.command("resume");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let resumers: Vec<_> = (0..8).map(spawn).collect();
    let mut refused = Vec::new();
    let mut ran = 0;
    for resumer in resumers {
        let output = resumer.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let answer: Value = serde_json::from_str(&text).unwrap();
        match answer.get("code").and_then(Value::as_str) {
            Some(code) => refused.push(code.to_owned()),
            None => {
                assert_eq!(answer.get("status").unwrap(), "completed");
                ran += 1;
            }
        }
    }
    assert_eq!((ran, refused.len()), (1, 7), "{refused:?}");
    // On a busy machine, the short lease of a resumer may expire before its run ends. Another resumer takes over then.
    let known = ["already_resumed", "already_running", "nothing_to_resume", "superseded"];
    assert!(refused.iter().all(|code| known.contains(&code.as_str())), "{refused:?}");
    for (call, keys) in story.trace() {
        let same = keys.iter().all(|key| Some(key) == keys.first());
        assert!(keys.len() <= most && same, "call {call} ran {} times", keys.len());
    }
}

fn a_resumer_that_is_killed_in_its_start_leaves_the_session_to_the_next(kind: &'static Kind) {
    let whole = Story::new(kind, "plain", "per_effect");
    let points = whole.run(None).points;
    let expected = normalise::log(&blocking().block_on(whole.log()).unwrap());
    let point = points.iter().position(|name| name == "tool.before").unwrap();
    // The first start is refused because of the crashed owner's lease, and the second takes over. On a busy machine, the
    // lease may have expired before. The first effect follows.
    let starts = [&["journal.before_start"; 2][..], &["journal.before_start"]]
        .map(|before| [before, &["journal.after_start"]].concat());
    for kill_at in 1..=5 {
        let story = Story::new(kind, "plain", "per_effect").with_short_leases();
        assert!(story.run(Some(point + 1)).was_killed());
        let killed = story.resume(Some(kill_at));
        assert!(killed.was_killed(), "{}", killed.stderr);
        let points: Vec<_> = killed.points.iter().map(String::as_str).collect();
        let is_start =
            |start: &Vec<&str>| points.iter().zip(start).all(|(point, start)| point == start);
        assert!(starts.iter().any(is_start), "{points:?}");
        let end = story.resume(None);
        assert_eq!(answer(&end).get("status").unwrap(), "completed", "{}", end.stderr);
        assert_eq!(normalise::log(&blocking().block_on(story.log()).unwrap()), expected);
    }
}

fn a_run_that_is_killed_again_and_again_gets_to_its_end(kind: &'static Kind) {
    let story = Story::new(kind, "plain", "per_effect").with_short_leases();
    assert!(story.run(Some(8)).was_killed());
    let mut resumed = 0;
    let end = loop {
        resumed += 1;
        // Each process gets a little further.
        let end = story.resume(Some(9));
        if !end.was_killed() {
            break end;
        }
        assert!(resumed < 30, "the run makes no progress");
    };
    let code = answer(&end);
    let complete = code.get("status").and_then(Value::as_str) == Some("completed");
    let was_complete = code.get("code").and_then(Value::as_str) == Some("nothing_to_resume");
    assert!(complete || was_complete, "{code}");
    assert!(resumed > 2, "it must be killed several times");
}
