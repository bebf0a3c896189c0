//! Digests of the store's answers. They are hashed to compare two executions of the same story.

use std::fmt::Debug;

use helix_agents_core::store::{
    AppendOutcome, CreateOutcome, ForkOutcome, Head, Renewal, SessionUsage, Snapshot, StoredAppend,
};

/// An answer of the store. It is compared with the model's answer as a whole, and only its digest is hashed.
pub(crate) trait Answer: Debug + PartialEq {
    /// Returns the part of the answer that depends on the time of the request. The rest was hashed when it was written.
    fn digest(&self) -> [u64; 3];
}

impl Answer for () {
    fn digest(&self) -> [u64; 3] {
        [0; 3]
    }
}

impl Answer for bool {
    fn digest(&self) -> [u64; 3] {
        [u64::from(*self), 0, 0]
    }
}

impl Answer for u64 {
    fn digest(&self) -> [u64; 3] {
        [*self, 0, 0]
    }
}

impl Answer for Head {
    fn digest(&self) -> [u64; 3] {
        let lease = self.lease_until.map_or(0, |until| until.0.unsigned_abs());
        [self.position.version, lease, self.read_at.0.unsigned_abs()]
    }
}

impl Answer for Renewal {
    fn digest(&self) -> [u64; 3] {
        let [version, lease, at] = self.head.digest();
        [version << 1 | u64::from(self.renewed), lease, at]
    }
}

impl Answer for StoredAppend {
    fn digest(&self) -> [u64; 3] {
        [self.first, self.count.into(), self.at.0.unsigned_abs()]
    }
}

impl Answer for SessionUsage {
    fn digest(&self) -> [u64; 3] {
        let steps = self.usage.as_ref().map_or(u64::MAX, |usage| usage.steps);
        [self.head.position.version, steps, 0]
    }
}

impl Answer for Snapshot {
    fn digest(&self) -> [u64; 3] {
        [self.position.version, 0, 0]
    }
}

impl Answer for AppendOutcome {
    fn digest(&self) -> [u64; 3] {
        match self {
            Self::Appended { at } => [1, at.0.unsigned_abs(), 0],
            Self::Conflict { missed } => [2, missed.len() as u64, missed.digest()[1]],
            Self::GuardFailed { lease_until, now } => {
                [3, lease_until.map_or(0, |until| until.0.unsigned_abs()), now.0.unsigned_abs()]
            }
            Self::HistoryLost => [4, 0, 0],
        }
    }
}

impl Answer for CreateOutcome {
    fn digest(&self) -> [u64; 3] {
        match self {
            Self::Created { at } => [1, at.0.unsigned_abs(), 0],
            Self::Exists => [2, 0, 0],
        }
    }
}

impl Answer for ForkOutcome {
    fn digest(&self) -> [u64; 3] {
        match self {
            Self::Created { at } => [1, at.0.unsigned_abs(), 0],
            Self::Exists => [2, 0, 0],
            Self::HistoryLost => [3, 0, 0],
        }
    }
}

impl<T: Answer> Answer for Option<T> {
    fn digest(&self) -> [u64; 3] {
        self.as_ref().map_or([u64::MAX; 3], Answer::digest)
    }
}

impl<T: Answer> Answer for Vec<T> {
    fn digest(&self) -> [u64; 3] {
        let digests = self.iter().map(Answer::digest);
        let mixed = digests.flatten().fold(0_u64, |mixed, word| {
            (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
        });
        [self.len() as u64, mixed, 0]
    }
}
