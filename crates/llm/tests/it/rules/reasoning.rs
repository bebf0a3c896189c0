//! Reasoning in conversations: it goes back to the model that made it, as long as nothing before it has changed.

use helix_agents_core::llm::Effort;
use helix_agents_core::message::{Message, UserMessage};
use helix_agents_llm::ModelServer;
use serde_json::{Value, json};

use crate::support::mock::{
    Answer, BINDING, BINDING_BETA, Converse, Gemini, Messages, Mock, Part, Responses,
};
use crate::support::{Talk, failure};

/// Changes something before the reasoning.
type Change = fn(&mut Talk);

/// Returns a turn with two rounds of calls.
fn turn() -> Vec<Answer> {
    use Part::{Call, Redacted, Text, Thinking};
    vec![
        Answer::Says(vec![Thinking("Hm."), Text("Looking."), Call("c1")]),
        Answer::Says(vec![Redacted("secret"), Thinking("So."), Call("c2"), Call("c3")]),
        Answer::Says(vec![Thinking("I see."), Text("Done.")]),
    ]
}

/// Returns two turns.
fn two_turns() -> Vec<Answer> {
    turn().into_iter().chain(turn()).collect()
}

/// Returns a server of each API, with a model.
async fn servers(answers: fn() -> Vec<Answer>) -> Vec<(Mock, &'static str)> {
    vec![
        (Mock::start(Messages::of("a"), answers()).await, "claude-fable-5-2"),
        (Mock::start(Messages::of("a"), answers()).await, "claude-opus-4-6"),
        (Mock::start(Responses::of("a"), answers()).await, "gpt-5.6"),
        (Mock::start(Gemini::of("a"), answers()).await, "gemini-3-pro"),
        (Mock::start(Converse::of("a"), answers()).await, "us.anthropic.claude-fable-5-1-v1"),
    ]
}

fn header(mock: &Mock, request: usize) -> Option<String> {
    mock.server.requests()[request].header("anthropic-beta")
}

#[tokio::test]
async fn turns_with_reasoning_and_calls_break_no_rule() {
    for (mock, model) in servers(two_turns).await {
        let adapter = mock.adapter();
        let mut talk = Talk::with(model);
        for _ in 0..2 {
            for _ in 0..3 {
                talk.step(&adapter).await;
                assert_eq!((mock.problems(), mock.dropped()), (vec![], vec![]), "{model}");
            }
            talk.say("Again.");
        }
        assert_eq!(mock.server.requests().len(), 6, "{model}");
    }
}

#[tokio::test]
async fn a_fork_keeps_the_reasoning() {
    for (mock, model) in servers(two_turns).await {
        let adapter = mock.adapter();
        let mut talk = Talk::with(model);
        talk.steps(2, &adapter).await;
        let mut fork = talk.fork();
        fork.steps(1, &adapter).await;
        fork.say("In the fork.");
        fork.steps(1, &adapter).await;
        talk.steps(1, &adapter).await;
        assert_eq!((mock.problems(), mock.dropped()), (vec![], vec![]), "{model}");
    }
}

#[tokio::test]
async fn a_change_costs_the_reasoning_after_it_and_not_the_conversation() {
    let changes: [(&str, Change); 3] = [
        ("prompt", |talk| talk.prompt("Be verbose.")),
        ("tools", |talk| talk.tools(&["lookup", "search"])),
        ("message", |talk| {
            talk.ask.messages[0] = Message::User(UserMessage::new("Goodbye?")).into();
        }),
    ];
    for (name, change) in changes {
        for (mock, model) in servers(two_turns).await {
            let adapter = mock.adapter();
            let mut talk = Talk::with(model);
            talk.steps(3, &adapter).await;
            talk.say("Again.");
            change(&mut talk);
            talk.steps(2, &adapter).await;
            assert_eq!(mock.problems(), [""; 0], "{name} {model}");
            // The reasoning of the first turn, and not that of the second one.
            let dropped = [
                "messages.1.content.0",
                "messages.3.content.0",
                "messages.3.content.1",
                "messages.5.content.0",
            ];
            let expected = if model.contains("fable") { &dropped[..] } else { &[] };
            assert_eq!(mock.dropped(), expected, "{name} {model}");
        }
    }
}

#[tokio::test]
async fn the_api_is_asked_to_leave_reasoning_out_only_if_the_request_contains_some() {
    let mock = Mock::start(Messages::of("a"), two_turns()).await;
    let adapter = mock.adapter();
    let mut talk = Talk::with("claude-fable-5-2");
    talk.ask.config.thinking = Some(Effort::High.into());
    talk.step(&adapter).await;
    assert_eq!(mock.last_body()["thinking"], json!({"type": "adaptive"}));
    assert_eq!(header(&mock, 0), None);
    talk.step(&adapter).await;
    let binding = json!({"prefix_mismatch_behavior": "drop_block"});
    let thinking = json!({"type": "adaptive", "block_binding": binding});
    assert_eq!(mock.last_body()["thinking"], thinking);
    assert_eq!(header(&mock, 1).as_deref(), Some(BINDING_BETA));
    // This is the default of the model.
    talk.ask.config.thinking = None;
    talk.step(&adapter).await;
    assert_eq!(mock.last_body()["thinking"], thinking);
}

#[tokio::test]
async fn every_model_that_binds_reasoning_is_asked_to_drop_it() {
    for model in BINDING {
        let mock = Mock::start(Messages::of("a"), turn()).await;
        Talk::with(model).steps(2, &mock.adapter()).await;
        assert_eq!(header(&mock, 1).as_deref(), Some(BINDING_BETA), "{model}");
        let binding = json!({"prefix_mismatch_behavior": "drop_block"});
        assert_eq!(mock.last_body()["thinking"]["block_binding"], binding, "{model}");
        assert_eq!(mock.problems(), [""; 0], "{model}");
    }
}

#[tokio::test]
async fn models_that_bind_no_reasoning_are_asked_nothing() {
    for model in ["claude-opus-5", "claude-mythos-5-1", "claude-sonnet-4-5", "unknown"] {
        let mock = Mock::start(Messages::of("a"), turn()).await;
        Talk::with(model).steps(3, &mock.adapter()).await;
        assert_eq!(header(&mock, 2), None, "{model}");
        assert_eq!(mock.last_body().get("thinking"), None, "{model}");
        assert_eq!(mock.problems(), [""; 0], "{model}");
    }
}

#[tokio::test]
async fn beta_features_of_the_caller_are_kept() {
    for (own, sent) in [
        ("files-api-2025-04-14", format!("files-api-2025-04-14,{BINDING_BETA}")),
        (BINDING_BETA, BINDING_BETA.to_owned()),
        ("", BINDING_BETA.to_owned()),
    ] {
        let mock = Mock::start(Messages::of("a"), turn()).await;
        let mut talk = Talk::with("claude-haiku-5-5");
        talk.ask.config.headers.insert("Anthropic-Beta".to_owned(), own.to_owned());
        talk.steps(2, &mock.adapter()).await;
        assert_eq!(header(&mock, 0).as_deref(), Some(own));
        assert_eq!(header(&mock, 1).as_deref(), Some(&*sent));
        assert_eq!(mock.problems(), [""; 0]);
    }
}

#[tokio::test]
async fn the_choice_of_the_caller_takes_precedence() {
    let mock = Mock::start(Messages::of("a"), turn()).await;
    let mut talk = Talk::with("claude-opus-5-5");
    let binding = json!({"prefix_mismatch_behavior": "error"});
    let thinking = json!({"type": "adaptive", "block_binding": binding});
    talk.option("thinking", thinking.clone());
    talk.steps(2, &mock.adapter()).await;
    assert_eq!(mock.last_body()["thinking"], thinking);
    assert_eq!(header(&mock, 0).as_deref(), Some(BINDING_BETA));
    talk.prompt("Be verbose.");
    let response = talk.ask.answer(&mock.adapter()).await;
    assert_eq!(failure(&response).0.code, "provider_rejected");
    assert_eq!(mock.problems().len(), 1, "{:?}", mock.problems());

    // Other settings of the caller are completed, unless they turn reasoning off.
    for (own, binds) in [
        (json!({"type": "adaptive", "display": "updates"}), true),
        (json!({"type": "between_tools"}), false),
    ] {
        talk.option("thinking", own);
        let _failed = talk.ask.answer(&mock.adapter()).await;
        assert_eq!(mock.last_body()["thinking"].get("block_binding").is_some(), binds);
    }
}

#[tokio::test]
async fn settings_of_the_vendor_are_kept_on_bedrock() {
    let mock = Mock::start(Converse::of("a"), turn()).await;
    let mut talk = Talk::with("anthropic.claude-opus-5-5");
    let fields = json!({"anthropic_beta": ["other"], "output_config": {"effort": "high"}});
    talk.option("additionalModelRequestFields", fields.clone());
    talk.step(&mock.adapter()).await;
    assert_eq!(mock.last_body()["additionalModelRequestFields"], fields);
    talk.step(&mock.adapter()).await;
    let sent = mock.last_body()["additionalModelRequestFields"].clone();
    assert_eq!(sent["output_config"], fields["output_config"]);
    assert_eq!(sent["anthropic_beta"], json!(["other", BINDING_BETA]));
    let binding = json!({"prefix_mismatch_behavior": "drop_block"});
    assert_eq!(sent["thinking"], json!({"type": "adaptive", "block_binding": binding}));
}

#[tokio::test]
async fn the_model_of_another_provider_gets_the_conversation_without_reasoning() {
    for (first, first_model) in servers(turn).await {
        for (second, model) in foreign_servers().await {
            let mut talk = Talk::with(first_model);
            talk.steps(2, &first.adapter()).await;
            let other = ModelServer::new(second.options("other")).unwrap();
            talk.ask.config.model = format!("other:{model}");
            talk.steps(3, &other).await;
            assert_eq!(second.problems(), [""; 0], "{first_model} to {model}");
            let body = second.last_body().to_string();
            assert!(body.contains("Looking."), "{first_model} to {model}: {body}");
            assert!(!body.contains("\"a|"), "a signature of the first provider: {body}");
            // The first provider reads the replies of the second one in the same way.
            talk.say("Again.");
            talk.ask.config.model = format!("local:{first_model}");
            let (again, _) =
                servers(turn).await.into_iter().find(|server| server.1 == first_model).unwrap();
            talk.steps(1, &again.adapter()).await;
            assert_eq!(again.problems(), [""; 0], "{model} to {first_model}");
        }
    }
}

/// Returns servers of another account.
async fn foreign_servers() -> Vec<(Mock, &'static str)> {
    vec![
        (Mock::start(Messages::of("b"), turn()).await, "claude-fable-5-2"),
        (Mock::start(Responses::of("b"), turn()).await, "gpt-5.6"),
        (Mock::start(Gemini::of("b"), turn()).await, "gemini-3-pro"),
        (Mock::start(Converse::of("b"), turn()).await, "us.anthropic.claude-fable-5-1-v1"),
    ]
}

#[tokio::test]
async fn another_model_of_the_provider_continues_the_conversation() {
    let models = ["claude-fable-5-2", "claude-opus-5", "claude-fable-5-2"];
    let mock = Mock::start(Messages::of("a"), two_turns()).await;
    let mut talk = Talk::with(models[0]);
    for model in models {
        talk.model(model);
        talk.steps(1, &mock.adapter()).await;
    }
    assert_eq!(mock.problems(), [""; 0]);
    // The API leaves out the reasoning of the other model in silence.
    assert_eq!(mock.dropped(), ["messages.3.content.0", "messages.3.content.1"]);
}

#[tokio::test]
async fn reasoning_of_a_reply_that_was_cut_off_is_not_its_end() {
    let answers = vec![
        Answer::Says(vec![Part::Text("Well."), Part::Thinking("Hm.")]),
        Answer::Says(vec![Part::Redacted("secret")]),
        Answer::Says(vec![Part::Thinking("Hm."), Part::Text(" ")]),
        Answer::Says(vec![Part::Text("Done.")]),
    ];
    let mock = Mock::start(Messages::of("a"), answers).await;
    let mut talk = Talk::with("claude-opus-5");
    for _ in 0..4 {
        talk.step(&mock.adapter()).await;
        talk.say("Go on.");
    }
    assert_eq!(mock.problems(), [""; 0]);
    let roles: Vec<Value> = mock.last_body()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
}

#[tokio::test]
async fn encrypted_reasoning_of_converse_is_put_together_from_its_pieces() {
    let mock = Mock::start(Converse::of("a"), turn()).await;
    let mut talk = Talk::with("anthropic.claude-opus-5-5");
    talk.steps(3, &mock.adapter()).await;
    assert_eq!(mock.problems(), [""; 0]);
    let body = mock.last_body().to_string();
    assert_eq!(body.matches("redactedContent").count(), 1, "{body}");
}
