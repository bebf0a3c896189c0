//! Summaries of workflows and ids of activities. They depend only on the run and the sequence of its work items, so a
//! replay generates the same ones.

use std::collections::BTreeMap;

use helix_agents_core::id::CallId;
use helix_agents_runtime::{RunRef, WorkItem};

#[cfg(test)]
mod tests;

/// Returns the summary of a workflow that is displayed next to its id.
pub(crate) fn summary(run_ref: &RunRef) -> String {
    format!("{} in session {}, run {}", run_ref.agent, run_ref.session, run_ref.number + 1)
}

/// Generates the ids of a workflow's activities.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The current step of the run.
    pub step: u32,
    /// The number of uses of each name.
    given: BTreeMap<String, u32>,
}

impl Names {
    pub(crate) fn from_step(step: u32) -> Self {
        Self { step, ..Self::default() }
    }

    /// Returns the id of a work item, and `true` if its name is used for the first time.
    pub(crate) fn item(&mut self, item: &WorkItem) -> (String, bool) {
        let name = match item {
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

    /// Returns the id of a call, and `true` if its name is used for the first time.
    pub(crate) fn call(&mut self, call: &CallId) -> (String, bool) {
        self.give(format!("call/{call}"))
    }

    /// Returns the id of a wait for the child of a call.
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
