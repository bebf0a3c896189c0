//! Responses to a page that has a part of the message.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::stream::ChunkKind;

use crate::ai_sdk::{
    Assembler, ChatRequest, Options, Progress, Seen, Translator, UiChunk, UiMessage, UiPart,
};
use crate::limits::RequestLimits;
use crate::testing::*;
use crate::turn::Folds;

fn translate(
    seen: Option<Seen>,
    kinds: impl IntoIterator<Item = (u32, ChunkKind)>,
) -> Vec<UiChunk> {
    let session = empty();
    let mut translator = Translator::new(&Folds::new(&session), Options::default());
    if let Some(seen) = seen {
        translator = translator.continuing(seen);
    }
    let mut out = Vec::new();
    for (step, kind) in kinds {
        let (Progress::Open | Progress::Done | Progress::Broken) =
            translator.push_chunk(None, &own(step, kind), &mut out);
    }
    out
}

fn message(kinds: impl IntoIterator<Item = (u32, ChunkKind)>) -> UiMessage {
    let mut assembler = Assembler::new("m");
    translate(None, kinds).iter().for_each(|chunk| assembler.add(chunk).unwrap());
    assembler.into_settled()
}

fn asked() -> Vec<(u32, ChunkKind)> {
    vec![
        (1, text("First.")),
        (1, checkpoint()),
        (2, text("I ask.")),
        (2, client_start("2.0", "ask")),
        (2, approval("2.1", "pay")),
    ]
}

fn answered() -> Vec<(u32, ChunkKind)> {
    let rest = [
        (2, tool_end("2.0", "ask")),
        (2, tool_start("2.1", "pay")),
        (2, tool_end("2.1", "pay")),
        (2, checkpoint()),
        (3, text("Done.")),
        (3, checkpoint()),
        (3, ended("completed")),
    ];
    asked().into_iter().chain(rest).collect()
}

#[test]
fn a_page_with_a_part_of_the_message_gets_the_rest_of_it_once() {
    let before = message(asked());
    let mut assembler = Assembler::continuing(before.clone());
    let rest = translate(Some(Seen::of(&before)), answered());
    rest.iter().for_each(|chunk| assembler.add(chunk).unwrap());
    assert_eq!(assembler.into_settled().parts, message(answered()).parts);
    let types: Vec<_> = rest
        .iter()
        .map(|chunk| serde_json::to_value(chunk).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        types,
        [
            "message-metadata",
            "tool-output-available",
            "tool-approval-response",
            "tool-input-available",
            "tool-output-available",
            "start-step",
            "text-start",
            "text-delta",
            "text-end",
            "finish-step",
            "finish"
        ]
    );
}

#[test]
fn a_page_that_has_everything_gets_nothing_but_the_end() {
    let all = message(answered());
    let rest = translate(Some(Seen::of(&all)), answered());
    let mut assembler = Assembler::continuing(all.clone());
    rest.iter().for_each(|chunk| assembler.add(chunk).unwrap());
    assert_eq!(assembler.into_settled().parts, all.parts);
}

/// The empty step that ended the last response becomes the next step.
#[test]
fn an_empty_step_of_the_page_is_used() {
    let interrupted = || {
        let rest = [
            (2, tool_end("2.0", "ask")),
            (2, checkpoint()),
            (2, ChunkKind::RunInterrupted { reason: None }),
        ];
        asked().into_iter().take(4).chain(rest)
    };
    let before = message(interrupted());
    let next = interrupted().take(6).chain([(3, text("Done.")), (3, checkpoint())]);
    let next: Vec<_> = next.collect();
    let rest = translate(Some(Seen::of(&before)), next.clone());
    assert!(!rest.contains(&UiChunk::StartStep), "{rest:?}");
    let mut assembler = Assembler::continuing(before);
    rest.iter().for_each(|chunk| assembler.add(chunk).unwrap());
    assert_eq!(assembler.into_settled().parts, message(next).parts);
}

/// A sub-agent may ask while the response shows no step of the root session.
#[test]
fn a_question_of_a_sub_agent_in_an_empty_step_leaves_the_step_empty() {
    let waiting = || {
        let first = asked().into_iter().take(4).chain([
            (2, tool_end("2.0", "ask")),
            (2, sub_agent_start("2.1", "s-sub-2.1")),
            (2, suspended()),
        ]);
        first.collect::<Vec<_>>()
    };
    let before = message(waiting());
    assert_eq!(before.parts.last(), Some(&UiPart::StepStart));
    let question = UiChunk::ToolInputAvailable {
        tool_call_id: "s-sub-2.1#1.0".to_owned(),
        tool_name: "pay".to_owned(),
        input: serde_json::json!({}),
        provider_executed: Some(false),
    };
    let mut assembler = Assembler::continuing(before);
    assembler.add(&question).unwrap();
    let before = assembler.into_settled();
    let next = waiting().into_iter().take(6).chain([
        (2, tool_end("2.1", "subagent__poet")),
        (2, checkpoint()),
        (3, text("Done.")),
        (3, checkpoint()),
    ]);
    let rest = translate(Some(Seen::of(&before)), next);
    let texts = rest.iter().filter(|chunk| matches!(chunk, UiChunk::TextDelta { .. }));
    assert_eq!(texts.count(), 1, "{rest:?}");
    assert!(!rest.contains(&UiChunk::StartStep), "{rest:?}");
}

/// The page sends its answers again as long as they are in the last step, whatever else is in it.
#[test]
fn an_answer_to_a_sub_agent_does_not_stay_in_the_step_of_the_next_reply() {
    let waiting = [(1, sub_agent_start("1.0", "s-sub-1.0")), (1, suspended())];
    let mut assembler = Assembler::continuing(message(waiting.clone()));
    let answered = [
        UiChunk::StartStep,
        UiChunk::ToolInputAvailable {
            tool_call_id: "s-sub-1.0#1.0".to_owned(),
            tool_name: "ask".to_owned(),
            input: serde_json::json!({}),
            provider_executed: None,
        },
        UiChunk::ToolOutputAvailable {
            tool_call_id: "s-sub-1.0#1.0".to_owned(),
            output: "sun".into(),
            provider_executed: None,
            preliminary: None,
        },
    ];
    answered.iter().for_each(|chunk| assembler.add(chunk).unwrap());
    let before = assembler.into_settled();
    let [start, _] = waiting;
    let rest = translate(
        Some(Seen::of(&before)),
        [
            start,
            (1, tool_end("1.0", "subagent__poet")),
            (1, checkpoint()),
            (2, text("Done.")),
            (2, checkpoint()),
            (2, ended("completed")),
        ],
    );
    let steps = rest.iter().filter(|chunk| matches!(chunk, UiChunk::StartStep));
    assert_eq!(steps.count(), 1, "{rest:?}");
    let after_text = rest.iter().skip_while(|chunk| !matches!(chunk, UiChunk::TextEnd { .. }));
    assert!(after_text.into_iter().any(|chunk| *chunk == UiChunk::StartStep), "{rest:?}");
}

/// Two pages may show the same call; one of them answers first.
#[test]
fn a_page_with_another_answer_gets_the_recorded_one() {
    let mut before = message(asked());
    for part in &mut before.parts {
        if let UiPart::Tool(call) = part
            && call.tool_call_id == "2.0"
        {
            call.state = "output-available".to_owned();
            call.output = Some("sun".into());
        }
    }
    let mut assembler = Assembler::continuing(before.clone());
    let rest = translate(Some(Seen::of(&before)), answered());
    rest.iter().for_each(|chunk| assembler.add(chunk).unwrap());
    assert_eq!(assembler.into_settled().parts, message(answered()).parts);
}

/// A call that waits behind the questions of its step is shown with its arguments, and fails if the run is aborted.
#[test]
fn a_page_gets_the_error_of_a_call_that_never_started() {
    let asked = || [(1, arg_start(0, "later")), (1, arg(0, "{}")), (1, approval("1.1", "pay"))];
    let before = message(asked().into_iter().chain([(1, suspended())]));
    let [error, end] = tool_error("1.0", "later", ErrorCode::ToolNotRun);
    let aborted = || asked().into_iter().chain([(1, error.clone()), (1, end.clone())]);
    let rest = translate(Some(Seen::of(&before)), aborted());
    let mut assembler = Assembler::continuing(before);
    rest.iter().for_each(|chunk| assembler.add(chunk).unwrap());
    assert_eq!(assembler.into_settled().parts, message(aborted()).parts);
    assert!(serde_json::to_string(&rest).unwrap().contains("it is closed"), "{rest:?}");
}

/// A companion's question is part of the step in progress, which may be a later one than in the page.
#[test]
fn a_page_with_a_question_does_not_get_it_again_in_a_later_step() {
    let before = message([(1, text("First.")), (1, approval("1.0", "pay")), (1, suspended())]);
    let later = [
        (1, text("First.")),
        (1, checkpoint()),
        (2, text("Second.")),
        (2, approval("1.0", "pay")),
        (2, tool_start("1.0", "pay")),
        (2, tool_end("1.0", "pay")),
    ];
    let rest = translate(Some(Seen::of(&before)), later);
    let mut assembler = Assembler::continuing(before);
    rest.iter().for_each(|chunk| assembler.add(chunk).unwrap());
    let message = assembler.into_settled();
    let calls = message.parts.iter().filter_map(|part| match part {
        UiPart::Tool(call) => Some(&*call.state),
        _ => None,
    });
    assert_eq!(calls.collect::<Vec<_>>(), ["output-available"], "{rest:?}");
}

/// The page sends its answers again and again as long as they are in the last step.
#[test]
fn an_answer_to_a_companion_that_has_ended_does_not_stay_in_the_last_step() {
    let asked = message([(1, text("I wait.")), (1, approval("1.0", "pay")), (1, suspended())]);
    let mut answered = asked.clone();
    for part in &mut answered.parts {
        if let UiPart::Tool(call) = part {
            call.state = "approval-responded".to_owned();
            call.approval.as_mut().unwrap().approved = Some(true);
        }
    }
    let body = serde_json::json!({ "id": "chat", "messages": [&answered] }).to_string();
    let request = ChatRequest::decode(body.as_bytes(), &RequestLimits::default()).unwrap();
    assert_eq!(request.seen, Some(Seen::of(&answered)));
    for (seen, is_sent_again) in [(Some(Seen::of(&asked)), false), (request.seen, true)] {
        let rest = [(1, text("I wait.")), (1, ended("aborted"))];
        let rest = translate(seen, rest);
        assert_eq!(rest.contains(&UiChunk::StartStep), is_sent_again, "{rest:?}");
    }
}
