//! The loop that a program would use without a framework: reqwest and typed serde. It serializes
//! the whole history for each call and stores nothing.

use anyhow::{Context as _, Result, bail, ensure};
use helix_agents::schema::Schema;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{INPUT, PROMPT, Runs};
use crate::job::{Ending, Job, Wire, Work};
use crate::serve::WORD;

mod events;
mod wire;

use events::Events;
use wire::{Completion, Message, Reply, Request};

/// Runs of tool calls.
pub(super) struct ToolRuns {
    server: Server,
    tools: Box<RawValue>,
    format: Option<Box<RawValue>>,
    calls: u32,
}

/// Runs of one long text.
pub(super) struct TextRuns {
    server: Server,
    bytes: usize,
}

/// A model server.
struct Server {
    client: Client,
    url: String,
    streams: bool,
}

/// The arguments of `add`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Pair {
    /// The first summand.
    pub(super) a: u64,
    /// The second summand.
    pub(super) b: u64,
}

/// The result of a run.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Total {
    /// The last sum.
    pub(super) result: u64,
}

impl ToolRuns {
    pub(super) fn new(job: &Job, calls: u32) -> Result<Self> {
        let (pair, total) = (Schema::of::<Pair>()?, Schema::of::<Total>()?);
        let (pair, total) = (pair.json().text(), total.json().text());
        let native = matches!(job.work, Work::Tools { ending: Ending::Native, .. });
        let finish = format!(
            ",{{\"type\":\"function\",\"function\":{{\"name\":\"__finish__\",\"description\":\"Hands in the result.\",\"parameters\":{total}}}}}"
        );
        let finish = if native { "" } else { &finish };
        let tools = format!(
            "[{{\"type\":\"function\",\"function\":{{\"name\":\"add\",\"description\":\"Adds two numbers.\",\"parameters\":{pair}}}}}{finish}]"
        );
        let format = format!(
            "{{\"type\":\"json_schema\",\"json_schema\":{{\"name\":\"output\",\"schema\":{total},\"strict\":true}}}}"
        );
        Ok(Self {
            server: Server::new(job)?,
            tools: RawValue::from_string(tools)?,
            format: if native { Some(RawValue::from_string(format)?) } else { None },
            calls,
        })
    }
}

impl Runs for ToolRuns {
    async fn once(&self) -> Result<()> {
        let mut messages = begin();
        for _ in 0..=self.calls {
            let reply = self.server.ask(&messages, Some(&self.tools), self.format.as_deref());
            let reply = reply.await?;
            let Some(call) = reply.call else {
                return self.check(&reply.content);
            };
            if call.name == "__finish__" {
                return self.check(&call.arguments);
            }
            let pair: Pair = serde_json::from_str(&call.arguments)?;
            let sum = pair.a + pair.b;
            let id = call.id.clone();
            messages.push(Message::call(call));
            messages.push(Message::result(id, sum.to_string()));
        }
        bail!("the model did not finish")
    }
}

impl ToolRuns {
    fn check(&self, output: &str) -> Result<()> {
        let total: Total = serde_json::from_str(output)?;
        ensure!(total.result == u64::from(self.calls), "the result is {}", total.result);
        Ok(())
    }
}

impl TextRuns {
    pub(super) fn new(job: &Job, chunks: u32) -> Result<Self> {
        Ok(Self { server: Server::new(job)?, bytes: chunks as usize * WORD.len() })
    }
}

impl Runs for TextRuns {
    async fn once(&self) -> Result<()> {
        let reply = self.server.ask(&begin(), None, None).await?;
        ensure!(reply.content.len() == self.bytes, "the text has {} bytes", reply.content.len());
        Ok(())
    }
}

fn begin() -> Vec<Message> {
    vec![Message::text("system", PROMPT), Message::text("user", INPUT)]
}

impl Server {
    fn new(job: &Job) -> Result<Self> {
        // Same settings as in the adapter for a local server, so that no certificates are loaded.
        let client = Client::builder().no_proxy().tls_certs_only([]).build()?;
        let url = format!("{}/chat/completions", job.base_url());
        Ok(Self { client, url, streams: job.wire == Wire::Sse })
    }

    async fn ask(
        &self,
        messages: &[Message],
        tools: Option<&RawValue>,
        format: Option<&RawValue>,
    ) -> Result<Reply> {
        let request = Request::new(self.streams, messages, tools, format);
        let body = serde_json::to_vec(&request)?;
        let request = self.client.post(&self.url).header(CONTENT_TYPE, "application/json");
        let response = request.body(body).send().await?.error_for_status()?;
        if self.streams { read_events(response).await } else { read_document(response).await }
    }
}

async fn read_document(response: Response) -> Result<Reply> {
    let body = response.bytes().await?;
    let completion: Completion<'_> = serde_json::from_slice(&body)?;
    let choice = completion.choices.into_iter().next().context("a reply without a choice")?;
    let mut reply = Reply::default();
    reply.take(&choice.message);
    Ok(reply)
}

async fn read_events(mut response: Response) -> Result<Reply> {
    let mut events = Events::default();
    let mut reply = Reply::default();
    while let Some(piece) = response.chunk().await? {
        events.feed(&piece, |data| reply.event(data))?;
    }
    ensure!(reply.done, "the reply is incomplete");
    Ok(reply)
}
