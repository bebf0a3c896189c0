//! Tools that wait for people: those that the caller carries out, and those that need a yes first.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::definition::{EffectClass, Tool};
use super::error::ToolError;
use crate::error::Result;
use crate::id::{CallId, SessionId};
use crate::panics::caught;
use crate::schema::Schema;

/// When a call needs an approval.
#[derive(Clone)]
pub(crate) enum Approval {
    Always,
    If(Predicate),
}

type Predicate = Arc<dyn Fn(&Value, &ApprovalContext<'_>) -> Result<bool, ToolError> + Send + Sync>;

/// What a condition for approval may look at, beside the arguments.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalContext<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// The session.
    pub session: &'a SessionId,
    /// The call.
    pub call: &'a CallId,
    /// The tool's name.
    pub tool: &'a str,
    /// The custom state as the step found it.
    pub(crate) state: &'a Value,
}

impl ApprovalContext<'_> {
    /// The custom state as the step found it.
    ///
    /// # Errors
    /// If it does not fit `S`.
    pub fn state<S: DeserializeOwned>(&self) -> Result<S, ToolError> {
        Ok(S::deserialize(self.state)?)
    }
}

/// What keeps a tool waiting for people.
#[derive(Clone, Default)]
pub(crate) struct People {
    pub(crate) client: bool,
    pub(crate) approval: Option<Approval>,
    pub(crate) editable: bool,
    pub(crate) deadline: Option<Duration>,
}

impl Tool {
    /// A tool that the caller of the agent carries out: the run is suspended until its result is
    /// submitted. The caller sees name and arguments.
    pub fn client<I: JsonSchema>(name: &str, description: &str) -> Self {
        Self::carried_out_elsewhere(name, description, Schema::of::<I>())
    }

    /// A client tool whose schema is only known at run time.
    #[must_use]
    pub fn client_dynamic(name: &str, description: &str, input_schema: Value) -> Self {
        Self::carried_out_elsewhere(name, description, Schema::from_value(input_schema))
    }

    fn carried_out_elsewhere(name: &str, description: &str, input: Result<Schema>) -> Self {
        let mut tool = Self::erased(name, description, input, |_, _| {
            Box::pin(async { Err(ToolError::new("a client tool is carried out by the caller")) })
        });
        tool.people.client = true;
        tool
    }

    /// Every call needs an approval before it runs: the run is suspended until somebody submits
    /// one. Unless its effect class is set, such a tool is [`EffectClass::AtMostOnce`].
    #[must_use]
    pub fn requires_approval(mut self) -> Self {
        self.people.approval = Some(Approval::Always);
        self
    }

    /// As [`requires_approval`](Self::requires_approval), for calls that the condition holds for.
    /// It should depend on what it is given and nothing else. One that fails or panics, and
    /// arguments that do not fit `I`, count as yes.
    #[must_use]
    pub fn requires_approval_if<I: DeserializeOwned>(
        mut self,
        condition: impl Fn(I, &ApprovalContext<'_>) -> Result<bool, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.people.approval =
            Some(Approval::If(Arc::new(move |input, cx| condition(I::deserialize(input)?, cx))));
        self
    }

    /// Whoever approves a call may change its arguments; what it runs with is on record.
    #[must_use]
    pub fn editable(mut self) -> Self {
        self.people.editable = true;
        self
    }

    /// How long a call may wait for people. After that it fails, and the model is told so. Without
    /// it calls wait forever.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.people.deadline = Some(deadline);
        self
    }

    /// Whether the caller carries it out.
    #[must_use]
    pub fn is_client(&self) -> bool {
        self.people.client
    }

    /// Whether its calls may need an approval.
    pub(crate) fn asks_people(&self) -> bool {
        self.people.approval.is_some()
    }

    /// Whether this call needs an approval. Whatever goes wrong in finding out counts as yes.
    #[must_use]
    pub fn needs_approval(&self, input: &Value, cx: &ApprovalContext<'_>) -> bool {
        match &self.people.approval {
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

    pub(super) fn people_problems(&self) -> Vec<String> {
        let People { client, approval, editable, deadline } = &self.people;
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
            (deadline.is_some_and(|it| it.is_zero()), "`deadline` must be more than zero"),
            (*client && self.timeout.is_some(), "a client tool has no `timeout`; use `deadline`"),
            (
                *client && self.retry.is_some(),
                "a client tool cannot have `retry`: its caller runs it",
            ),
            (
                *client && self.effect.is_some_and(|it| it == EffectClass::AtMostOnce),
                "a client tool has no effect class: its caller runs it",
            ),
        ];
        let wrong = wrong.into_iter().filter(|(wrong, _)| *wrong);
        wrong.map(|(_, problem)| format!("tool `{}`: {problem}", self.name)).collect()
    }
}
