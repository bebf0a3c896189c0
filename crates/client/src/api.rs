//! Requests and responses of the API.

mod requests;
mod responses;

pub use requests::{ResumeRequest, SessionQuery, StartRequest, StopRequest};
pub(crate) use responses::{AgentsBody, CheckpointsBody, ForkedBody, QueuedBody, StoppedBody};
pub use responses::{
    Answered, Listing, LogPage, Resumption, RunSummary, SessionDetails, SessionSummary, Started,
    Status,
};
