//! The result of submitting an answer.

use super::RunHandle;
use crate::error::Error;
use crate::id::SessionId;

/// A recorded answer.
#[derive(Debug)]
pub struct Submitted {
    /// The session that made the call: the root session, or one of its descendants.
    pub session: SessionId,
    /// The outcome of resuming the root session.
    pub resumption: Resumption,
}

/// The outcome of resuming a session after an answer to one of its calls.
#[derive(Debug)]
#[non_exhaustive]
pub enum Resumption {
    /// The session was not resumed: the executor was built without `auto_resume`. Call `resume`.
    NotRequested,
    /// This run was started.
    Started(RunHandle),
    /// The session was not resumed: a run in this or another process is live and handles the
    /// answer.
    Running,
    /// The session was not resumed: it still waits for other calls or children.
    Waiting,
    /// The session was not resumed: it has ended.
    Ended,
    /// Resuming failed with this error. The answer stays recorded. `resume` or `sweep` can resume
    /// the session later, and so can submitting the answer again under the same
    /// [`request`](crate::session::Submission::request).
    Failed(Error),
}
