//! The sub-agents that a run shows.
//!
//! The client accepts each sub-agent once per run. One that continues after it was suspended is not shown again before
//! the next run.

use std::collections::BTreeMap;

use helix_agents_core::id::SessionId;
use serde_json::{Value, json};

use crate::ag_ui::{Event, SubAgentOutcome};
use crate::turn::{SubAgent, SubAgentStatus};

/// The sub-agents of a run.
#[derive(Debug, Default)]
pub(super) struct SubAgents {
    /// Whether each sub-agent that the client knows is open.
    told: BTreeMap<SessionId, bool>,
    /// The sub-agents that changed while a snapshot was prepared, in the order of their first changes: a parent comes
    /// before its children. The value tells whether the client knows the call.
    changed: Vec<(SubAgent, bool)>,
    /// The indices of `changed` by session.
    positions: BTreeMap<SessionId, usize>,
    is_silent: bool,
}

impl SubAgents {
    /// Keeps changes back until [`speak`](Self::speak), because a snapshot is being prepared.
    pub(super) fn silence(&mut self) {
        self.is_silent = true;
    }

    /// Shows the sub-agents as they are after a snapshot.
    pub(super) fn speak(&mut self, root: &str, out: &mut Vec<Event>) {
        self.is_silent = false;
        self.positions.clear();
        for (sub_agent, is_call_shown) in std::mem::take(&mut self.changed) {
            self.take(&sub_agent, root, is_call_shown, out);
        }
    }

    /// Shows a sub-agent that started or changed. `is_call_shown` tells whether the client knows the call that started
    /// it.
    pub(super) fn take(
        &mut self,
        sub_agent: &SubAgent,
        root: &str,
        is_call_shown: bool,
        out: &mut Vec<Event>,
    ) {
        if self.is_silent {
            let change = (sub_agent.clone(), is_call_shown);
            let position = self.positions.entry(sub_agent.session.clone());
            let position = *position.or_insert(self.changed.len());
            match self.changed.get_mut(position) {
                Some(known) => *known = change,
                None => self.changed.push(change),
            }
            return;
        }
        let session = &sub_agent.session;
        if !self.told.contains_key(session) && sub_agent.status == SubAgentStatus::Running {
            // The client refuses a parent that it does not know in this run.
            let has_parent =
                sub_agent.parent.as_str() != root && self.told.contains_key(&sub_agent.parent);
            self.told.insert(session.clone(), true);
            out.push(start(sub_agent, has_parent, is_call_shown));
        }
        let Some(is_open) = self.told.get_mut(session).filter(|is_open| **is_open) else { return };
        if let Some(end) = end(sub_agent) {
            *is_open = false;
            out.push(end);
        } else if !sub_agent.text.is_empty() {
            out.push(text(sub_agent));
        }
    }

    /// Ends all open sub-agents, because the run ends. While a snapshot is being prepared, it does nothing.
    pub(super) fn finish_all(&mut self, out: &mut Vec<Event>) {
        if self.is_silent {
            return;
        }
        for (session, is_open) in self.told.iter_mut().filter(|(_, is_open)| **is_open) {
            *is_open = false;
            let (subagent_run_id, outcome) = (session.to_string(), SubAgentOutcome::Suspended);
            out.push(Event::SubagentFinished { subagent_run_id, outcome });
        }
    }
}

fn start(sub_agent: &SubAgent, has_parent: bool, is_call_shown: bool) -> Event {
    let SubAgent { session, parent, name, call, .. } = sub_agent;
    Event::SubagentStarted {
        subagent_run_id: session.to_string(),
        name: name.to_string(),
        parent_tool_call_id: is_call_shown.then(|| call.clone()),
        parent_subagent_run_id: has_parent.then(|| parent.to_string()),
    }
}

fn end(sub_agent: &SubAgent) -> Option<Event> {
    let subagent_run_id = sub_agent.session.to_string();
    let outcome = match sub_agent.status {
        SubAgentStatus::Running => return None,
        SubAgentStatus::Failed => {
            let message = "the sub-agent failed".to_owned();
            return Some(Event::SubagentError { subagent_run_id, message });
        }
        SubAgentStatus::Suspended => SubAgentOutcome::Suspended,
        SubAgentStatus::Completed => SubAgentOutcome::Success,
    };
    Some(Event::SubagentFinished { subagent_run_id, outcome })
}

/// Returns the text that a sub-agent writes as an event that adds no message.
fn text(sub_agent: &SubAgent) -> Event {
    let value: Value = json!({ "id": sub_agent.session.as_str(), "text": sub_agent.text });
    Event::Custom { name: "subagent_text".to_owned(), value }
}
