//! The part of a session that is small and changes: what a savepoint copies.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::RunRecord;
use crate::clock::Timestamp;
use crate::event::{ModelReply, ToolFinish};
use crate::id::{CallId, RequestId, RunId};
use crate::message::{ToolCall, UserMessage};
use crate::store::{Position, SessionStatus};
use crate::usage::Usage;

#[derive(Debug, Clone)]
pub(super) struct Ledger {
    pub position: Position,
    pub status: SessionStatus,
    pub state: Arc<Value>,
    pub run: Option<RunRecord>,
    pub turn: u32,
    pub turn_steps: u32,
    pub last_step: u32,
    pub corrections: u32,
    pub model_failures: u32,
    pub step: Option<OpenStep>,
    pub closed: Option<ClosedStep>,
    pub interrupt: Option<Request>,
    pub abort: Option<Request>,
    pub usage: Usage,
    pub tool_calls: u64,
    pub recorded_usage: Arc<BTreeMap<(String, String), f64>>,
    pub unpaired: Vec<Unpaired>,
}

/// A call of an imported log that has no result, and where its result belongs.
#[derive(Debug, Clone)]
pub(super) struct Unpaired {
    pub call: ToolCall,
    pub insert_at: usize,
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self {
            position: Position::start(),
            status: SessionStatus::Active,
            state: Arc::new(Value::Null),
            run: None,
            turn: 0,
            turn_steps: 0,
            last_step: 0,
            corrections: 0,
            model_failures: 0,
            step: None,
            closed: None,
            interrupt: None,
            abort: None,
            usage: Usage::default(),
            tool_calls: 0,
            recorded_usage: Arc::default(),
            unpaired: Vec::new(),
        }
    }
}

/// A step whose reply is recorded.
#[derive(Debug, Clone)]
pub struct OpenStep {
    /// The reply.
    pub reply: Arc<ModelReply>,
    /// Its calls, in call order.
    pub calls: Vec<OpenCall>,
    /// What the model was told about its answer.
    pub correction: Option<UserMessage>,
    /// How many runs have worked on it, the present one included.
    pub runs: u32,
}

/// A step that was closed.
pub type ClosedStep = OpenStep;

impl OpenStep {
    /// The call as the model made it.
    #[must_use]
    pub fn tool_call(&self, id: &CallId) -> Option<&ToolCall> {
        self.tool_calls().iter().find(|call| call.id == *id)
    }

    /// All calls as the model made them.
    #[must_use]
    pub fn tool_calls(&self) -> &[ToolCall] {
        self.reply.message.as_deref().map_or(&[], |message| &message.tool_calls)
    }

    /// Calls with what is recorded of them, in call order.
    pub fn pairs(&self) -> impl Iterator<Item = (&ToolCall, &OpenCall)> {
        self.tool_calls().iter().zip(&self.calls)
    }

    /// Applies the state changes of its results that the session's state does not hold yet.
    pub(super) fn patch(&self, state: &mut Value) {
        let open = || self.calls.iter().filter(|call| call.has_open_patch());
        let finishes = |finish: bool| {
            open()
                .filter_map(|call| call.finish.as_ref())
                .filter(move |result| result.finish.is_some() == finish)
        };
        for result in finishes(false).chain(finishes(true)) {
            result.state_patch.apply(state);
        }
    }

    /// What is recorded of a call.
    #[must_use]
    pub fn call(&self, id: &CallId) -> Option<&OpenCall> {
        self.pairs().find(|(call, _)| call.id == *id).map(|(_, state)| state)
    }
}

/// What is recorded of a call.
#[derive(Debug, Clone, Default)]
pub struct OpenCall {
    /// Its start, if its effect class had it recorded.
    pub started: Option<StartedCall>,
    /// Its result.
    pub finish: Option<Arc<ToolFinish>>,
    /// Whether the result's change of the state is in the session's state already.
    pub patched: bool,
}

impl OpenCall {
    pub(super) fn has_open_patch(&self) -> bool {
        !self.patched && self.finish.as_ref().is_some_and(|finish| !finish.state_patch.is_empty())
    }
}

/// The recorded start of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedCall {
    /// The run that started it.
    pub run: RunId,
    /// Which try, from 1.
    pub attempt: u32,
    /// How long it could take.
    pub timeout_ms: Option<u64>,
    /// When, by the store's clock.
    pub at: Option<Timestamp>,
}

/// A request from outside that the current run has not met yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The request.
    pub id: RequestId,
    /// For people.
    pub reason: Option<String>,
}
