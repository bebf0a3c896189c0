//! Names of workflows and activities. They follow from the log alone, so whoever makes one twice makes the same.

use std::collections::BTreeMap;

use helix_agents_core::id::CallId;
use helix_agents_runtime::{RunRef, WorkItem};

#[cfg(test)]
mod tests;

/// What people see beside the id.
pub(crate) fn summary(of: &RunRef) -> String {
    format!("{} in session {}, run {}", of.agent, of.session, of.number + 1)
}

/// The ids of a workflow's activities.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The step that the run is in.
    pub step: u32,
    /// How often each name was given.
    given: BTreeMap<String, u32>,
}

impl Names {
    pub(crate) fn from_step(step: u32) -> Self {
        Self { step, ..Self::default() }
    }

    /// The id of a part, and whether it is the first of that name.
    pub(crate) fn part(&mut self, part: &WorkItem) -> (String, bool) {
        let name = match part {
            WorkItem::Open => "open".to_owned(),
            WorkItem::Model(step) => {
                self.step = *step;
                format!("model/{step}")
            }
            WorkItem::Children => format!("children/{}", self.step),
            WorkItem::Companions => format!("companions/{}", self.step),
            WorkItem::Call(call) => return self.call(call),
            WorkItem::Settle(_) => format!("settle/{}", self.step),
        };
        self.give(name)
    }

    /// The id of a call, and whether it is the first of that name.
    pub(crate) fn call(&mut self, call: &CallId) -> (String, bool) {
        self.give(format!("call/{call}"))
    }

    /// The id of waiting for the child of a call.
    pub(crate) fn follow(&mut self, call: &CallId) -> String {
        self.give(format!("follow/{call}")).0
    }

    fn give(&mut self, name: String) -> (String, bool) {
        let given = self.given.entry(name.clone()).or_default();
        *given += 1;
        match *given {
            1 => (name, true),
            again => (format!("{name}/{again}"), false),
        }
    }
}
