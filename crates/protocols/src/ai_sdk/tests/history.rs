//! Histories of sessions as messages of the AI SDK.

use helix_agents_core::event::PendingKind;
use helix_agents_core::stream::Attempt;
use serde_json::json;

use crate::ai_sdk::{Assembler, Options, Progress, Translator, UiChunk, history};
use crate::testing::*;
use crate::turn::Folds;

#[test]
fn the_cost_of_a_history_is_linear_in_its_length() {
    assert_linear(
        500,
        |turns| long_session(turns, 1),
        |log| {
            let messages = history(&Folds::new(log.session()), &[], Options::default());
            assert!(messages.len() >= 2 * 500);
        },
    );
}

/// Data with ids, and calls that start and end one after the other.
#[test]
fn the_cost_of_a_chunk_does_not_depend_on_the_parts_before_it() {
    let session = empty();
    let folds = Folds::new(&session);
    let respond = |calls| {
        let mut translator = Translator::new(&folds, Options::default());
        let mut assembler = Assembler::new("m");
        let mut out = Vec::new();
        for number in 0..calls {
            let call = &format!("1.{number}");
            for kind in
                [tool_start(call, "weather"), custom("note", "1"), tool_end(call, "weather")]
            {
                let attempt = Some(Attempt(number.into()));
                let progress = translator.push_chunk(attempt, &own(1, kind), &mut out);
                assert_eq!(progress, Progress::Open);
                out.drain(..).for_each(|chunk| assembler.add(&chunk).unwrap());
            }
        }
        assert_eq!(assembler.message().parts.len(), 1 + 2 * calls as usize);
    };
    assert_linear(1_000, |calls| calls, respond);
}

#[test]
fn a_reset_of_the_step_forgets_its_calls_and_data() {
    let input = || UiChunk::ToolInputAvailable {
        tool_call_id: "1.0".to_owned(),
        tool_name: "weather".to_owned(),
        input: json!({}),
        provider_executed: Some(true),
    };
    let text = |id: &str| UiChunk::TextStart { id: id.to_owned() };
    let mut assembler = Assembler::new("m");
    for chunk in [
        UiChunk::StartStep,
        input(),
        UiChunk::data("note", "1", json!(1)),
        UiChunk::ResetStep,
        text("a"),
        text("b"),
        UiChunk::data("note", "1", json!(2)),
    ] {
        assembler.add(&chunk).unwrap();
    }
    let denied = UiChunk::ToolOutputDenied { tool_call_id: "1.0".to_owned() };
    assert!(assembler.add(&denied).is_err(), "the call is gone");
    assembler.add(&input()).unwrap();
    assembler.add(&denied).unwrap();
    assert_eq!(assembler.message().parts.len(), 5);
}

#[test]
fn the_history_and_the_next_response_show_a_companions_question() {
    let start = child_start("1.0", "s-agent-ann", Some("ann"));
    let mut root = Log::new(SESSION);
    root.say("Start Ann.");
    root.reply("", &["companion__spawnAgent"]);
    root.start_child(&start);
    root.finish("1.0", "running".into());
    root.close_step();
    root.reply("Done.", &[]);
    root.close_step();
    root.complete();
    let mut companion = Log::of_child(&start, SESSION);
    companion.say("Work.");
    companion.reply("", &["pay"]);
    companion.suspend(&[pending("1.0", "pay", PendingKind::Approval { editable: false })], &[]);
    let folds = Folds::new(root.session()).with_child(companion.session());

    let messages = history(&folds, &[], Options::default());
    let text = serde_json::to_string(&messages).unwrap();
    assert!(text.contains("\"state\":\"approval-requested\""), "{text}");
    assert!(text.contains("s-agent-ann#1.0~9f2c"), "{text}");
    let mut out = Vec::new();
    let progress = Translator::new(&folds, Options::default()).begin(&folds, &mut out);
    assert_eq!(progress, Progress::Done);
    let asked = |chunk: &UiChunk| matches!(chunk, UiChunk::ToolApprovalRequest { .. });
    assert_eq!(out.iter().filter(|chunk| asked(chunk)).count(), 1);
}
