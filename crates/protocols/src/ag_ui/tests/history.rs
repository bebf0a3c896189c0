//! Histories of sessions as AG-UI messages.

use serde_json::{Value, json};

use crate::ag_ui::{Assembler, Options, Progress, Translator, history};
use crate::testing::*;
use crate::turn::Folds;

fn messages(log: &Log) -> Value {
    let messages = history(&Folds::new(log.session()), Options::default());
    serde_json::to_value(messages).unwrap()
}

#[test]
fn each_turn_has_its_messages_and_results() {
    let log = long_session(2, 1);
    let call = |step: u32| {
        let function = json!({"name": "weather", "arguments": "{\"city\":\"Graz\"}"});
        json!({"id": format!("{step}.0"), "type": "function", "function": function})
    };
    let turn = |turn: u32, step: u32| {
        json!([
            {"role": "user", "id": format!("s-turn-{turn}-user-1"), "content": "Hello"},
            {"role": "assistant", "id": format!("a{step}"), "content": "I look.",
                "toolCalls": [call(step)]},
            {"role": "tool", "id": format!("t-{step}.0"), "toolCallId": format!("{step}.0"),
                "content": "\"rain\""},
            {"role": "assistant", "id": format!("a{}", step + 1), "content": "Rain."},
        ])
    };
    let expected = [turn(1, 1), turn(2, 3)].map(|turn| turn.as_array().unwrap().clone()).concat();
    assert_eq!(messages(&log), json!(expected));
}

#[test]
fn the_cost_of_a_history_is_linear_in_its_length() {
    assert_linear(
        500,
        |turns| long_session(turns, 1),
        |log| {
            let messages = history(&Folds::new(log.session()), Options::default());
            assert!(messages.len() >= 4 * 500);
        },
    );
}

#[test]
fn the_cost_of_a_chunk_does_not_depend_on_the_calls_before_it() {
    let session = empty();
    let folds = Folds::new(&session);
    let respond = |calls| {
        let mut translator = Translator::new(&folds, "run-1", Options::default());
        let mut assembler = Assembler::default();
        let mut out = Vec::new();
        for number in 0..calls {
            let call = &format!("1.{number}");
            for kind in [tool_start(call, "weather"), tool_end(call, "weather")] {
                let progress = translator.push_chunk(None, &own(1, kind), &mut out);
                assert_eq!(progress, Progress::Open);
                out.drain(..).for_each(|event| assembler.apply(&event));
            }
        }
        assert_eq!(assembler.messages().len(), 1 + calls as usize);
    };
    assert_linear(1_000, |calls| calls, respond);
}
