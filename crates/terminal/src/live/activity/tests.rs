//! Tests of the status line.

use helix_agents_core::error::{ErrorCode, ErrorRecord};

use super::*;
use crate::live::shown_by;

fn start(call: &str, tool: &str) -> ChunkKind {
    ChunkKind::ToolStart {
        call: call.into(),
        tool: tool.into(),
        arguments: "{}".into(),
        client: false,
    }
}

fn end(call: &str) -> ChunkKind {
    ChunkKind::ToolEnd { call: call.into(), tool: "x".into(), success: true, result: None }
}

fn progress(call: &str, message: &str, fraction: Option<f64>) -> ChunkKind {
    ChunkKind::ToolProgress { call: call.into(), message: message.into(), fraction }
}

/// Checks the status line, without the frame, at a time after chunks arrived at their times. All times are
/// in milliseconds.
#[track_caller]
fn check(chunks: &[(u64, ChunkKind)], at: u64, expected: &str) {
    let started = Instant::now();
    let mut activity = Activity::new(started);
    for (at, kind) in chunks {
        activity.take(&shown_by("story", kind.clone()), started + Duration::from_millis(*at));
    }
    let line = activity.line(started + Duration::from_millis(at));
    assert_eq!(line.chars().skip(2).collect::<String>(), expected);
}

#[test]
fn the_wait_for_the_model_starts_with_its_last_chunk() {
    check(&[], 340, "waiting for the model 300 ms · 0:00");
    let text = ChunkKind::TextDelta { delta: "x".into() };
    check(&[(1_000, text)], 4_260, "waiting for the model 3.2 s · 0:04");
}

#[test]
fn a_call_being_written_is_timed_from_its_first_chunk() {
    let first = ChunkKind::ToolArgStart { index: 0, tool: "rank".into() };
    let more = ChunkKind::ToolArgDelta { index: 0, delta: "{".into() };
    check(&[(1_000, first), (2_500, more)], 3_000, "the model is writing a rank call 2.0 s · 0:03");
}

#[test]
fn running_tools_are_shown_with_their_durations() {
    let chunks = [(1_000, start("1", "rank")), (1_500, start("2", "look_up"))];
    check(&chunks, 2_000, "rank 1.0 s · look_up 500 ms · 0:02");
    let error = ErrorRecord::new(ErrorCode::ToolFailed, "no");
    let failed = ChunkKind::ToolError { call: "1".into(), tool: "rank".into(), error };
    let ended = [&chunks[..], &[(2_000, failed), (2_000, end("1"))]].concat();
    check(&ended, 3_000, "look_up 1.5 s · 0:03");
    let ended = [&ended[..], &[(3_000, end("2"))]].concat();
    check(&ended, 4_000, "waiting for the model 1.0 s · 0:04");
}

#[test]
fn calls_of_sub_agents_are_distinct() {
    let started = Instant::now();
    let mut activity = Activity::new(started);
    let mut check = |session: &str, kind: ChunkKind, expected: &str| {
        activity.take(&shown_by(session, kind), started);
        let line = activity.line(started);
        assert_eq!(line.chars().skip(2).collect::<String>(), expected);
    };
    let (call, child) = ("1".into(), "story-sub-1".into());
    let begins = ChunkKind::SubagentStart {
        call,
        subagent: "helper".into(),
        child,
        arguments: "{}".into(),
        companion: None,
    };
    check("story", begins, "helper 0 ms · 0:00");
    check("story-sub-1", start("1", "get"), "helper 0 ms · get 0 ms · 0:00");
    let suspended = ChunkKind::RunSuspended { calls: Vec::new(), deadline: None };
    check("story-sub-1", suspended, "helper 0 ms · 0:00");
    check("story-sub-1", end("1"), "helper 0 ms · 0:00");
    let (call, child) = ("1".into(), "story-sub-1".into());
    let subagent = "helper".into();
    let ends = ChunkKind::SubagentEnd { call, subagent, child, success: true };
    check("story", ends, "waiting for the model 0 ms · 0:00");
}

#[test]
fn many_tools_are_counted() {
    let chunks: Vec<_> = ["1", "2", "3", "4", "5"].map(|call| (0, start(call, "t"))).into();
    check(&chunks, 1_000, "t 1.0 s · t 1.0 s · t 1.0 s · 2 more · 0:01");
}

#[test]
fn progress_is_a_bar_where_the_fraction_is_known() {
    let at =
        |message: &str, fraction| [(0, start("1", "get")), (0, progress("1", message, fraction))];
    check(&at("page 3", Some(0.45)), 1_000, "get ▰▰▰▰▱▱▱▱▱▱ 45% page 3 1.0 s · 0:01");
    check(&at("page\n3", None), 1_000, "get page 3 1.0 s · 0:01");
    check(&at("", Some(7.0)), 1_000, "get ▰▰▰▰▰▰▰▰▰▰ 100% 1.0 s · 0:01");
    check(&at("", Some(f64::NAN)), 1_000, "get 1.0 s · 0:01");
}

#[test]
fn calls_of_a_discarded_step_are_removed() {
    let discarded = ChunkKind::StepDiscarded { attempts: Vec::new() };
    check(
        &[(0, start("1", "get")), (500, discarded)],
        1_000,
        "waiting for the model 500 ms · 0:01",
    );
}

#[test]
fn tokens_and_requests_are_shown() {
    let started = Instant::now();
    let mut activity = Activity::new(started);
    activity.count(1_234, 56);
    activity.set_request("interrupting");
    let line = activity.line(started + Duration::from_secs(61));
    assert_eq!(line, "⠋ interrupting · waiting for the model 1 min 01 s · 1.2k in, 56 out · 1:01");
}

#[test]
fn numbers_are_short() {
    let numbers = [0, 999, 1_000, 9_999, 10_000, 999_999, 3_450_000].map(short);
    assert_eq!(numbers, ["0", "999", "1.0k", "9.9k", "10k", "999k", "3.4M"]);
}
