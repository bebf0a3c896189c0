//! The words of the status line.

use helix_agents::error::{ErrorCode, ErrorRecord};

use super::*;
use crate::live::shown_by;

fn start(call: &str, tool: &str) -> ChunkKind {
    ChunkKind::ToolStart { call: call.into(), tool: tool.into(), arguments: "{}".into() }
}

fn end(call: &str) -> ChunkKind {
    ChunkKind::ToolEnd { call: call.into(), tool: "x".into(), success: true, result: None }
}

fn progress(call: &str, message: &str, fraction: Option<f64>) -> ChunkKind {
    ChunkKind::ToolProgress { call: call.into(), message: message.into(), fraction }
}

/// What it says some milliseconds after chunks arrived, each at its time, without the frame.
#[track_caller]
fn says(chunks: &[(u64, ChunkKind)], at: u64, expected: &str) {
    let began = Instant::now();
    let mut activity = Activity::new(began);
    for (at, kind) in chunks {
        activity.take(&shown_by("story", kind.clone()), began + Duration::from_millis(*at));
    }
    let line = activity.line(began + Duration::from_millis(at));
    assert_eq!(line.chars().skip(2).collect::<String>(), expected);
}

#[test]
fn it_waits_for_the_model_from_its_last_word_on() {
    says(&[], 340, "waiting for the model 300 ms · 0:00");
    let text = ChunkKind::TextDelta { delta: "x".into() };
    says(&[(1_000, text)], 4_260, "waiting for the model 3.2 s · 0:04");
}

#[test]
fn a_call_that_is_written_is_named_and_timed_from_its_first_letter() {
    let begun = ChunkKind::ToolArgStart { index: 0, tool: "rank".into() };
    let more = ChunkKind::ToolArgDelta { index: 0, delta: "{".into() };
    says(
        &[(1_000, begun), (2_500, more)],
        3_000,
        "the model is writing a call of rank 2.0 s · 0:03",
    );
}

#[test]
fn tools_under_way_are_named_each_with_its_time() {
    let chunks = [(1_000, start("1", "rank")), (1_500, start("2", "look_up"))];
    says(&chunks, 2_000, "rank 1.0 s · look_up 500 ms · 0:02");
    let error = ErrorRecord::new(ErrorCode::ToolFailed, "no");
    let failed = ChunkKind::ToolError { call: "1".into(), tool: "rank".into(), error };
    let ended = [&chunks[..], &[(2_000, failed), (2_000, end("1"))]].concat();
    says(&ended, 3_000, "look_up 1.5 s · 0:03");
    let ended = [&ended[..], &[(3_000, end("2"))]].concat();
    says(&ended, 4_000, "waiting for the model 1.0 s · 0:04");
}

#[test]
fn children_are_named_and_their_calls_are_their_own() {
    let began = Instant::now();
    let mut activity = Activity::new(began);
    let mut says = |session: &str, kind: ChunkKind, expected: &str| {
        activity.take(&shown_by(session, kind), began);
        let line = activity.line(began);
        assert_eq!(line.chars().skip(2).collect::<String>(), expected);
    };
    let (call, child) = ("1".into(), "story-sub-1".into());
    let begins = ChunkKind::SubagentStart { call, subagent: "helper".into(), child };
    says("story", begins, "helper 0 ms · 0:00");
    says("story-sub-1", start("1", "get"), "helper 0 ms · get 0 ms · 0:00");
    let waits = ChunkKind::RunSuspended { calls: Vec::new(), deadline: None };
    says("story-sub-1", waits, "helper 0 ms · 0:00");
    says("story-sub-1", end("1"), "helper 0 ms · 0:00");
    let (call, child) = ("1".into(), "story-sub-1".into());
    let subagent = "helper".into();
    let ends = ChunkKind::SubagentEnd { call, subagent, child, success: true };
    says("story", ends, "waiting for the model 0 ms · 0:00");
}

#[test]
fn many_tools_are_counted() {
    let chunks: Vec<_> = ["1", "2", "3", "4", "5"].map(|call| (0, start(call, "t"))).into();
    says(&chunks, 1_000, "t 1.0 s · t 1.0 s · t 1.0 s · 2 more · 0:01");
}

#[test]
fn progress_is_a_bar_where_the_fraction_is_known() {
    let at =
        |message: &str, fraction| [(0, start("1", "get")), (0, progress("1", message, fraction))];
    says(&at("page 3", Some(0.45)), 1_000, "get ▰▰▰▰▱▱▱▱▱▱ 45% page 3 1.0 s · 0:01");
    says(&at("page\n3", None), 1_000, "get page 3 1.0 s · 0:01");
    says(&at("", Some(7.0)), 1_000, "get ▰▰▰▰▰▰▰▰▰▰ 100% 1.0 s · 0:01");
    says(&at("", Some(f64::NAN)), 1_000, "get 1.0 s · 0:01");
}

#[test]
fn what_was_under_way_in_a_dead_process_is_over() {
    let discarded = ChunkKind::StepDiscarded { attempts: Vec::new() };
    says(&[(0, start("1", "get")), (500, discarded)], 1_000, "waiting for the model 500 ms · 0:01");
}

#[test]
fn tokens_and_requests_are_told() {
    let began = Instant::now();
    let mut activity = Activity::new(began);
    activity.count(1_234, 56);
    activity.ask("interrupting");
    let line = activity.line(began + Duration::from_secs(61));
    assert_eq!(line, "⠋ interrupting · waiting for the model 1 min 01 s · 1.2k in, 56 out · 1:01");
}

#[test]
fn numbers_are_short() {
    let numbers = [0, 999, 1_000, 9_999, 10_000, 999_999, 3_450_000].map(short);
    assert_eq!(numbers, ["0", "999", "1.0k", "9.9k", "10k", "999k", "3.4M"]);
}
