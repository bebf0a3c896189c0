//! Helpers of this crate's unit tests: chunks without their origins, and logs.

mod growth;
mod log;

use helix_agents_core::error::{ErrorCode, ErrorRecord};
use helix_agents_core::session::Session;
use helix_agents_core::stream::{Attempt, Chunk, ChunkKind};

pub(crate) use growth::assert_linear;
pub(crate) use log::{Log, child_start, long_session, pending};

/// The session of the chunks.
pub(crate) const SESSION: &str = "s";

/// Returns a session without events.
pub(crate) fn empty() -> Session {
    Session::new(SESSION.into())
}

/// Returns a chunk of the root session.
pub(crate) fn own(step: u32, kind: ChunkKind) -> Chunk {
    chunk(SESSION, step, kind)
}

/// Returns a chunk of a session.
pub(crate) fn chunk(session: &str, step: u32, kind: ChunkKind) -> Chunk {
    let (agent, run, at) = ("clerk".into(), "r1".into(), Default::default());
    Chunk { agent, session: session.into(), run, step, at, kind }
}

pub(crate) fn text(delta: &str) -> ChunkKind {
    ChunkKind::TextDelta { delta: delta.to_owned() }
}

pub(crate) fn thinking(content: &str) -> ChunkKind {
    ChunkKind::Thinking { content: content.to_owned(), complete: false }
}

pub(crate) fn arg_start(index: u32, tool: &str) -> ChunkKind {
    ChunkKind::ToolArgStart { index, tool: tool.into() }
}

pub(crate) fn arg(index: u32, delta: &str) -> ChunkKind {
    ChunkKind::ToolArgDelta { index, delta: delta.to_owned() }
}

pub(crate) fn tool_start(call: &str, tool: &str) -> ChunkKind {
    let arguments = r#"{"city":"Graz"}"#.to_owned();
    ChunkKind::ToolStart { call: call.into(), tool: tool.into(), arguments, client: false }
}

pub(crate) fn client_start(call: &str, tool: &str) -> ChunkKind {
    let arguments = r#"{"city":"Graz"}"#.to_owned();
    ChunkKind::ToolStart { call: call.into(), tool: tool.into(), arguments, client: true }
}

pub(crate) fn approval(call: &str, tool: &str) -> ChunkKind {
    ChunkKind::ToolApprovalRequest {
        call: call.into(),
        tool: tool.into(),
        arguments: r#"{"city":"Graz"}"#.to_owned(),
        digest: "9f2c".to_owned(),
        editable: true,
        deadline: None,
    }
}

pub(crate) fn tool_end(call: &str, tool: &str) -> ChunkKind {
    let result = Some(r#""rain""#.to_owned());
    ChunkKind::ToolEnd { call: call.into(), tool: tool.into(), success: true, result }
}

pub(crate) fn tool_error(call: &str, tool: &str, code: ErrorCode) -> [ChunkKind; 2] {
    let error = ErrorRecord::new(code, "it is closed");
    let end =
        ChunkKind::ToolEnd { call: call.into(), tool: tool.into(), success: false, result: None };
    [ChunkKind::ToolError { call: call.into(), tool: tool.into(), error }, end]
}

pub(crate) fn sub_agent_start(call: &str, child: &str) -> ChunkKind {
    ChunkKind::SubagentStart {
        call: call.into(),
        subagent: "poet".into(),
        child: child.into(),
        arguments: r#"{"topic":"rain"}"#.to_owned(),
        companion: None,
    }
}

pub(crate) fn sub_agent_end(call: &str, child: &str, success: bool) -> ChunkKind {
    ChunkKind::SubagentEnd {
        call: call.into(),
        subagent: "poet".into(),
        child: child.into(),
        success,
    }
}

pub(crate) fn checkpoint() -> ChunkKind {
    ChunkKind::Checkpoint { version: 4 }
}

pub(crate) fn discarded(attempt: u64) -> ChunkKind {
    ChunkKind::StepDiscarded { attempts: vec![Attempt(attempt)] }
}

pub(crate) fn ended(status: &str) -> ChunkKind {
    ChunkKind::RunEnded { status: status.to_owned(), usage: None }
}

pub(crate) fn suspended() -> ChunkKind {
    ChunkKind::RunSuspended { calls: Vec::new(), deadline: None }
}

/// Returns the start of a companion with this name.
pub(crate) fn companion_start(call: &str, child: &str, name: &str) -> ChunkKind {
    ChunkKind::SubagentStart {
        call: call.into(),
        subagent: "poet".into(),
        child: child.into(),
        arguments: "{}".to_owned(),
        companion: Some(name.to_owned()),
    }
}

pub(crate) fn custom(name: &str, data: &str) -> ChunkKind {
    ChunkKind::Custom { name: name.to_owned(), data: data.to_owned() }
}
