//! Child sessions: how a call starts one, and the result that a finished child gives to the call
//! that waited for it.

use std::sync::Arc;

use serde_json::json;

use super::iterator::ChildTask;
use crate::agent::{AgentDefinition, AnyAgent};
use crate::error::{Error, ErrorCode, ErrorRecord, Result};
use crate::event::{ChildStart, CompanionRef, ParentRef, ToolOutcome};
use crate::hooks::SubAgentView;
use crate::id::SessionId;
use crate::json::Json;
use crate::machine::agent_result::AgentResult;
use crate::machine::session::{RunStatus, Session};
use crate::message::ToolCall;
use crate::run_options::Input;
use crate::stream::ChunkKind;
use crate::trace::Operation;

/// A child session that is about to start.
#[derive(Debug)]
pub struct ChildSpec {
    /// The record of the child in the parent's log.
    pub start: ChildStart,
    /// The record of the parent in the child's log.
    pub parent: ParentRef,
    /// The agent that the child runs.
    pub agent: AnyAgent,
    /// The child's input, or the error that explains why the call's arguments are not a valid
    /// input.
    pub input: Result<Input>,
    /// The arguments of the call.
    pub arguments: Json,
}

impl ChildSpec {
    /// Creates the specification of the child that a sub-agent call starts.
    #[must_use]
    pub fn of_sub_agent(
        session: &Session,
        agent: &AgentDefinition,
        task: &ChildTask,
    ) -> Option<Self> {
        let call = session.open_step()?.tool_call(&task.call)?;
        let child = agent.sub_agent(&call.name)?;
        let input = child.input_of(&arguments(call));
        let spec = Self::new(session, call, child.agent(), None, input);
        let start = ChildStart { session: task.session.clone(), ..spec.start };
        Some(Self { start: ChildStart { allowance: task.allowance, ..start }, ..spec })
    }

    pub(super) fn new(
        session: &Session,
        call: &ToolCall,
        agent: &AnyAgent,
        companion: Option<CompanionRef>,
        input: Result<Input>,
    ) -> Self {
        let child = match &companion {
            Some(companion) => SessionId::of_companion(session.id(), &companion.name),
            None => SessionId::of_call(session.id(), &call.id),
        };
        let start = ChildStart {
            call: call.id.clone(),
            session: child,
            agent: Arc::clone(agent.name()),
            companion: companion.clone(),
            allowance: None,
        };
        let trace = match companion {
            Some(_) => None,
            None => Some(session.trace_parent(Operation::ToolCall(&call.id))),
        };
        let parent = ParentRef {
            session: session.id().clone(),
            call: call.id.clone(),
            root: session.root().clone(),
            companion,
            trace,
            is_trace_given: trace.is_some() && session.is_trace_given(),
        };
        Self { start, parent, agent: Arc::clone(agent), input, arguments: arguments(call) }
    }

    /// Returns the view of the child that hooks get before it starts.
    #[must_use]
    pub fn view(&self) -> SubAgentView<'_> {
        let ChildStart { call, session, agent, .. } = &self.start;
        SubAgentView { call, agent, session, input: &self.arguments }
    }

    /// Returns the chunk that announces the child in the stream.
    #[must_use]
    pub fn start_chunk(&self) -> ChunkKind {
        let ChildStart { call, session: child, agent: subagent, companion, .. } =
            self.start.clone();
        let companion = companion.map(|companion| companion.name);
        let arguments = self.arguments.text().to_owned();
        ChunkKind::SubagentStart { call, subagent, child, arguments, companion }
    }
}

/// Returns the error of a child that a hook refused to start.
#[must_use]
pub fn child_refused(reason: &str) -> Error {
    Error::new(ErrorCode::ToolRefused, "a hook refused to start the sub-agent").with_detail(reason)
}

/// Returns the result of a call whose child could not start.
#[must_use]
pub fn child_start_failed(error: &Error) -> ToolOutcome {
    let (code, message) = match error.code() {
        ErrorCode::ToolRefused => (ErrorCode::ToolRefused, error.in_full()),
        _ => {
            let message = format!("the sub-agent could not be started: {}", error.in_full());
            (ErrorCode::SubAgentDispatchFailed, message)
        }
    };
    failed(code, message)
}

/// Returns the result of a call that waited for a child: the child's output, or for a companion its
/// name, status and output.
#[must_use]
pub fn child_outcome(start: &ChildStart, result: &AgentResult) -> ToolOutcome {
    if let Some(companion) = &start.companion {
        if let Some(error) = &result.error {
            let message = format!("the child failed: {}", error.message);
            return failed(ErrorCode::SubAgentFailed, message);
        }
        let output = result.output.as_ref().map(Json::to_value);
        let status = result.status.as_str();
        let value = json!({ "name": companion.name, "status": status, "output": output });
        return ToolOutcome::Success(value.into());
    }
    let message = match (result.status, &result.output, &result.error) {
        (RunStatus::Completed, Some(output), _) => return ToolOutcome::Success(output.clone()),
        (RunStatus::Completed, None, _) => "the sub-agent returned no output".to_owned(),
        (_, _, Some(error)) => format!("the sub-agent failed: {}", error.message),
        (status, _, None) => format!("the sub-agent is {}", status.as_str()),
    };
    failed(ErrorCode::SubAgentFailed, message)
}

pub(super) fn failed(code: ErrorCode, message: impl Into<String>) -> ToolOutcome {
    ToolOutcome::Error(ErrorRecord::new(code, message))
}

fn arguments(call: &ToolCall) -> Json {
    call.arguments.as_json().cloned().unwrap_or_else(Json::empty_object)
}
