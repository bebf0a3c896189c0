//! Names of workflows and activities. They follow from the log alone, so whoever makes one twice makes the same.

use std::collections::BTreeMap;

use helix_agents_core::id::CallId;
use helix_agents_runtime::{Part, RunRef};

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
    pub(crate) fn part(&mut self, part: &Part) -> (String, bool) {
        let name = match part {
            Part::Open => "open".to_owned(),
            Part::Model(step) => {
                self.step = *step;
                format!("model/{step}")
            }
            Part::Children => format!("children/{}", self.step),
            Part::Companions => format!("companions/{}", self.step),
            Part::Call(call) => return self.call(call),
            Part::Settle(_) => format!("settle/{}", self.step),
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
