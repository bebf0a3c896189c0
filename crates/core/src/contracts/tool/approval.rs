//! Tools that wait for a human or a client: client tools, and tools that require approval.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::definition::{EffectClass, Tool};
use super::error::ToolError;
use crate::error::Result;
use crate::id::{CallId, SessionId};
use crate::json::Json;
use crate::panics::caught;
use crate::schema::Schema;

/// The condition under which a call needs an approval.
#[derive(Clone)]
pub(crate) enum Approval {
    Always,
    If(Predicate),
}

type Predicate = Arc<dyn Fn(&Value, &ApprovalContext<'_>) -> Result<bool, ToolError> + Send + Sync>;

/// The context of an approval condition, in addition to the arguments.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalContext<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// The session id.
    pub session: &'a SessionId,
    /// The id of the call.
    pub call: &'a CallId,
    /// The tool's name.
    pub tool: &'a str,
    /// The custom state at the start of the step.
    pub(crate) state: &'a Value,
}

impl ApprovalContext<'_> {
    /// Returns the custom state at the start of the step.
    ///
    /// # Errors
    /// Returns an error if the state does not fit `S`.
    pub fn state<S: DeserializeOwned>(&self) -> Result<S, ToolError> {
        Ok(S::deserialize(self.state)?)
    }
}

/// The options of a tool that waits for a client result or an approval.
#[derive(Clone, Default)]
pub(crate) struct AnswerOptions {
    pub(crate) client: bool,
    pub(crate) approval: Option<Approval>,
    pub(crate) editable: bool,
    pub(crate) deadline: Option<Deadline>,
}

/// The time for which calls of a tool may wait for an answer.
#[derive(Clone)]
pub(crate) enum Deadline {
    /// The same time for all calls.
    After(Duration),
    /// A time that follows from the arguments. `None` means indefinitely.
    ByArguments(DeadlineOf),
}

type DeadlineOf = Arc<dyn Fn(&Value) -> Option<Duration> + Send + Sync>;

impl AnswerOptions {
    /// Returns how long a call with these arguments may wait for an answer.
    pub(crate) fn deadline_of(&self, arguments: &Json) -> Option<Duration> {
        match self.deadline.as_ref()? {
            Deadline::After(duration) => Some(*duration),
            Deadline::ByArguments(deadline) => {
                let deadline = || deadline(&arguments.to_value());
                caught("the deadline of a call", deadline).ok().flatten()
            }
        }
    }
}

impl Tool {
    /// Creates a client tool, which the caller of the agent executes. The run is suspended until
    /// the result is submitted. The caller gets the tool's name and arguments.
    pub fn client<I: JsonSchema>(name: &str, description: &str) -> Self {
        Self::carried_out_elsewhere(name, description, Schema::of::<I>())
    }

    /// Creates a client tool whose schema is only known at run time.
    #[must_use]
    pub fn client_dynamic(name: &str, description: &str, input_schema: Value) -> Self {
        Self::carried_out_elsewhere(name, description, Schema::from_value(input_schema))
    }

    fn carried_out_elsewhere(name: &str, description: &str, input: Result<Schema>) -> Self {
        let mut tool = Self::erased(name, description, input, |_, _| {
            Box::pin(async { Err(ToolError::new("a client tool is executed by the caller")) })
        });
        tool.answer_options.client = true;
        tool
    }

    /// Requires an approval for every call. The run is suspended until one is submitted. Such a
    /// tool is [`EffectClass::AtMostOnce`], unless its effect class is set.
    #[must_use]
    pub fn requires_approval(mut self) -> Self {
        self.answer_options.approval = Some(Approval::Always);
        self
    }

    /// Requires an approval for calls that meet a condition, as
    /// [`requires_approval`](Self::requires_approval) does for all calls. The condition should
    /// depend on its inputs only. If it fails or panics, or if the arguments do not fit `I`, the
    /// call requires approval.
    #[must_use]
    pub fn requires_approval_if<I: DeserializeOwned>(
        mut self,
        condition: impl Fn(I, &ApprovalContext<'_>) -> Result<bool, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.answer_options.approval =
            Some(Approval::If(Arc::new(move |input, cx| condition(I::deserialize(input)?, cx))));
        self
    }

    /// Allows the approver to change the arguments of a call. The log records the arguments that
    /// the call runs with.
    #[must_use]
    pub fn editable(mut self) -> Self {
        self.answer_options.editable = true;
        self
    }

    /// Sets how long a call may wait for an answer. After that, the call fails and the model sees
    /// the error. Without a deadline, calls wait indefinitely.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.answer_options.deadline = Some(Deadline::After(deadline));
        self
    }

    /// Sets how long a call may wait for an answer, depending on its arguments. `None` means
    /// indefinitely. The function should depend on its argument only. A call for which it panics waits
    /// indefinitely.
    #[must_use]
    pub fn deadline_by(
        mut self,
        deadline: impl Fn(&Value) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.answer_options.deadline = Some(Deadline::ByArguments(Arc::new(deadline)));
        self
    }

    /// Returns `true` if the tool is a client tool, which the caller of the agent executes.
    #[must_use]
    pub fn is_client(&self) -> bool {
        self.answer_options.client
    }

    /// Returns `true` if calls of the tool may need an approval.
    pub(crate) fn may_need_approval(&self) -> bool {
        self.answer_options.approval.is_some()
    }

    /// Returns `true` if this call needs an approval. A condition that fails counts as `true`.
    #[must_use]
    pub fn needs_approval(&self, input: &Value, cx: &ApprovalContext<'_>) -> bool {
        match &self.answer_options.approval {
            None => false,
            Some(Approval::Always) => true,
            Some(Approval::If(condition)) => {
                match caught("an approval condition", || condition(input, cx)) {
                    Ok(Ok(needed)) => needed,
                    Ok(Err(error)) => {
                        let code = error.code().as_str();
                        tracing::warn!(tool = %self.name, call = %cx.call, code, "approval condition failed: approval is required");
                        true
                    }
                    Err(_) => {
                        tracing::error!(tool = %self.name, call = %cx.call, "approval condition panicked: approval is required");
                        true
                    }
                }
            }
        }
    }

    pub(super) fn answer_option_problems(&self) -> Vec<String> {
        let AnswerOptions { client, approval, editable, deadline } = &self.answer_options;
        let gated = approval.is_some();
        let wrong = [
            (*client && self.finish, "a client tool cannot be a finish tool"),
            (*client && gated, "a client tool cannot require approval: its caller decides"),
            (gated && self.finish, "a finish tool cannot require approval"),
            (*editable && !gated, "`editable` needs `requires_approval`"),
            (
                deadline.is_some() && !*client && !gated,
                "`deadline` is for client tools and approvals; use `timeout`",
            ),
            (
                matches!(deadline, Some(Deadline::After(time)) if time.is_zero()),
                "`deadline` must be more than zero",
            ),
            (*client && self.timeout.is_some(), "a client tool has no `timeout`; use `deadline`"),
            (
                *client && self.retry.is_some(),
                "a client tool cannot have `retry`: its caller runs it",
            ),
            (
                *client && self.effect == Some(EffectClass::AtMostOnce),
                "a client tool has no effect class: its caller runs it",
            ),
        ];
        let wrong = wrong.into_iter().filter(|(wrong, _)| *wrong);
        wrong.map(|(_, problem)| format!("tool `{}`: {problem}", self.name)).collect()
    }
}
