//! The attempts at effects whose chunks were read, and the ids of their custom events.

use std::collections::BTreeMap;

use helix_agents_core::stream::{Attempt, Chunk};

/// The open attempts, and the numbers of custom events so far.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    open: BTreeMap<Attempt, Purpose>,
    /// The number of custom events by the text of their effect.
    customs: BTreeMap<String, u64>,
}

/// The effect of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The model call of a step of the root session.
    Model { step: u32 },
    /// The model call of a step of a sub-agent, by its reference.
    ModelOfChild { reference: String },
    /// A call, by its reference.
    Call { call: String },
}

impl Purpose {
    fn model(chunk: &Chunk, is_root: bool) -> Self {
        let step = chunk.step;
        if is_root {
            Self::Model { step }
        } else {
            Self::ModelOfChild { reference: format!("{}#model-{step}", chunk.session) }
        }
    }

    /// Returns the text that is the same for all attempts at the effect.
    fn effect(&self) -> String {
        match self {
            Self::Model { step } => format!("model-{step}"),
            Self::ModelOfChild { reference } => reference.clone(),
            Self::Call { call } => call.clone(),
        }
    }
}

impl Attempts {
    /// Adds the attempt at a model call.
    pub(super) fn start_model(&mut self, attempt: Option<Attempt>, chunk: &Chunk, is_root: bool) {
        if let Some(attempt) = attempt {
            self.open.entry(attempt).or_insert_with(|| Purpose::model(chunk, is_root));
        }
    }

    /// Adds an attempt at a call. Its custom events replace those of earlier attempts.
    pub(super) fn start_call(&mut self, attempt: Option<Attempt>, call: &str) {
        self.customs.remove(call);
        self.open.extend(attempt.map(|attempt| (attempt, Purpose::Call { call: call.to_owned() })));
    }

    /// Forgets an attempt, because its outcome is recorded.
    pub(super) fn settle(&mut self, attempt: Attempt) {
        self.open.remove(&attempt);
    }

    /// Removes a discarded attempt. Returns its effect, if it is known.
    pub(super) fn discard(&mut self, attempt: Attempt) -> Option<Purpose> {
        let purpose = self.open.remove(&attempt)?;
        self.customs.remove(&purpose.effect());
        Some(purpose)
    }

    /// Returns the id of a custom event. Another attempt at the same effect repeats the ids. An event outside of an
    /// attempt is never repeated, so its id contains its position in the stream.
    pub(super) fn custom_id(
        &mut self,
        attempt: Option<Attempt>,
        chunk: &Chunk,
        is_root: bool,
        seq: Option<u64>,
    ) -> String {
        self.start_model(attempt, chunk, is_root);
        let purpose = attempt.and_then(|attempt| self.open.get(&attempt));
        let effect = match purpose {
            Some(purpose) => purpose.effect(),
            None if is_root => format!("step-{}", chunk.step),
            None => format!("{}#step-{}", chunk.session, chunk.step),
        };
        if let (None, Some(seq)) = (purpose, seq) {
            return format!("{effect}-{seq}");
        }
        let count = self.customs.entry(effect.clone()).or_default();
        *count += 1;
        format!("{effect}-{count}")
    }
}
