//! The result of submitting an answer.

use super::RunHandle;
use crate::error::Error;
use crate::id::SessionId;

/// An answer that is recorded.
#[derive(Debug)]
pub struct Submitted {
    /// The session that made the call: the root, or one below it.
    pub session: SessionId,
    /// The outcome of resuming the root.
    pub resumption: Resumption,
}

/// The outcome of resuming a session after an answer to one of its calls.
#[derive(Debug)]
#[non_exhaustive]
pub enum Resumption {
    /// No: the executor was built without `auto_resume`, so that is left to `resume`.
    NotRequested,
    /// Yes: this run was started.
    Started(RunHandle),
    /// No: a run is under way, here or in another process, and takes the answer.
    Running,
    /// No: other calls or children still have to be waited for.
    Waiting,
    /// No: the session has ended meanwhile.
    Ended,
    /// No: it failed with this error. The answer stays recorded. `resume` or `sweep` resumes the session later, and
    /// so does submitting the answer again under the same [`request`](crate::session::Submission::request).
    Failed(Error),
}
