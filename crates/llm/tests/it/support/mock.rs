//! A model server that enforces the rules of its provider: it signs reasoning, and rejects what the provider would reject.
//!
//! The rules are written down again here and share nothing with the library.

mod converse;
mod gemini;
mod messages;
mod responses;
mod seal;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use helix_agents_llm::{ApiFormat, ModelServer, ModelServerOptions};

use super::{Reply, Request, Server, options};

pub(crate) use converse::Converse;
pub(crate) use gemini::Gemini;
pub(crate) use messages::Messages;
pub(crate) use responses::Responses;

/// Models of Anthropic that bind reasoning to everything before it.
pub(crate) const BINDING: [&str; 6] = [
    "claude-fable-5-1",
    "claude-fable-5-2",
    "claude-mythos-5-2",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
];

/// The beta feature with which a request selects what happens to reasoning if anything before it has changed.
pub(crate) const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

/// A part of a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    /// Reasoning. An empty text is reasoning that is not shown.
    Thinking(&'static str),
    /// Encrypted reasoning.
    Redacted(&'static str),
    Text(&'static str),
    /// A call of the tool `lookup` with this id.
    Call(&'static str),
    /// A call of a tool that the provider runs.
    Search(&'static str),
    /// The result of such a call.
    Found(&'static str),
}

/// The server's answer to a request that breaks no rule.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Says(Vec<Part>),
    /// A reply that the next request continues.
    Pauses(Vec<Part>),
    /// A stream that reports an overload after this number of events.
    Overloads(usize, Vec<Part>),
    Fails(Reply),
}

/// The rules of an API.
pub(crate) trait Rules: Send {
    /// Returns the API.
    fn format(&self) -> ApiFormat;

    /// Returns the rule that the request breaks.
    fn check(&mut self, request: &Request) -> Result<(), String>;

    /// Returns the events of a reply to the request.
    fn events(&mut self, request: &Request, parts: &[Part], pauses: bool) -> Vec<Vec<u8>>;

    /// Returns the event that reports an overload.
    fn overload(&self) -> Vec<u8>;

    /// Returns the parts of the conversation that the server left out.
    fn dropped(&self) -> Vec<String> {
        Vec::new()
    }
}

struct State {
    rules: Box<dyn Rules>,
    answers: VecDeque<Answer>,
    problems: Vec<String>,
}

/// The server.
pub(crate) struct Mock {
    pub(crate) server: Server,
    format: ApiFormat,
    state: Arc<Mutex<State>>,
}

impl Mock {
    pub(crate) async fn start(rules: impl Rules + 'static, answers: Vec<Answer>) -> Self {
        let format = rules.format();
        let (rules, answers) = (Box::new(rules), answers.into());
        let state = Arc::new(Mutex::new(State { rules, answers, problems: Vec::new() }));
        let serving = Arc::clone(&state);
        let server =
            Server::answering(move |request| serving.lock().unwrap().answer(request)).await;
        Self { server, format, state }
    }

    /// Returns the options of a provider with this name, which is the server.
    pub(crate) fn options(&self, name: &str) -> ModelServerOptions {
        let mut options = options(&self.server).with_format(self.format.clone());
        options.name = name.to_owned();
        options
    }

    /// Returns the provider `local`, which is the server.
    pub(crate) fn adapter(&self) -> ModelServer {
        ModelServer::new(self.options("local")).unwrap()
    }

    /// Returns the rules that requests broke.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.state.lock().unwrap().problems.clone()
    }

    /// Returns the parts of the last request that the server left out.
    pub(crate) fn dropped(&self) -> Vec<String> {
        self.state.lock().unwrap().rules.dropped()
    }

    /// Returns the body of the last request.
    pub(crate) fn last_body(&self) -> serde_json::Value {
        self.server.requests().last().unwrap().json()
    }
}

impl State {
    fn answer(&mut self, request: &Request) -> Reply {
        if let Err(problem) = self.rules.check(request) {
            let kind = "invalid_request_error";
            let error = serde_json::json!({"error": {"type": kind, "message": &problem}});
            self.problems.push(problem);
            return Reply::status(400, "", &error.to_string());
        }
        let (kept, parts, pauses) = match self.answers.pop_front() {
            None => return Reply::status(418, "", "no answer is left"),
            Some(Answer::Fails(reply)) => return reply,
            Some(Answer::Says(parts)) => (None, parts, false),
            Some(Answer::Pauses(parts)) => (None, parts, true),
            Some(Answer::Overloads(kept, parts)) => (Some(kept), parts, false),
        };
        let mut events = self.rules.events(request, &parts, pauses);
        if let Some(kept) = kept {
            events.truncate(kept);
            events.push(self.rules.overload());
        }
        let kind = match self.rules.format() {
            ApiFormat::BedrockConverse => "application/vnd.amazon.eventstream",
            _ => "text/event-stream",
        };
        Reply::head(kind).pieces(events).end()
    }
}

/// Returns an event of a stream.
fn event(data: &serde_json::Value) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}
