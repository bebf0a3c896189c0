//! Request bodies and headers.

use std::sync::Arc;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::id::CallId;
use helix_agents_core::llm::{LlmAdapter as _, LlmConfig};
use helix_agents_core::message::{
    Arguments, AssistantMessage, Media, MediaSource, Message, SharedMessage, ToolCall,
    ToolResultMessage, UserMessage,
};
use helix_agents_core::tool::ToolSet;
use helix_agents_llm::{ApiFormat, ModelServer, ModelServerOptions, OutputFormat, ServerProfile};
use serde_json::{Value, json};

use crate::support::{Ask, Reply, Server, adapter, finish, options, stream, text, tool};

fn reply() -> Reply {
    Reply::events(stream([text("Hi."), finish("stop")]))
}

/// Makes the call against a server with this profile, and returns the request body.
async fn sent(ask: &Ask, profile: ServerProfile) -> Value {
    let server = Server::start(vec![reply()]).await;
    let adapter = ModelServer::new(options(&server).with_profile(profile)).unwrap();
    ask.answer(&adapter).await;
    server.only_body()
}

fn assistant(content: Option<&str>, calls: Vec<ToolCall>) -> SharedMessage {
    let message = AssistantMessage {
        content: content.map(str::to_owned),
        tool_calls: calls,
        thinking: None,
        layout: None,
    };
    Message::Assistant(message.into()).into()
}

fn call(provider_id: Option<&str>, arguments: Arguments) -> ToolCall {
    ToolCall {
        id: CallId::new(1, 0),
        provider_id: provider_id.map(Into::into),
        name: "add".into(),
        arguments,
    }
}

#[tokio::test]
async fn a_plain_request_holds_model_messages_and_the_stream_flags() {
    let server = Server::start(vec![reply()]).await;
    Ask::default().answer(&adapter(&server)).await;
    let request = &server.requests()[0];
    assert!(request.head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{}", request.head);
    assert_eq!(request.header("authorization").unwrap(), "Bearer key-of-the-tests");
    assert_eq!(request.header("content-type").unwrap(), "application/json");
    assert!(request.header("user-agent").unwrap().starts_with("helix-agents/"));
    assert_eq!(
        String::from_utf8_lossy(&request.body),
        concat!(
            r#"{"model":"m1","stream":true,"stream_options":{"include_usage":true},"messages":["#,
            r#"{"role":"system","content":"Be brief."},{"role":"user","content":"Hello?"}]}"#
        )
    );
}

#[tokio::test]
async fn every_setting_has_its_field() {
    let mut config = LlmConfig::new("m1");
    config.max_output_tokens = Some(64);
    config.temperature = Some(0.5);
    config.top_p = Some(0.9);
    config.top_k = Some(40);
    config.presence_penalty = Some(0.1);
    config.frequency_penalty = Some(0.2);
    config.stop_sequences = vec!["END".to_owned()];
    config.seed = Some(7);
    let mut ask = Ask { config, ..Ask::default() };
    let body = sent(&ask, ServerProfile::compatible()).await;
    let expected = json!({
        "model": "m1", "stream": true, "stream_options": {"include_usage": true},
        "max_tokens": 64, "temperature": 0.5, "top_p": 0.9, "top_k": 40,
        "presence_penalty": 0.1, "frequency_penalty": 0.2, "seed": 7, "stop": ["END"],
        "messages": body["messages"],
    });
    assert_eq!(body, expected);

    ask.config.top_k = None;
    let body = sent(&ask, ServerProfile::openai()).await;
    assert_eq!(body["max_completion_tokens"], 64);
    assert_eq!(body.get("max_tokens"), None);
}

#[tokio::test]
async fn a_conversation_keeps_ids_arguments_and_order() {
    let result = ToolResultMessage {
        tool_call_id: CallId::new(1, 0),
        provider_id: Some("call_a".into()),
        tool_name: "add".into(),
        content: r#"{"sum":3}"#.to_owned(),
        attachments: Vec::new(),
        failed: false,
    };
    let ask = Ask {
        messages: vec![
            Message::User(UserMessage::new("1 + 2 \"quoted\"\n🦀")).into(),
            assistant(None, vec![call(Some("call_a"), json!({"a": 1, "b": 2}).into())]),
            Message::Tool(result).into(),
            assistant(
                Some("Let me see."),
                vec![call(None, Arguments::Malformed("{\"a\":".into()))],
            ),
            assistant(Some("3"), vec![]),
            assistant(None, vec![]),
        ],
        ..Ask::default()
    };
    let body = sent(&ask, ServerProfile::openai()).await;
    let function = |id: &str, arguments: &str| json!([{"id": id, "type": "function", "function": {"name": "add", "arguments": arguments}}]);
    let expected = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "1 + 2 \"quoted\"\n🦀"},
        {"role": "assistant", "content": null, "tool_calls": function("call_a", r#"{"a":1,"b":2}"#)},
        {"role": "tool", "tool_call_id": "call_a", "content": "{\"sum\":3}"},
        {"role": "assistant", "content": "Let me see.", "tool_calls": function("1.0", "{}")},
        {"role": "assistant", "content": "3"},
        {"role": "assistant", "content": ""},
    ]);
    assert_eq!(body["messages"], expected);

    // The same messages, for a server that rejects `null`.
    let body = sent(&ask, ServerProfile::llama_cpp_python()).await;
    assert_eq!(body["messages"][2]["content"], "");
    assert_eq!(body["messages"][4]["content"], "Let me see.");
}

#[tokio::test]
async fn a_message_is_encoded_once_for_all_steps() {
    let server = Server::start(vec![reply(), reply()]).await;
    let adapter = adapter(&server);
    let ask = Ask::default();
    ask.answer(&adapter).await;
    let kept = |message: &SharedMessage| {
        let bytes = message.encoded("openai_chat.message", |_, _| panic!("encoded again"));
        bytes.as_ptr()
    };
    let before = kept(&ask.messages[0]);
    ask.answer(&adapter).await;
    assert_eq!(kept(&ask.messages[0]), before);
    let requests = server.requests();
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(server.connections(), 1, "the connection was not kept");
}

#[test]
fn consecutive_calls_share_a_connection() {
    let threads = |builder: &mut tokio::runtime::Builder| builder.enable_all().build().unwrap();
    // On the caller's thread, the server would give the connection time to return to the pool.
    let elsewhere = threads(tokio::runtime::Builder::new_multi_thread().worker_threads(1));
    let replies = (0..20).map(|_| reply().at_once()).collect();
    let server = elsewhere.block_on(Server::start(replies));
    let adapter = adapter(&server);
    let calls = async move {
        for _ in 0..20 {
            Ask::default().answer(&adapter).await;
        }
    };
    // The calls run as a task next to the connection's task, as runs do.
    let here = threads(&mut tokio::runtime::Builder::new_current_thread());
    here.block_on(async { tokio::spawn(calls).await.unwrap() });
    assert_eq!(server.connections(), 1);
    elsewhere.shutdown_background();
}

#[tokio::test]
async fn tools_are_sent_and_may_be_forced() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "integer", "format": "int64"}, "b": {"type": ["integer", "null"]}},
        "required": ["a"],
    });
    let open = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let tools = ToolSet::new(vec![
        tool("add", schema.clone(), true),
        tool("loose", schema.clone(), false),
        tool("open", open.clone(), true),
    ]);
    let ask = Ask { tools: Arc::new(tools), force: Some("add"), ..Ask::default() };

    let body = sent(&ask, ServerProfile::openai()).await;
    let strict = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": ["integer", "null"]}},
        "required": ["a", "b"],
        "additionalProperties": false,
    });
    let function = |name: &str, parameters: &Value| json!({"name": name, "description": format!("Runs {name}."), "parameters": parameters});
    let mut add = function("add", &strict);
    add["strict"] = true.into();
    assert_eq!(body["tools"][0], json!({"type": "function", "function": add}));
    assert_eq!(body["tools"][1]["function"], function("loose", &schema));
    // An optional property that must not be null has no strict form, so the hint is dropped.
    assert_eq!(body["tools"][2]["function"], function("open", &open));
    assert_eq!(body["tool_choice"], json!({"type": "function", "function": {"name": "add"}}));

    let body = sent(&ask, ServerProfile::compatible()).await;
    assert_eq!(body["tools"][0]["function"], function("add", &schema));
    let free = Ask { force: None, ..ask };
    let body = sent(&free, ServerProfile::compatible()).await;
    assert_eq!(body.get("tool_choice"), None);
}

#[tokio::test]
async fn a_server_that_cannot_stream_tool_choice_gets_an_explicit_choice_and_no_stream() {
    let tools = ToolSet::new(vec![tool("add", json!({"type": "object"}), false)]);
    let free = Ask { tools: Arc::new(tools), ..Ask::default() };
    let body = sent(&free, ServerProfile::llama_cpp_python()).await;
    assert_eq!((&body["tool_choice"], &body["stream"]), (&json!("auto"), &json!(false)));
    assert_eq!(body.get("stream_options"), None);

    let forced = Ask { force: Some("add"), ..free };
    let body = sent(&forced, ServerProfile::llama_cpp_python()).await;
    assert_eq!((&body["tool_choice"]["type"], &body["stream"]), (&json!("function"), &json!(true)));

    let plain = sent(&Ask::default(), ServerProfile::llama_cpp_python()).await;
    assert_eq!((plain.get("tool_choice"), &plain["stream"]), (None, &json!(true)));
}

#[tokio::test]
async fn an_output_schema_becomes_the_response_format_of_the_server() {
    let schema = json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    });
    let mut ask = Ask { output_schema: Some(schema.clone()), ..Ask::default() };
    let mut strict = schema.clone();
    strict["additionalProperties"] = false.into();

    let body = sent(&ask, ServerProfile::compatible()).await;
    let format = json!({"name": "output", "schema": strict, "strict": true});
    assert_eq!(body["response_format"], json!({"type": "json_schema", "json_schema": format}));

    let body = sent(&ask, ServerProfile::llama_cpp_python()).await;
    assert_eq!(body["response_format"], json!({"type": "json_object", "schema": schema}));

    let open = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    ask.output_schema = Some(open.clone());
    let body = sent(&ask, ServerProfile::openai()).await;
    let format = json!({"name": "output", "schema": open, "strict": false});
    assert_eq!(body["response_format"], json!({"type": "json_schema", "json_schema": format}));
}

#[tokio::test]
async fn provider_options_are_passed_on_unchanged_and_take_precedence() {
    let mut ask = Ask::default();
    ask.config.temperature = Some(0.5);
    let options = [
        ("openai", json!({"reasoning_effort": "high", "logit_bias": {"1": -2.5}, "user": "u"})),
        ("local", json!({"temperature": 1, "stream_options": {"x": 1}, "user": "mine"})),
        ("other", json!({"ignored": true})),
    ];
    for (name, value) in options {
        let map = value.as_object().unwrap().clone();
        ask.config.provider_options.insert(name.to_owned(), map);
    }
    let server = Server::start(vec![reply()]).await;
    ask.answer(&adapter(&server)).await;
    let raw = String::from_utf8(server.requests()[0].body.clone()).unwrap();
    for key in ["temperature", "stream_options", "user"] {
        assert_eq!(raw.matches(&format!("\"{key}\":")).count(), 1, "{key} in {raw}");
    }
    let body = server.only_body();
    assert_eq!(body["temperature"], 1);
    assert_eq!(body["stream_options"], json!({"x": 1}));
    assert_eq!(body["reasoning_effort"], "high");
    assert_eq!(body["logit_bias"], json!({"1": -2.5}));
    assert_eq!(body["user"], "mine");
    assert_eq!(body.get("ignored"), None);
}

#[tokio::test]
async fn configured_headers_are_added_and_take_precedence() {
    let mut ask = Ask::default();
    ask.config.headers.insert("X-Team".to_owned(), "red".to_owned());
    ask.config.headers.insert("Authorization".to_owned(), "Bearer other".to_owned());
    let server = Server::start(vec![reply()]).await;
    ask.answer(&adapter(&server)).await;
    let request = &server.requests()[0];
    assert_eq!(request.header("x-team").unwrap(), "red");
    assert_eq!(request.header("authorization").unwrap(), "Bearer other");
}

#[tokio::test]
async fn a_server_without_streams_or_counts_is_not_asked_for_them() {
    let mut profile = ServerProfile::compatible();
    profile.stream_usage = false;
    let body = sent(&Ask::default(), profile.clone()).await;
    assert_eq!(body.get("stream_options"), None);
    profile.stream = false;
    profile.stream_usage = true;
    let body = sent(&Ask::default(), profile).await;
    assert_eq!(body["stream"], false);
    assert_eq!(body.get("stream_options"), None);
}

#[test]
fn the_address_selects_the_api() {
    let format = |url| ModelServerOptions::new("p", url).format;
    assert_eq!(format("https://api.openai.com/v1"), ApiFormat::OpenAiResponses);
    assert_eq!(format("https://eu.api.openai.com/v1"), ApiFormat::OpenAiResponses);
    assert_eq!(format("https://api.anthropic.com"), ApiFormat::AnthropicMessages);
    let gemini = format("https://generativelanguage.googleapis.com/v1beta");
    assert_eq!(gemini, ApiFormat::GeminiGenerate);
    let compatible = ApiFormat::ChatCompletions(ServerProfile::compatible());
    assert_eq!(format("https://api.openai.com.evil.example/v1"), compatible);
    assert_eq!(format("http://127.0.0.1:8080/v1"), compatible);
    assert!(format("https://api.deepseek.com/v1").profile().unwrap().reasoning_content);
}

#[test]
fn unsupported_settings_are_rejected_before_a_run() {
    #[track_caller]
    fn check(profile: ServerProfile, change: impl FnOnce(&mut LlmConfig), word: &str) {
        let options =
            ModelServerOptions::new("p", "https://api.openai.com/v1").with_profile(profile);
        let adapter = ModelServer::new(options).unwrap();
        let mut config = LlmConfig::new("m");
        adapter.check(&config).unwrap();
        change(&mut config);
        let error = adapter.check(&config).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ConfigInvalid);
        assert!(error.message().contains(word), "{error}");
    }
    let openai = ServerProfile::openai;
    check(openai(), |config| config.top_k = Some(1), "top_k");
    check(openai(), |config| config.temperature = Some(f64::NAN), "temperature");
    let header = |name: &'static str, value: &'static str| {
        move |config: &mut LlmConfig| drop(config.headers.insert(name.to_owned(), value.to_owned()))
    };
    check(openai(), header("not a header", "x"), "not a header");
    check(openai(), header("x-a", "line\nbreak"), "x-a");
    check(openai(), header("Content-Length", "3"), "Content-Length");
    let option = |name: &'static str, key: &'static str| {
        move |config: &mut LlmConfig| {
            let options = config.provider_options.entry(name.to_owned()).or_default();
            drop(options.insert(key.to_owned(), json!([])));
        }
    };
    for key in ["messages", "model", "tools", "stream"] {
        check(openai(), option("p", key), key);
        check(openai(), option("openai", key), key);
    }
    let mut bare = openai();
    bare.output_format = OutputFormat::Unsupported;
    check(bare, |config| config.native_output = true, "native_output");
}

#[test]
fn a_header_with_a_key_needs_encryption_or_permission() {
    let mut config = LlmConfig::new("m");
    let open = ModelServerOptions::new("p", "http://10.0.0.1/v1");
    for (name, is_secret) in [
        ("X-Team", false),
        ("X-Author", false),
        ("Idempotency-Key", false),
        ("authorization", true),
        ("Proxy-Authorization", true),
        ("cf-aig-authorization", true),
        ("Cookie", true),
        ("Api-Key", true),
        ("apikey", true),
        ("x-portkey-api-key", true),
        ("Ocp-Apim-Subscription-Key", true),
        ("X-Access-Key", true),
        ("X-Auth-Key", true),
        ("Helicone-Auth", true),
        ("x-auth-token", true),
        ("X-Amz-Security-Token", true),
        ("x-client-secret", true),
    ] {
        config.headers = [(name.to_owned(), "x".to_owned())].into();
        let checked = ModelServer::new(open.clone()).unwrap().check(&config);
        assert_eq!(checked.is_err(), is_secret, "{name}");
        ModelServer::new(open.clone().with_allow_http()).unwrap().check(&config).unwrap();
    }
}

#[tokio::test]
async fn files_of_a_message_are_parts_of_its_content() {
    let image = Media::from_bytes("image/png", b"PNG");
    let page = Media::from_url("image/jpeg", "https://example.com/a.jpg");
    let report = Media::from_bytes("application/pdf", b"PDF").name("a.pdf");
    let uploaded = MediaSource::File { provider: "openai".into(), id: "file-1".into() };
    let uploaded = Media::new("application/pdf", uploaded);
    let message = UserMessage::new("Compare ").attach(image).text(" and ").attach(page);
    let message = message.attach(report).attach(uploaded);
    let ask = Ask { messages: vec![Message::User(message).into()], ..Ask::default() };
    let body = sent(&ask, ServerProfile::openai()).await;
    let expected = json!([
        {"type": "text", "text": "Compare "},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,UE5H"}},
        {"type": "text", "text": " and "},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.jpg"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,UERG"}},
        {"type": "file", "file": {"file_id": "file-1"}},
    ]);
    assert_eq!(body["messages"][1]["content"], expected);
}

#[tokio::test]
async fn files_of_a_tool_result_are_mentioned() {
    let result = ToolResultMessage {
        tool_call_id: CallId::new(1, 0),
        provider_id: Some("call_a".into()),
        tool_name: "add".into(),
        content: "3".to_owned(),
        attachments: vec![Media::from_bytes("image/png", b"PNG")],
        failed: false,
    };
    let ask = Ask {
        messages: vec![
            assistant(None, vec![call(Some("call_a"), json!({}).into())]),
            Message::Tool(result).into(),
        ],
        ..Ask::default()
    };
    let body = sent(&ask, ServerProfile::openai()).await;
    let content = &body["messages"][2]["content"];
    assert_eq!(content[0], json!({"type": "text", "text": "3"}));
    assert!(content[1]["text"].as_str().unwrap().contains("image/png"), "{content}");
}
