//! The calls of a reply while the model writes it.

use std::collections::BTreeMap;

use helix_agents_core::id::CallId;
use helix_agents_core::tool::SUB_AGENT_PREFIX;

/// The calls of the reply that the model writes. Maps positions in the reply to ids of calls.
///
/// The id of a call is its position in the recorded message, in which the calls of sub-agents follow all others. The
/// id of a tool's call is therefore known when it starts: it is its position without the sub-agents before it. That of
/// a sub-agent is only known once the reply is complete, so its arguments are kept here until then.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    by_position: BTreeMap<u32, Draft>,
}

#[derive(Debug)]
struct Draft {
    /// The id of the call; `None` for a sub-agent.
    call: Option<CallId>,
    /// The number of calls of sub-agents up to this position.
    sub_agents: usize,
    /// The arguments of a sub-agent's call so far.
    arguments: String,
}

impl Drafts {
    /// Adds a call at a position of the reply. Returns its id, unless it is the call of a sub-agent.
    pub(super) fn start(&mut self, step: u32, index: u32, tool: &str) -> Option<CallId> {
        let before = self.by_position.range(..index).next_back();
        let before = before.map_or(0, |(_, draft)| draft.sub_agents);
        let is_sub_agent = tool.starts_with(SUB_AGENT_PREFIX);
        let position = usize::try_from(index).unwrap_or(usize::MAX).saturating_sub(before);
        let call = (!is_sub_agent).then(|| CallId::new(step, position));
        let sub_agents = before + usize::from(is_sub_agent);
        self.by_position
            .insert(index, Draft { call: call.clone(), sub_agents, arguments: String::new() });
        call
    }

    /// Adds to the arguments of the call at a position. Returns the id of the call, unless it is the call of a sub-agent.
    pub(super) fn add(&mut self, index: u32, delta: &str) -> Option<&CallId> {
        let draft = self.by_position.get_mut(&index)?;
        if draft.call.is_none() {
            draft.arguments.push_str(delta);
        }
        draft.call.as_ref()
    }

    /// Returns the arguments of a sub-agent's call of the complete reply.
    pub(super) fn arguments_of_sub_agent(&self, call: &CallId) -> Option<&str> {
        let (last, draft) = self.by_position.last_key_value()?;
        let calls = usize::try_from(*last).ok()? + 1;
        let tools = calls.checked_sub(draft.sub_agents)?;
        let number = usize::try_from(call.index()?).ok()?.checked_sub(tools)?;
        let sub_agents = self.by_position.values().filter(|draft| draft.call.is_none());
        sub_agents.map(|draft| &*draft.arguments).nth(number)
    }

    /// Forgets the calls, because the reply is complete or discarded.
    pub(super) fn clear(&mut self) {
        self.by_position.clear();
    }
}
