//! Replies that the provider paused, and what follows them.

use helix_agents_core::step::StopReason;
use helix_agents_llm::ModelServer;
use serde_json::{Value, json};

use crate::support::mock::{Answer, Converse, Gemini, Messages, Mock, Part, Responses};
use crate::support::{Talk, content};

/// Returns a reply that is paused while the provider runs code.
fn paused() -> Answer {
    Answer::Pauses(vec![Part::Thinking("Hm."), Part::Text("Running."), Part::Search("srv_1")])
}

fn found() -> Answer {
    Answer::Says(vec![Part::Found("srv_1"), Part::Thinking("So."), Part::Text("It is 1.")])
}

fn done() -> Answer {
    Answer::Says(vec![Part::Text("Done.")])
}

async fn started(answers: Vec<Answer>) -> (Mock, Talk) {
    let mock = Mock::start(Messages::of("a"), answers).await;
    let mut talk = Talk::with("claude-fable-5-2");
    let response = talk.step(&mock.adapter()).await;
    assert_eq!(response.result.stop_reason(), Some(StopReason::Pause));
    (mock, talk)
}

fn last_message(mock: &Mock) -> Value {
    mock.last_body()["messages"].as_array().unwrap().last().unwrap().clone()
}

#[tokio::test]
async fn a_paused_reply_is_continued_in_its_container() {
    let (mock, mut talk) = started(vec![paused(), found(), done()]).await;
    let response = talk.step(&mock.adapter()).await;
    assert_eq!(content(&response), "It is 1.");
    let body = mock.last_body();
    assert_eq!(body["container"], "container_1");
    let reply = last_message(&mock);
    assert_eq!(reply["content"][2]["type"], "server_tool_use");
    assert_eq!(reply["content"].as_array().unwrap().len(), 3);
    // The request before has written this part of the cache.
    assert_eq!(body["messages"][0]["content"][0]["cache_control"], json!({"type": "ephemeral"}));
    assert!(!reply.to_string().contains("cache_control"), "{reply}");

    // The next turn has a new container, and reads all of the conversation.
    talk.say("Again.");
    talk.step(&mock.adapter()).await;
    assert_eq!(mock.last_body().get("container"), None);
    assert_eq!((mock.problems(), mock.dropped()), (vec![], vec![]));
}

#[tokio::test]
async fn a_reply_can_be_paused_repeatedly() {
    let again = Answer::Pauses(vec![Part::Found("srv_1"), Part::Search("srv_2")]);
    let last = Answer::Says(vec![Part::Found("srv_2"), Part::Text("It is 1.")]);
    let (mock, mut talk) = started(vec![paused(), again, last, done()]).await;
    talk.steps(2, &mock.adapter()).await;
    assert_eq!(mock.last_body()["container"], "container_2");
    talk.say("Again.");
    talk.step(&mock.adapter()).await;
    assert_eq!((mock.problems(), mock.dropped()), (vec![], vec![]));
}

#[tokio::test]
async fn the_results_of_calls_are_sent_to_the_waiting_container() {
    let waiting =
        Answer::Says(vec![Part::Thinking("Hm."), Part::Search("srv_1"), Part::Call("c1")]);
    let mock = Mock::start(Messages::of("a"), vec![waiting, found(), done()]).await;
    let mut talk = Talk::with("claude-fable-5-2");
    talk.steps(2, &mock.adapter()).await;
    assert_eq!(mock.last_body()["container"], "container_1");
    talk.say("Again.");
    talk.step(&mock.adapter()).await;
    assert_eq!((mock.problems(), mock.dropped()), (vec![], vec![]));
}

#[tokio::test]
async fn the_container_gets_the_settings_of_the_caller() {
    let skills = json!([{"type": "anthropic", "skill_id": "xlsx"}]);
    for (own, sent) in [
        (json!({"skills": skills}), json!({"skills": skills, "id": "container_1"})),
        (json!({"id": "container_1"}), json!({"id": "container_1"})),
        (json!("container_1"), json!("container_1")),
    ] {
        let (mock, mut talk) = started(vec![paused(), found()]).await;
        talk.option("container", own);
        talk.step(&mock.adapter()).await;
        assert_eq!(mock.last_body()["container"], sent);
        assert_eq!(mock.problems(), [""; 0]);
    }
}

#[tokio::test]
async fn a_message_may_follow_a_paused_reply() {
    let (mock, mut talk) = started(vec![paused(), done(), done()]).await;
    talk.say("Stop!");
    talk.step(&mock.adapter()).await;
    let body = mock.last_body();
    let reply = &body["messages"][1]["content"];
    let kinds: Vec<&Value> = reply.as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["thinking", "text"], "nothing continues the call");
    assert_eq!(body.get("container"), None);
    talk.say("Again.");
    talk.step(&mock.adapter()).await;
    assert_eq!((mock.problems(), mock.dropped()), (vec![], vec![]));
}

/// A paused reply can be reasoning and a call of the provider's tools only. Nothing of it is left.
#[tokio::test]
async fn a_message_may_follow_a_paused_reply_without_text() {
    let paused = Answer::Pauses(vec![Part::Thinking("Hm."), Part::Search("srv_1")]);
    let (mock, mut talk) = started(vec![paused, done()]).await;
    talk.say("Stop!");
    talk.step(&mock.adapter()).await;
    assert_eq!(mock.problems(), [""; 0]);
    assert_eq!(mock.last_body()["messages"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn another_model_starts_the_turn_again() {
    let (mock, mut talk) = started(vec![paused(), paused(), done(), done()]).await;
    // The second model pauses, too, and the third one replaces both.
    for model in ["claude-opus-5", "claude-sonnet-5"] {
        talk.model(model);
        talk.step(&mock.adapter()).await;
        let body = mock.last_body();
        assert_eq!(body["messages"].as_array().unwrap().len(), 1, "{body}");
        assert_eq!(body.get("container"), None);
    }
    // Afterwards, all replies are part of the conversation.
    talk.say("Again.");
    talk.model("claude-fable-5-2");
    talk.step(&mock.adapter()).await;
    assert_eq!(mock.problems(), [""; 0]);
    assert!(mock.last_body().to_string().contains("Running."));
}

#[tokio::test]
async fn reasoning_that_is_not_sent_needs_no_beta_feature() {
    let (mock, mut talk) = started(vec![paused(), done()]).await;
    talk.model("claude-opus-5-5");
    talk.step(&mock.adapter()).await;
    assert_eq!(mock.last_body().get("thinking"), None);
    assert_eq!(mock.server.requests()[1].header("anthropic-beta"), None);
}

#[tokio::test]
async fn another_provider_starts_the_turn_again() {
    for (other, model) in [
        (Mock::start(Messages::of("b"), vec![done(), done()]).await, "claude-fable-5-2"),
        (Mock::start(Responses::of("b"), vec![done(), done()]).await, "gpt-5.6"),
        (Mock::start(Gemini::of("b"), vec![done(), done()]).await, "gemini-3-pro"),
        (Mock::start(Converse::of("b"), vec![done(), done()]).await, "anthropic.claude-opus-5"),
    ] {
        let (_mock, mut talk) = started(vec![paused()]).await;
        let adapter = ModelServer::new(other.options("other")).unwrap();
        talk.ask.config.model = format!("other:{model}");
        let response = talk.step(&adapter).await;
        assert_eq!(content(&response), "Done.", "{model}: {:?}", other.problems());
        let body = other.last_body().to_string();
        assert!(!body.contains("srv_1") && !body.contains("container"), "{model}: {body}");
        talk.say("Again.");
        talk.step(&adapter).await;
        assert_eq!(other.problems(), [""; 0], "{model}");
        assert!(other.last_body().to_string().contains("Running."), "{model}");
    }
}
