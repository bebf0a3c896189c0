//! The larger examples of "Finishing Agents": the research analyst, `submit_results`, and a tool
//! tested in isolation.

use std::sync::{Arc, Mutex};

use expect_test::expect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::agent::AnyAgent;
use crate::error::ErrorCode;
use crate::step::{CallTask, StepResult};
use crate::testing::{Hand, builder, built, calls, run_tool};
use crate::tool::{Tool, ToolContext, ToolError};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Analysis {
    analysis: String,
    confidence: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Submission {
    #[schemars(length(min = 50))]
    analysis: String,
    #[schemars(range(min = 0.0, max = 1.0))]
    confidence: f64,
    #[serde(default = "yes")]
    save_to_db: bool,
}

const fn yes() -> bool {
    true
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Saved {
    last_saved_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Query {
    query: String,
}

fn analyst() -> AnyAgent {
    let submit = |input: Submission, cx: ToolContext| async move {
        if input.confidence < 0.3 {
            return Err(ToolError::new("Confidence too low. Please gather more evidence."));
        }
        let saved_id = input.save_to_db.then(|| "id_1".to_owned());
        cx.emit("analysis_saved", &json!({"id": saved_id}))?;
        cx.update_state(|state: &mut Saved| state.last_saved_id.clone_from(&saved_id))?;
        Ok(Analysis { analysis: input.analysis, confidence: input.confidence, saved_id })
    };
    let submit = Tool::function("submit_analysis", "Submit the final analysis.", submit)
        .output_schema::<Analysis>()
        .finish_with();
    let search = |input: Query, _: ToolContext| async move {
        Ok(json!({"results": [format!("about {}", input.query)]}))
    };
    let search = Tool::function("search", "Search for information.", search);
    built(builder().state::<Saved>().tool(search).tool(submit).output::<Analysis>())
}

const LONG: &str = "Rust keeps its promises about memory, and that is what matters.";

fn submit(analysis: &str, confidence: f64) -> StepResult {
    calls([("submit_analysis", json!({"analysis": analysis, "confidence": confidence}))])
}

#[test]
fn the_analyst_searches_is_rejected_twice_and_submits() {
    let mut hand = Hand::new(&analyst());
    hand.drive([
        calls([("search", json!({"query": "Rust"}))]),
        submit("Too short.", 0.9),
        submit(LONG, 0.2),
        submit(LONG, 0.9),
    ]);
    expect![[r#"
        reply 1: 1.0 search({"query":"Rust"})
        finished 1.0: {"results":["about Rust"]}
        closed 1
        reply 2: 2.0 submit_analysis({"analysis":"Too short.","confidence":0.9})
        finished 2.0: error tool_input_invalid: the arguments do not match the schema: at /analysis: "Too short." is shorter than 50 characters
        closed 2
        reply 3: 3.0 submit_analysis({"analysis":"Rust keeps its promises about memory, and that is what matters.","confidence":0.2})
        finished 3.0: error tool_failed: Confidence too low. Please gather more evidence.
        closed 3
        reply 4: 4.0 submit_analysis({"analysis":"Rust keeps its promises about memory, and that is what matters.","confidence":0.9})
        finished 4.0: {"analysis":"Rust keeps its promises about memory, and that is what matters.","confidence":0.9,"savedId":"id_1"}; output {"analysis":"Rust keeps its promises about memory, and that is what matters.","confidence":0.9,"savedId":"id_1"}; patch [{"op":"add","path":"/lastSavedId","value":"id_1"}]
        closed 4
        ended completed: {"analysis":"Rust keeps its promises about memory, and that is what matters.","confidence":0.9,"savedId":"id_1"}
    "#]]
    .assert_eq(&hand.story());
    assert_eq!(**hand.session().state(), json!({"lastSavedId": "id_1"}));
}

#[test]
fn a_confidence_out_of_range_is_refused_before_the_tool_runs() {
    let mut hand = Hand::new(&analyst());
    hand.drive([submit(LONG, 1.5)]);
    assert!(hand.story().contains("tool_input_invalid"), "{}", hand.story());
    assert_eq!(hand.session().usage().tool_calls, 0);
}

#[test]
fn a_search_in_the_same_reply_runs_before_the_submission() {
    let mut hand = Hand::new(&analyst());
    let submission = json!({"analysis": LONG, "confidence": 0.9, "saveToDb": false});
    hand.drive([calls([("submit_analysis", submission), ("search", json!({"query": "x"}))])]);
    let lines: Vec<_> = hand.log.iter().map(|(_, event)| event.name()).collect();
    assert_eq!(lines[4..], ["tool_finished", "tool_finished", "step_closed", "run_ended"]);
    let output = hand.session().last_run().unwrap().output.clone().unwrap().to_value();
    assert_eq!(output.get("savedId"), None, "not saved");
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Findings {
    findings: Vec<String>,
    confidence: f64,
}

#[derive(Serialize)]
struct Stored {
    id: u32,
    #[serde(flatten)]
    findings: Findings,
}

#[test]
fn results_are_enriched_and_without_an_output_type_any_result_is_the_output() {
    let submit = Tool::function("submit_results", "Submit.", |input: Findings, _| async {
        if input.confidence < 0.5 {
            return Err(ToolError::new("Confidence too low. Please gather more data."));
        }
        Ok(Stored { id: 7, findings: input })
    });
    let mut hand = Hand::new(&built(builder().tool(submit.finish_with())));
    let results = |confidence| {
        calls([("submit_results", json!({"findings": ["a"], "confidence": confidence}))])
    };
    hand.drive([results(0.4), results(0.6)]);
    let run = hand.session().last_run().unwrap();
    assert_eq!(run.output, Some(json!({"id": 7, "findings": ["a"], "confidence": 0.6}).into()));
    assert!(hand.story().contains(ErrorCode::ToolFailed.as_str()));
}

#[derive(Deserialize, JsonSchema)]
struct Answer {
    answer: String,
}

#[test]
fn a_tool_is_tested_in_isolation() {
    let saved = Arc::new(Mutex::new(Vec::new()));
    let database = Arc::clone(&saved);
    let tool = Tool::function("submit_answer", "Submits.", move |input: Answer, _| {
        database.lock().unwrap().push(input.answer.clone());
        async move { Ok(json!({"result": input.answer})) }
    });
    let mut hand = Hand::new(&built(builder().tool(tool.finish_with())));
    hand.reply(calls([("submit_answer", json!({"answer": "test"}))]));
    let task = CallTask { call: "1.0".into(), attempt: 1, at_most_once: false, in_doubt: false };
    let finish = run_tool(&hand.iterator, &task);
    assert_eq!(
        finish.outcome,
        crate::event::ToolOutcome::Success(json!({"result": "test"}).into())
    );
    assert_eq!(*saved.lock().unwrap(), ["test"]);
}
