//! A model that creates plans from one script and answers from another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use helix_agents_core::error::Result;
use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
use helix_agents_core::message::Message;
use serde_json::Value;

use crate::scripted::{Reply, ScriptedLlm, SeenRequest};

/// A model for agents that plan. A request whose last message is JSON with `info.round_index` gets the plan
/// of that round, in every process. The second script answers all other requests. Clones share the list of
/// seen requests.
#[derive(Debug, Clone)]
pub struct PlanningScript {
    plans: BTreeMap<u64, ScriptedLlm>,
    revise: Arc<Mutex<BTreeMap<u64, Vec<ScriptedLlm>>>>,
    answers: ScriptedLlm,
    seen: Arc<Mutex<Vec<(u64, SeenRequest)>>>,
}

impl PlanningScript {
    /// Creates a model with one plan per round, and the given answers.
    pub fn new(plans: impl IntoIterator<Item = Reply>, answers: ScriptedLlm) -> Self {
        let plans = (0..).zip(plans.into_iter().map(|plan| ScriptedLlm::new([plan])));
        let plans = plans.collect();
        Self { plans, revise: Arc::default(), answers, seen: Arc::default() }
    }

    /// Adds a plan for a round that this process requests once more.
    #[must_use]
    pub fn revise(self, round: u64, plan: Reply) -> Self {
        let mut revise = self.revise.lock().unwrap_or_else(PoisonError::into_inner);
        revise.entry(round).or_default().push(ScriptedLlm::new([plan]));
        drop(revise);
        self
    }

    /// Returns the planning requests so far, each with its round.
    #[must_use]
    pub fn plans_seen(&self) -> Vec<(u64, SeenRequest)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the other requests so far.
    #[must_use]
    pub fn answers_seen(&self) -> Vec<SeenRequest> {
        self.answers.seen()
    }

    fn script(&self, round: u64) -> Option<ScriptedLlm> {
        let seen = self.plans_seen().iter().filter(|(other, _)| *other == round).count();
        if seen == 0 {
            return self.plans.get(&round).cloned();
        }
        let revise = self.revise.lock().unwrap_or_else(PoisonError::into_inner);
        revise.get(&round).and_then(|plans| plans.get(seen - 1)).cloned()
    }
}

/// Returns the round whose plan the request asks for.
fn round(request: &LlmRequest<'_>) -> Option<u64> {
    let Message::User(message) = &**request.messages.last()? else { return None };
    let inputs: Value = serde_json::from_str(&message.content).ok()?;
    inputs.pointer("/info/round_index")?.as_u64()
}

#[async_trait]
impl LlmAdapter for PlanningScript {
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let Some(round) = round(&request) else {
            return self.answers.generate_step(request, sink).await;
        };
        let script = self.script(round).unwrap_or_else(|| ScriptedLlm::new([]));
        let seen = SeenRequest::of(&request);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push((round, seen));
        script.generate_step(request, sink).await
    }

    fn check(&self, config: &LlmConfig) -> Result<()> {
        self.answers.check(config)
    }
}
