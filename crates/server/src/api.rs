//! The JSON of requests and responses.

mod conversations;
mod message;
mod requests;
mod responses;
mod schema;

pub(crate) use conversations::{
    AguiEventSchema, ChatBodySchema, MessagesBody, OfPath, RunAgentInputSchema, UiChunkSchema,
};
pub(crate) use message::MessageBody;
pub(crate) use requests::{
    AnswerRequest, ForkRequest, ListQuery, LogQuery, MessageRequest, ResumeRequest, StartRequest,
    StatusQuery, StopRequest, StreamQuery,
};
pub(crate) use responses::{
    AgentBody, AgentsBody, AnsweredBody, CheckpointsBody, ForkedBody, HealthBody, LogBody,
    QueuedBody, ResumptionBody, RunBody, SessionBody, SessionsBody, ShownMessage, StartedBody,
    StatusBody, StoppedBody, SummaryBody,
};
pub(crate) use schema::StoredChunkSchema;
