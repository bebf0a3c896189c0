//! Exchanges with real kinds of servers, as those servers are known to behave. The adapter must
//! make the recorded request and read the recorded reply as stated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helix_agents_core::id::CallId;
use helix_agents_core::json::Json;
use helix_agents_core::llm::LlmConfig;
use helix_agents_core::message::{
    Arguments, AssistantMessage, Message, ToolCall, ToolResultMessage, UserMessage,
};
use helix_agents_core::step::StopReason;
use helix_agents_core::tool::{ToolSet, ToolSpec};
use helix_agents_llm::{ModelServer, ServerProfile};
use serde::Deserialize;
use serde_json::Value;

use crate::support::{Ask, Recorder, Reply, Server, options};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cassette {
    about: String,
    profile: String,
    request: Value,
    response: Response,
    expect: Expect,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Response {
    status: u16,
    content_type: String,
    /// The data of each event, or a comment.
    #[serde(default)]
    events: Vec<String>,
    #[serde(default)]
    body: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    sink: Vec<String>,
    stop_reason: StopReason,
    /// Input, output, cached and reasoning tokens.
    usage: [u64; 4],
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cassettes")
}

async fn play(name: &str) {
    let path = folder().join(format!("openai_chat/{name}.json"));
    let cassette: Cassette = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(!cassette.about.is_empty());
    let server = Server::start(vec![cassette.response.reply()]).await;
    let profile = match cassette.profile.as_str() {
        "openai" => ServerProfile::openai(),
        "compatible" => ServerProfile::compatible(),
        "llama_cpp_python" => ServerProfile::llama_cpp_python(),
        other => panic!("no profile {other}"),
    };
    let adapter = ModelServer::new(options(&server).with_profile(profile)).unwrap();
    let ask = ask(&cassette.request);
    let response = ask.answer(&adapter).await;

    assert_eq!(server.only_body(), cassette.request);
    assert_eq!(ask.sink.lines(), cassette.expect.sink);
    assert_eq!(response.result.stop_reason(), Some(cassette.expect.stop_reason));
    let usage = response.usage;
    let usage =
        [usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens];
    assert_eq!(usage, cassette.expect.usage);
}

impl Response {
    fn reply(&self) -> Reply {
        if self.status != 200 {
            return Reply::status(self.status, "", &self.body);
        }
        let event = |event: &String| match event.strip_prefix(':') {
            Some(_) => format!("{event}\n\n"),
            None => format!("data: {event}\n\n"),
        };
        Reply::head(&self.content_type).pieces(self.events.iter().map(event)).end()
    }
}

/// Returns the call that makes such a request.
fn ask(request: &Value) -> Ask {
    let messages = request["messages"].as_array().unwrap();
    let tools = request["tools"].as_array().into_iter().flatten().map(spec);
    let choice = request["tool_choice"]["function"]["name"].as_str();
    let max_tokens = request.get("max_tokens").or_else(|| request.get("max_completion_tokens"));
    let mut config = LlmConfig::new(request["model"].as_str().unwrap());
    config.max_output_tokens = max_tokens.map(|limit| limit.as_u64().unwrap().try_into().unwrap());
    config.temperature = request["temperature"].as_f64();
    if let Some(effort) = request.get("reasoning_effort") {
        let options = [("reasoning_effort".to_owned(), effort.clone())];
        config.provider_options =
            BTreeMap::from([("openai".to_owned(), options.into_iter().collect())]);
    }
    Ask {
        prompt: message(&messages[0]).into(),
        messages: messages[1..].iter().map(|value| message(value).into()).collect(),
        tools: Arc::new(ToolSet::new(tools.collect())),
        force: choice.map(|choice| &*choice.to_owned().leak()),
        output_schema: request.pointer("/response_format/json_schema/schema").cloned(),
        config,
        sink: Recorder::default(),
        ..Ask::default()
    }
}

fn spec(tool: &Value) -> ToolSpec {
    let function = &tool["function"];
    ToolSpec::new(
        function["name"].as_str().unwrap(),
        function["description"].as_str().unwrap(),
        Json::from(function["parameters"].clone()),
    )
    .strict(function["strict"] == true)
}

fn message(wire: &Value) -> Message {
    let content = wire["content"].as_str().map(str::to_owned);
    match wire["role"].as_str().unwrap() {
        "system" => Message::System { content: content.unwrap() },
        "user" => Message::User(UserMessage::new(content.unwrap())),
        "tool" => Message::Tool(ToolResultMessage {
            tool_call_id: CallId::new(1, 0),
            provider_id: wire["tool_call_id"].as_str().map(Into::into),
            tool_name: String::new(),
            content: content.unwrap(),
            attachments: Vec::new(),
            failed: false,
        }),
        "assistant" => {
            let calls = wire["tool_calls"].as_array().into_iter().flatten();
            let calls = calls.map(|call| ToolCall {
                id: CallId::new(1, 0),
                provider_id: call["id"].as_str().map(Into::into),
                name: call["function"]["name"].as_str().unwrap().into(),
                arguments: Arguments::parse(call["function"]["arguments"].as_str().unwrap()),
            });
            let message = AssistantMessage {
                content: content.filter(|text| !text.is_empty()),
                tool_calls: calls.collect(),
                thinking: None,
                layout: None,
            };
            Message::Assistant(message.into())
        }
        other => panic!("no role {other}"),
    }
}

macro_rules! cassettes {
    ($($name:ident),+ $(,)?) => {
        const NAMES: &[&str] = &[$(stringify!($name)),+];
        $(
            #[tokio::test]
            async fn $name() {
                play(stringify!($name)).await;
            }
        )+
    };
}

cassettes! {
    answer_after_results,
    context_too_long,
    llama_cpp_python_call,
    parallel_calls,
    reasoning_content,
    refusal,
    structured_output,
    truncated_call,
}

#[test]
fn every_cassette_is_played() {
    let files = std::fs::read_dir(folder().join("openai_chat")).unwrap();
    let names =
        files.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert_eq!(names, NAMES);
}

/// Returns the parts of a text that look like secrets.
fn secrets(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let words = ["authorization", "bearer ", "api-key", "api_key", "cookie", "organization", "@"];
    let mut found: Vec<String> =
        words.iter().filter(|word| lower.contains(**word)).map(|word| (*word).to_owned()).collect();
    let tokens = text
        .split(|character: char| !character.is_ascii_alphanumeric() && !"-_".contains(character));
    for token in tokens {
        let is_prefixed = ["sk-", "sk_", "org-", "req_", "gsk_", "xai-", "AIza", "hf_", "ghp_"]
            .iter()
            .any(|prefix| token.starts_with(prefix));
        let digits = token.bytes().filter(u8::is_ascii_digit).count();
        if is_prefixed || (token.len() >= 32 && digits >= 4) {
            found.push(token.to_owned());
        }
    }
    found
}

#[test]
fn cassettes_hold_no_secrets() {
    for entry in std::fs::read_dir(folder().join("openai_chat")).unwrap() {
        let path = entry.unwrap().path();
        let found = secrets(&std::fs::read_to_string(&path).unwrap());
        assert_eq!(found, [""; 0], "{}", path.display());
    }
}

#[test]
fn the_secret_scan_finds_secrets() {
    for planted in [
        "\"Authorization\": \"x\"",
        "key sk-abc123",
        "org-4711",
        "a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6",
        "me@example.com",
        "Set-Cookie: a=b",
    ] {
        assert!(!secrets(planted).is_empty(), "{planted}");
    }
    assert!(secrets("call_1 chatcmpl-1 fp_1").is_empty());
}
