//! The examples of "Finishing Agents", run from the first reply to the end.

use expect_test::{Expect, expect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::agent::AnyAgent;
use crate::step::StepResult;
use crate::testing::{Hand, builder, built, calls, finish, transcript_text};
use crate::tool::{Tool, ToolContext, ToolError};

fn check(agent: &AnyAgent, script: Vec<StepResult>, story: &Expect) -> Hand {
    let mut hand = Hand::new(agent);
    hand.drive(script);
    story.assert_eq(&hand.story());
    hand
}

fn tool_names(agent: &AnyAgent) -> Vec<String> {
    agent.effective_tools().specs().iter().map(|spec| spec.name.to_string()).collect()
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Analysis {
    sentiment: Sentiment,
    confidence: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Sentiment {
    Positive,
    Negative,
    Neutral,
}

#[test]
fn the_analyzer_completes_by_finish_and_its_call_is_paired() {
    let agent = built(builder().output::<Analysis>());
    assert_eq!(tool_names(&agent), ["__finish__"]);
    let script = vec![finish(json!({"sentiment": "positive", "confidence": 0.95}))];
    let hand = check(
        &agent,
        script,
        &expect![[r#"
        reply 1: 1.0 __finish__({"sentiment":"positive","confidence":0.95})
        finished 1.0: acknowledged; output {"sentiment":"positive","confidence":0.95}
        closed 1
        ended completed: {"sentiment":"positive","confidence":0.95}
    "#]],
    );
    expect![[r#"
        user: go
        assistant: 1.0 __finish__({"sentiment":"positive","confidence":0.95})
        tool: 1.0 __finish__ = {"acknowledged":true}
    "#]]
    .assert_eq(&transcript_text(hand.session().transcript()));
}

#[test]
fn a_completed_agent_is_continued_on_its_own_history_with_a_fresh_result() {
    let agent = built(builder().output::<Analysis>());
    let mut hand = Hand::new(&agent);
    hand.drive([finish(json!({"sentiment": "positive", "confidence": 0.95}))]);
    hand.start(crate::event::Trigger::Continue).unwrap();
    hand.say("and now?");
    hand.drive([finish(json!({"sentiment": "neutral", "confidence": 0.5}))]);
    expect![[r#"
        user: go
        assistant: 1.0 __finish__({"sentiment":"positive","confidence":0.95})
        tool: 1.0 __finish__ = {"acknowledged":true}
        user: and now?
        assistant: 2.0 __finish__({"sentiment":"neutral","confidence":0.5})
        tool: 2.0 __finish__ = {"acknowledged":true}
    "#]]
    .assert_eq(&transcript_text(hand.session().transcript()));
    let outputs: Vec<_> = hand.session().runs().map(|run| run.output.clone().unwrap()).collect();
    assert_eq!(outputs[0].to_value()["confidence"], 0.95);
    assert_eq!(outputs[1].to_value()["confidence"], 0.5);
    assert_eq!(hand.session().turn(), 2);
}

#[derive(Deserialize, JsonSchema)]
struct Data {
    data: String,
}

fn submit() -> Tool {
    Tool::function("submit", "Submits.", |input: Data, cx: ToolContext| async move {
        if input.data.len() < 10 {
            return Err(ToolError::new("Data too short. Please provide more detail."));
        }
        cx.update_state(|state: &mut Submission| state.last_submission = input.data.clone())?;
        Ok(json!({"result": input.data}))
    })
    .finish_with()
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Submission {
    last_submission: String,
}

#[test]
fn a_finish_tool_that_fails_does_not_complete_and_the_model_may_try_again() {
    let agent = built(builder().state::<Submission>().tool(submit()));
    let script = vec![
        calls([("submit", json!({"data": "Hi"}))]),
        calls([("submit", json!({"data": "A longer and more detailed response"}))]),
    ];
    let hand = check(
        &agent,
        script,
        &expect![[r#"
        reply 1: 1.0 submit({"data":"Hi"})
        finished 1.0: error tool_failed: Data too short. Please provide more detail.
        closed 1
        reply 2: 2.0 submit({"data":"A longer and more detailed response"})
        finished 2.0: {"result":"A longer and more detailed response"}; output {"result":"A longer and more detailed response"}; patch [{"op":"add","path":"/last_submission","value":"A longer and more detailed response"}]
        closed 2
        ended completed: {"result":"A longer and more detailed response"}
    "#]],
    );
    let kept = json!({"last_submission": "A longer and more detailed response"});
    assert_eq!(**hand.session().state(), kept, "state changes of finish tools are kept");
}

#[derive(Deserialize, JsonSchema)]
struct RawData {
    raw_data: String,
    multiplier: Option<f64>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Processed {
    raw_data: String,
    multiplier: Option<f64>,
    processed_at: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Scored {
    result: String,
    score: f64,
}

#[test]
fn a_transform_turns_the_tools_result_into_the_agents_output() {
    let process = Tool::function("process_data", "Processes.", |input: RawData, _| async move {
        Ok(Processed {
            raw_data: input.raw_data,
            multiplier: input.multiplier,
            processed_at: "now".to_owned(),
        })
    })
    .output_schema::<Processed>()
    .finish_with_transform(|result: Processed| {
        Ok(Scored {
            result: result.raw_data.to_uppercase(),
            score: result.multiplier.unwrap_or(1.0),
        })
    });
    let agent = built(builder().tool(process).output::<Scored>());
    let script = vec![calls([("process_data", json!({"raw_data": "hello", "multiplier": 5}))])];
    check(
        &agent,
        script,
        &expect![[r#"
        reply 1: 1.0 process_data({"raw_data":"hello","multiplier":5})
        finished 1.0: {"raw_data":"hello","multiplier":5.0,"processed_at":"now"}; output {"result":"HELLO","score":5.0}
        closed 1
        ended completed: {"result":"HELLO","score":5.0}
    "#]],
    );
    check(
        &agent,
        vec![calls([("process_data", json!({"raw_data": "hello"}))])],
        &expect![[r#"
        reply 1: 1.0 process_data({"raw_data":"hello"})
        finished 1.0: {"raw_data":"hello","multiplier":null,"processed_at":"now"}; output {"result":"HELLO","score":1.0}
        closed 1
        ended completed: {"result":"HELLO","score":1.0}
    "#]],
    );
}

#[test]
fn a_transform_that_fails_fails_the_run() {
    let tool = Tool::function("submit", "Submits.", |input: Data, _| async move {
        Ok(json!({"data": input.data, "valid": false}))
    })
    .finish_with_transform(|output: serde_json::Value| {
        if output["valid"] == false {
            return Err(ToolError::new("Invalid output"));
        }
        Ok(json!({"result": output["data"]}))
    });
    check(
        &built(builder().tool(tool)),
        vec![calls([("submit", json!({"data": "x"}))])],
        &expect![[r#"
        reply 1: 1.0 submit({"data":"x"})
        finished 1.0: {"data":"x","valid":false}; invalid finish_transform_failed: the transform of `submit` failed: Invalid output
        closed 1
        ended failed: finish_transform_failed: the transform of `submit` failed: Invalid output
    "#]],
    );
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Review {
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    comments: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Comments {
    comments: String,
}

#[derive(Deserialize, JsonSchema)]
struct Reason {
    reason: String,
}

fn reviewer() -> AnyAgent {
    let approve =
        Tool::function("approve_with_comments", "Approves.", |input: Comments, _| async {
            Ok(Review { status: "approved".into(), comments: Some(input.comments), reason: None })
        });
    let reject = Tool::function("reject", "Rejects.", |input: Reason, _| async {
        Ok(Review { status: "rejected".into(), comments: None, reason: Some(input.reason) })
    });
    built(builder().tool(approve.finish_with()).tool(reject.finish_with()).output::<Review>())
}

#[test]
fn the_first_finish_tool_in_call_order_gives_the_output() {
    let approve = ("approve_with_comments", json!({"comments": "Good work!"}));
    let reject = ("reject", json!({"reason": "Missing data"}));
    let mut hand = Hand::new(&reviewer());
    hand.drive([calls([approve.clone(), reject.clone()])]);
    let output = hand.session().last_run().unwrap().output.clone().unwrap();
    assert_eq!(output.text(), r#"{"status":"approved","comments":"Good work!"}"#);

    let mut hand = Hand::new(&reviewer());
    hand.drive([calls([reject, approve])]);
    expect![[r#"
        reply 1: 1.0 reject({"reason":"Missing data"}), 1.1 approve_with_comments({"comments":"Good work!"})
        finished 1.0: {"status":"rejected","reason":"Missing data"}; output {"status":"rejected","reason":"Missing data"}
        finished 1.1: {"status":"approved","comments":"Good work!"}; output {"status":"approved","comments":"Good work!"}
        closed 1
        ended completed: {"status":"rejected","reason":"Missing data"}
    "#]]
    .assert_eq(&hand.story());
}

#[derive(Deserialize, JsonSchema)]
struct Answer {
    answer: String,
}

#[test]
fn the_integration_example_completes_and_finish_is_not_among_the_tools() {
    let tool = Tool::function("submit_answer", "Submits.", |input: Answer, _| async move {
        Ok(json!({"result": input.answer}))
    })
    .finish_with();
    let schema = crate::testing::result_schema();
    let agent = built(builder().tool(tool).output_schema(schema));
    assert_eq!(tool_names(&agent), ["submit_answer"]);
    let mut hand = Hand::new(&agent);
    hand.drive([calls([("submit_answer", json!({"answer": "The answer"}))])]);
    let run = hand.session().last_run().unwrap();
    assert_eq!(run.status, crate::session::RunStatus::Completed);
    assert_eq!(run.output, Some(json!({"result": "The answer"}).into()));
}
