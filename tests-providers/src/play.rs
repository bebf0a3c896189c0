//! Playing a reply: a server on a loopback port sends it to an adapter.

use std::sync::Arc;

use anyhow::Result;
use helix_agents_core::error::Error;
use helix_agents_core::id::SessionId;
use helix_agents_core::llm::{
    LlmAdapter as _, LlmConfig, LlmRequest, LlmResponse, LlmSink, NoSink, ToolChoice,
};
use helix_agents_core::message::{Message, SharedMessage, UserMessage};
use helix_agents_core::schema::Schema;
use helix_agents_core::tool::ToolSet;
use helix_agents_llm::{ApiFormat, ModelServer, ModelServerOptions, ServerProfile};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::case::{Exchange, Reply};
use crate::variant::Variant;

/// Returns the API with this name in recordings, if there is an adapter for it.
pub(crate) fn format(api: &str) -> Option<ApiFormat> {
    match api {
        "chat" => Some(ApiFormat::ChatCompletions(ServerProfile::compatible())),
        "responses" => Some(ApiFormat::OpenAiResponses),
        "generate" => Some(ApiFormat::GeminiGenerate),
        "messages" => Some(ApiFormat::AnthropicMessages),
        "converse" => Some(ApiFormat::BedrockConverse),
        _ => None,
    }
}

/// Sends a reply to an adapter, and returns what the adapter read.
pub(crate) async fn play(
    format: &ApiFormat,
    exchange: &Exchange,
    variant: &Variant,
) -> Result<LlmResponse> {
    let body = variant.body(&exchange.reply);
    let content_type = match exchange.reply {
        Reply::Document(_) => "application/json",
        Reply::Binary(_) => "application/vnd.amazon.eventstream",
        _ => "text/event-stream",
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let options = ModelServerOptions::new(&exchange.provider, &url).with_format(format.clone());
    let server = ModelServer::new(options)?;
    let serving = serve(&listener, exchange.status, content_type, variant.pieces(&body));
    let messages = [question()];
    let call_options = CallOptions::recorded(exchange);
    let calling = call(&server, &messages, &call_options, &NoSink);
    let mut calling = std::pin::pin!(calling);
    // The call may fail before it makes a request.
    tokio::select! {
        response = &mut calling => Ok(response?),
        served = serving => {
            served?;
            Ok(calling.await?)
        }
    }
}

/// The options of a call.
#[derive(Debug, Default)]
pub(crate) struct CallOptions {
    pub(crate) config: LlmConfig,
    pub(crate) tools: Arc<ToolSet>,
    /// The tool that the model must call.
    pub(crate) forced: Option<&'static str>,
    pub(crate) schema: Option<Value>,
    /// A message to add to the conversation.
    pub(crate) last: Option<SharedMessage>,
}

impl CallOptions {
    /// Returns the options of a recorded request.
    pub(crate) fn recorded(exchange: &Exchange) -> Self {
        let has_schema = exchange.request.as_ref().is_some_and(asks_for_schema);
        Self {
            config: LlmConfig::new(model(exchange)),
            schema: has_schema.then(|| json!({"type": "object"})),
            ..Self::default()
        }
    }
}

/// Returns the model of an exchange.
pub(crate) fn model(exchange: &Exchange) -> String {
    let model = exchange.request.as_ref().and_then(|request| request["model"].as_str());
    format!("{}:{}", exchange.provider, model.unwrap_or("model"))
}

/// Makes a call with this conversation, and returns the body of its request. Returns `None` if the adapter rejects the
/// options.
pub(crate) async fn request(
    format: &ApiFormat,
    exchange: &Exchange,
    messages: &[SharedMessage],
    call_options: &CallOptions,
) -> Result<Option<Value>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let options = ModelServerOptions::new(&exchange.provider, &url).with_format(format.clone());
    let server = ModelServer::new(options)?;
    let receiving = async {
        let (mut connection, _) = listener.accept().await?;
        anyhow::Ok(serde_json::from_slice(&read_request(&mut connection).await?)?)
    };
    if server.check(&call_options.config).is_err() {
        return Ok(None);
    }
    tokio::select! {
        body = receiving => body.map(Some),
        response = call(&server, messages, call_options, &NoSink) => match response {
            Err(_) => Ok(None),
            Ok(response) => anyhow::bail!("the call made no request: {:?}", response.result),
        }
    }
}

/// Makes a call with this conversation.
pub(crate) async fn call(
    server: &ModelServer,
    messages: &[SharedMessage],
    options: &CallOptions,
    sink: &dyn LlmSink,
) -> Result<LlmResponse, Error> {
    let prompt: SharedMessage = Message::System { content: "Be brief.".to_owned() }.into();
    let (session, cancel) = (SessionId::from("session"), CancellationToken::new());
    let schema = options.schema.clone().map(Schema::from_value).transpose()?;
    let request = LlmRequest::new(&session, &options.config, &prompt, messages, &cancel)
        .tools(&options.tools)
        .tool_choice(options.forced.map_or(ToolChoice::Auto, ToolChoice::Tool))
        .output_schema(schema.as_ref())
        .max_retries(0);
    server.generate_step(request, sink).await
}

/// Returns a message of the user.
pub(crate) fn question() -> SharedMessage {
    Message::User(UserMessage::new("Hello?")).into()
}

fn asks_for_schema(request: &Value) -> bool {
    request.pointer("/response_format/json_schema").is_some()
        || request.pointer("/output_config/format").is_some()
        || request.pointer("/generationConfig/responseSchema").is_some()
        || request.pointer("/generationConfig/responseJsonSchema").is_some()
        || request.pointer("/text/format/schema").is_some()
}

/// Answers one request.
async fn serve(
    listener: &TcpListener,
    status: u16,
    content_type: &str,
    pieces: Vec<&[u8]>,
) -> Result<()> {
    let (mut connection, _) = listener.accept().await?;
    read_request(&mut connection).await?;
    let head = format!(
        "HTTP/1.1 {status} Recorded\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let mut out = head.into_bytes();
    for piece in pieces {
        out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    // The adapter may close the connection once it has read enough.
    drop(connection.write_all(&out).await);
    Ok(())
}

/// Reads a request with a body of known length, and returns the body.
pub(crate) async fn read_request(connection: &mut TcpStream) -> Result<Vec<u8>> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(read.get(..end).unwrap_or_default()).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(Ok(0), |length| length.trim().parse())?;
            if read.len() >= end + 4 + length {
                return Ok(read.split_off(end + 4));
            }
        }
        if connection.read_buf(&mut read).await? == 0 {
            anyhow::bail!("the adapter closed the connection before its request was complete");
        }
    }
}
