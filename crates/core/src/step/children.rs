//! What begins a child, and what a child's end is to the call that waited for it.

use std::sync::Arc;

use serde_json::json;

use super::iterator::ChildTask;
use crate::agent::{AgentDefinition, AnyAgent};
use crate::error::{Error, ErrorCode, ErrorRecord, Result};
use crate::event::{ChildStart, CompanionRef, ParentRef, ToolOutcome};
use crate::executor::{AgentResult, Input};
use crate::hooks::SubAgentView;
use crate::id::SessionId;
use crate::json::Json;
use crate::message::ToolCall;
use crate::session::{RunStatus, Session};
use crate::stream::ChunkKind;

/// A child that is to be begun.
#[derive(Debug)]
pub struct ChildSpec {
    /// What its caller's log is to say of it.
    pub start: ChildStart,
    /// What its own log is to say of its caller.
    pub parent: ParentRef,
    /// Its agent.
    pub agent: AnyAgent,
    /// What it is begun with, or why nothing can be made of the call's arguments.
    pub input: Result<Input>,
    /// The arguments of the call.
    pub arguments: Json,
}

impl ChildSpec {
    /// The child of a sub-agent's call.
    #[must_use]
    pub fn of_sub_agent(
        session: &Session,
        agent: &AgentDefinition,
        task: &ChildTask,
    ) -> Option<Self> {
        let call = session.open_step()?.tool_call(&task.call)?;
        let child = agent.sub_agent(&call.name)?;
        let input = child.input_of(&arguments(call));
        let begin = Self::new(session, call, child.agent(), None, input);
        let start = ChildStart { session: task.session.clone(), ..begin.start };
        Some(Self { start: ChildStart { allowance: task.allowance, ..start }, ..begin })
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
        let parent = ParentRef {
            session: session.id().clone(),
            call: call.id.clone(),
            root: session.root().clone(),
            companion,
        };
        Self { start, parent, agent: Arc::clone(agent), input, arguments: arguments(call) }
    }

    /// What hooks are told before it is begun.
    #[must_use]
    pub fn view(&self) -> SubAgentView<'_> {
        let ChildStart { call, session, agent, .. } = &self.start;
        SubAgentView { call, agent, session, input: &self.arguments }
    }

    /// What people are shown before it shows something itself.
    #[must_use]
    pub fn shown(&self) -> ChunkKind {
        let ChildStart { call, session, agent, .. } = self.start.clone();
        ChunkKind::SubagentStart { call, subagent: agent, child: session }
    }
}

/// The error of a child that a hook keeps from being begun.
#[must_use]
pub fn child_refused(reason: &str) -> Error {
    Error::new(ErrorCode::ToolRefused, "not begun").with_detail(reason)
}

/// What a call comes to whose child was not begun.
#[must_use]
pub fn child_start_failed(error: &Error) -> ToolOutcome {
    let (code, message) = match error.code() {
        ErrorCode::ToolRefused => (ErrorCode::ToolRefused, error.in_full()),
        _ => {
            let message = format!("the sub-agent could not be begun: {}", error.in_full());
            (ErrorCode::SubAgentDispatchFailed, message)
        }
    };
    failed(code, message)
}

/// What a call comes to that waited for a child: the output, or for a companion what became of it.
#[must_use]
pub fn child_outcome(start: &ChildStart, result: &AgentResult) -> ToolOutcome {
    if let Some(companion) = &start.companion {
        if let Some(error) = &result.error {
            let message = format!("the child failed: {}", error.message);
            return failed(ErrorCode::SubAgentFailed, message);
        }
        let output = result.output.as_ref().map(Json::to_value);
        let status = result.status.as_str();
        let told = json!({ "name": companion.name, "status": status, "output": output });
        return ToolOutcome::Success(told.into());
    }
    let message = match (result.status, &result.output, &result.error) {
        (RunStatus::Completed, Some(output), _) => return ToolOutcome::Success(output.clone()),
        (RunStatus::Completed, None, _) => "the sub-agent gave no output".to_owned(),
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
