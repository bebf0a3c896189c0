//! The requests that the adapters make, one line of JSON each, for checks against the vendors' own types.
//!
//! Each conversation consists of recorded replies that were read by an adapter, stored as messages and loaded again.

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use helix_agents_core::llm::{Effort, LlmConfig, ThinkingConfig, ThinkingDisplay};
use helix_agents_core::message::{Media, Message, SharedMessage, UserMessage};
use helix_agents_core::tool::{ToolSet, ToolSpec};
use serde_json::json;

use crate::case::Case;
use crate::play::{self, CallOptions};
use crate::replay;
use crate::schemas::Schemas;

/// The counts of requests.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) requests: usize,
    /// The number of calls whose settings the model does not support.
    pub(crate) rejected: usize,
    /// The number of requests that were compared with a schema.
    pub(crate) validated: usize,
    /// The number of requests that a schema rejects.
    pub(crate) invalid: usize,
}

/// A variation of the settings of a call.
type Change = fn(&mut CallOptions);

const CHANGES: [(&str, Change); 9] = [
    ("plain", |_| {}),
    ("effort", |options| {
        let thinking = ThinkingConfig::effort(Effort::Low).display(ThinkingDisplay::Summarized);
        options.config.thinking = Some(thinking);
    }),
    ("budget", |options| options.config.thinking = Some(ThinkingConfig::budget(2000))),
    ("off", |options| options.config.thinking = Some(ThinkingConfig::off())),
    ("sampling", |options| {
        options.config.temperature = Some(0.5);
        options.config.top_p = Some(0.9);
    }),
    ("limits", |options| {
        options.config.max_output_tokens = Some(2000);
        options.config.stop_sequences = vec!["END".to_owned()];
    }),
    ("schema", |options| {
        options.config.native_output = true;
        options.tools = Arc::default();
        options.schema = Some(json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        }));
    }),
    ("forced", |options| options.forced = Some("lookup")),
    ("files", |options| {
        let image = Media::from_bytes("image/png", b"not really an image").name("image.png");
        let report = Media::from_bytes("application/pdf", b"%PDF-1.7").name("report.pdf");
        let question = UserMessage::new("What is this?").attach(image).attach(report);
        options.last = Some(Message::User(question).into());
    }),
];

/// Writes the requests of a case, and prints the differences from their schemas.
pub(crate) async fn write(
    case: &Case,
    schemas: Option<&Schemas>,
    out: &mut impl Write,
    written: &mut Written,
) -> Result<()> {
    let mut messages = vec![play::question()];
    for (number, exchange) in case.exchanges.iter().enumerate() {
        let Some(format) = play::format(&exchange.api) else { continue };
        if let Some(message) = replay::reply(exchange).await? {
            replay::add(message, &mut messages)?;
        }
        for (name, change) in CHANGES {
            let mut options = CallOptions {
                config: LlmConfig::new(play::model(exchange)),
                tools: tools(&messages),
                ..CallOptions::default()
            };
            change(&mut options);
            let last = options.last.take();
            let messages: Vec<SharedMessage> = messages.iter().cloned().chain(last).collect();
            match play::request(&format, exchange, &messages, &options).await? {
                Some(body) => {
                    written.requests += 1;
                    let name = format!("{}#{number} {name}", case.name);
                    let differences =
                        schemas.and_then(|schemas| schemas.differences(&exchange.api, &body));
                    if let Some(differences) = differences {
                        written.validated += 1;
                        written.invalid += usize::from(!differences.is_empty());
                        differences.iter().for_each(|difference| println!("{name}: {difference}"));
                    }
                    let line = json!({"name": name, "api": exchange.api, "body": body});
                    writeln!(out, "{line}")?;
                }
                None => written.rejected += 1,
            }
        }
    }
    Ok(())
}

/// Returns a strict tool, another one, and the tools that the conversation has called.
fn tools(messages: &[SharedMessage]) -> Arc<ToolSet> {
    let schema =
        json!({"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]});
    let mut specs = vec![ToolSpec::new("lookup", "Looks up a key.", schema.clone()).strict(true)];
    for message in messages {
        let Message::Assistant(reply) = &**message else { continue };
        for call in &reply.tool_calls {
            if specs.iter().all(|spec| spec.name != call.name) {
                let name = Arc::clone(&call.name);
                specs.push(ToolSpec::new(name, "A tool.", json!({"type": "object"})));
            }
        }
    }
    specs.push(ToolSpec::new("note", "Takes a note.", schema));
    Arc::new(ToolSet::new(specs))
}
