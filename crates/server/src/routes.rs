//! The table of routes, from which the router, the OpenAPI document and the tests of authentication are made.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use helix_agents_core::id::SessionId;
use helix_agents_core::session::StopKind;
use http::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::api::{
    AgentsBody, AguiEventSchema, AnswerRequest, AnsweredBody, ChatBodySchema, CheckpointsBody,
    ForkRequest, ForkedBody, HealthBody, ListQuery, LogBody, LogQuery, MessageRequest,
    MessagesBody, OfPath, QueuedBody, ResumeRequest, RunAgentInputSchema, SessionBody,
    SessionsBody, StartRequest, StartedBody, StatusBody, StatusQuery, StopRequest, StoppedBody,
    StoredChunkSchema, StreamQuery, UiChunkSchema,
};
use crate::api_error::ApiError;
use crate::auth::{Action, Principal};
use crate::call::{Call, Handler, RUN_HEADER, Reply, SESSION_HEADER};
use crate::handlers::{
    ag_ui, answers, chat, description, forks, health, messages, sessions, starts, status, stops,
    streams,
};
use crate::openapi;
use crate::service::Service;

/// A function that adds the schema of a type to a document.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One route.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// The path, with parameters in braces.
    pub(crate) path: &'static str,
    /// The action for the authorizer; `None` if the route is open to everyone.
    pub(crate) action: Option<Action>,
    /// The name of the operation in the OpenAPI document.
    pub(crate) name: &'static str,
    /// One sentence about the route.
    pub(crate) summary: &'static str,
    pub(crate) input: Input,
    pub(crate) output: Output,
    pub(crate) handler: Handler,
}

/// The input of a route besides the parameters of its path.
#[derive(Clone, Copy)]
pub(crate) enum Input {
    None,
    /// Parameters of the query.
    Query(SchemaOf),
    /// A JSON body.
    Body(SchemaOf),
    /// A JSON body that may contain a whole conversation.
    ChatBody(SchemaOf),
}

/// The output of a route that succeeds.
#[derive(Clone, Copy)]
pub(crate) enum Output {
    /// A JSON body, and the statuses that it can have.
    Json(SchemaOf, &'static [StatusCode]),
    /// No content.
    Empty,
    /// Server-sent events: the stored chunks of a session, with their ids.
    Events(SchemaOf),
    /// Server-sent events of a front end's protocol.
    Turn(SchemaOf),
    /// The same, or no content if nothing is in progress.
    TurnOrEmpty(SchemaOf),
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const fn body<T: JsonSchema>() -> Input {
    Input::Body(schema::<T>)
}

const fn query<T: JsonSchema>() -> Input {
    Input::Query(schema::<T>)
}

const fn json<T: JsonSchema>(statuses: &'static [StatusCode]) -> Output {
    Output::Json(schema::<T>, statuses)
}

const OK: &[StatusCode] = &[StatusCode::OK];
const CREATED: &[StatusCode] = &[StatusCode::CREATED];
const ACCEPTED: &[StatusCode] = &[StatusCode::ACCEPTED];
const OK_OR_ACCEPTED: &[StatusCode] = &[StatusCode::OK, StatusCode::ACCEPTED];

/// All routes. A route that is not in the table does not exist, and a route in the table is authorized.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Method::POST,
        path: "/start",
        action: Some(Action::Start),
        name: "start",
        summary: "Starts a turn in a new or existing session, or attaches to the run with the given id.",
        input: body::<StartRequest>(),
        output: json::<StartedBody>(ACCEPTED),
        handler: |service, call| {
            with_body(service, call, |service, principal, request| {
                async move { started(&starts::start(&service, &principal, request).await?) }.boxed()
            })
        },
    },
    Route {
        method: Method::POST,
        path: "/resume",
        action: Some(Action::Resume),
        name: "resume",
        summary: "Resumes a session that was interrupted or suspended, failed, or stopped without ending.",
        input: body::<ResumeRequest>(),
        output: json::<StartedBody>(ACCEPTED),
        handler: |service, call| {
            with_body(service, call, |service, principal, request| {
                async move { started(&starts::resume(&service, &principal, request).await?) }
                    .boxed()
            })
        },
    },
    Route {
        method: Method::POST,
        path: "/interrupt",
        action: Some(Action::Stop),
        name: "interrupt",
        summary: "Requests that a run stop at its next step boundary. The session can be resumed.",
        input: body::<StopRequest>(),
        output: json::<StoppedBody>(OK_OR_ACCEPTED),
        handler: |service, call| {
            async move { stop(&service, &call.principal, call.json()?, StopKind::Interrupt).await }
                .boxed()
        },
    },
    Route {
        method: Method::POST,
        path: "/abort",
        action: Some(Action::Stop),
        name: "abort",
        summary: "Requests that a run stop immediately and end as aborted.",
        input: body::<StopRequest>(),
        output: json::<StoppedBody>(OK_OR_ACCEPTED),
        handler: |service, call| {
            async move { stop(&service, &call.principal, call.json()?, StopKind::Abort).await }
                .boxed()
        },
    },
    Route {
        method: Method::POST,
        path: "/submit-tool-result",
        action: Some(Action::Answer),
        name: "submitToolResult",
        summary: "Answers a pending call and resumes its session.",
        input: body::<AnswerRequest>(),
        output: json::<AnsweredBody>(ACCEPTED),
        handler: |service, call| {
            async move { answer(&service, &call.principal, call.json()?).await }.boxed()
        },
    },
    Route {
        method: Method::POST,
        path: "/messages",
        action: Some(Action::SendMessage),
        name: "sendMessage",
        summary: "Queues a message for a session. It enters the transcript between two steps, or with the next run.",
        input: body::<MessageRequest>(),
        output: json::<QueuedBody>(ACCEPTED),
        handler: |service, call| {
            with_body(service, call, |service, principal, request| {
                async move {
                    let queued = messages::send(&service, &principal, request).await?;
                    Reply::json(StatusCode::ACCEPTED, &queued)
                }
                .boxed()
            })
        },
    },
    Route {
        method: Method::POST,
        path: "/fork",
        action: Some(Action::Fork),
        name: "fork",
        summary: "Creates a session with the conversation of another one up to a checkpoint.",
        input: body::<ForkRequest>(),
        output: json::<ForkedBody>(CREATED),
        handler: |service, call| {
            with_body(service, call, |service, principal, request| {
                async move {
                    let forked = forks::fork(&service, &principal, request).await?;
                    let reply = Reply::json(StatusCode::CREATED, &forked)?;
                    Ok(reply.header(SESSION_HEADER, &forked.session_id))
                }
                .boxed()
            })
        },
    },
    Route {
        method: Method::GET,
        path: "/sse",
        action: Some(Action::Read),
        name: "stream",
        summary: "Streams the chunks of a root session, from any position, until no run is in progress.",
        input: query::<StreamQuery>(),
        output: Output::Events(schema::<StoredChunkSchema>),
        handler: |service, call| {
            async move {
                let stream = streams::open(&service, &call.principal, call.query()?, &call.headers);
                Ok(Reply::events(stream.await?))
            }
            .boxed()
        },
    },
    Route {
        method: Method::GET,
        path: "/status",
        action: Some(Action::Read),
        name: "status",
        summary: "Returns the status of a session with its last run, pending calls and usage.",
        input: query::<StatusQuery>(),
        output: json::<StatusBody>(OK),
        handler: |service, call| {
            async move { ok(&status::status(&service, &call.principal, call.query()?).await?) }
                .boxed()
        },
    },
    Route {
        method: Method::GET,
        path: "/sessions",
        action: Some(Action::List),
        name: "listSessions",
        summary: "Lists the caller's root sessions, newest first.",
        input: query::<ListQuery>(),
        output: json::<SessionsBody>(OK),
        handler: |service, call| {
            async move { ok(&sessions::list(&service, &call.principal, call.query()?).await?) }
                .boxed()
        },
    },
    Route {
        method: Method::GET,
        path: "/sessions/{id}",
        action: Some(Action::Read),
        name: "getSession",
        summary: "Returns a session with its messages, and the position at which its stream continues.",
        input: Input::None,
        output: json::<SessionBody>(OK),
        handler: |service, call| {
            async move {
                let session = SessionId::from(call.parameter("id"));
                ok(&sessions::show(&service, &call.principal, &session).await?)
            }
            .boxed()
        },
    },
    Route {
        method: Method::DELETE,
        path: "/sessions/{id}",
        action: Some(Action::Delete),
        name: "deleteSession",
        summary: "Deletes a root session with all its descendants and its stream.",
        input: Input::None,
        output: Output::Empty,
        handler: |service, call| {
            async move {
                let session = SessionId::from(call.parameter("id"));
                sessions::delete(&service, &call.principal, &session).await?;
                Ok(Reply::Empty)
            }
            .boxed()
        },
    },
    Route {
        method: Method::GET,
        path: "/sessions/{id}/log",
        action: Some(Action::ReadLog),
        name: "getLog",
        summary: "Returns a part of a session's log, for operators.",
        input: query::<LogQuery>(),
        output: json::<LogBody>(OK),
        handler: |service, call| {
            async move {
                let session = SessionId::from(call.parameter("id"));
                ok(&sessions::log(&service, &call.principal, &session, call.query()?).await?)
            }
            .boxed()
        },
    },
    Route {
        method: Method::GET,
        path: "/sessions/{id}/checkpoints",
        action: Some(Action::Read),
        name: "getCheckpoints",
        summary: "Returns the checkpoints of a session, to which it can be forked or rewound.",
        input: Input::None,
        output: json::<CheckpointsBody>(OK),
        handler: |service, call| {
            async move {
                let session = SessionId::from(call.parameter("id"));
                ok(&sessions::checkpoints(&service, &call.principal, &session).await?)
            }
            .boxed()
        },
    },
    Route {
        method: Method::POST,
        path: "/chat",
        action: Some(Action::Chat),
        name: "chat",
        summary: "Handles a request of the AI SDK's `useChat`, and streams the turn that it starts or continues.",
        input: Input::ChatBody(schema::<ChatBodySchema>),
        output: Output::Turn(schema::<UiChunkSchema>),
        handler: |service, call| async move { chat::post(&service, &call).await }.boxed(),
    },
    Route {
        method: Method::POST,
        path: "/agents/{agent}/chat",
        action: Some(Action::Chat),
        name: "chatWithAgent",
        summary: "Does the same as `/chat` with one agent.",
        input: Input::ChatBody(schema::<ChatBodySchema>),
        output: Output::Turn(schema::<UiChunkSchema>),
        handler: |service, call| async move { chat::post(&service, &call).await }.boxed(),
    },
    Route {
        method: Method::GET,
        path: "/chat/{id}/stream",
        action: Some(Action::Read),
        name: "resumeChat",
        summary: "Streams the turn in progress from its start, for `useChat` that resumes.",
        input: Input::None,
        output: Output::TurnOrEmpty(schema::<UiChunkSchema>),
        handler: |service, call| async move { chat::stream(&service, &call).await }.boxed(),
    },
    Route {
        method: Method::GET,
        path: "/chat/{id}/messages",
        action: Some(Action::Read),
        name: "getChatMessages",
        summary: "Returns the messages of a chat, with which a page that opens it starts `useChat`.",
        input: Input::None,
        output: json::<MessagesBody>(OK),
        handler: |service, call| async move { chat::messages(&service, &call).await }.boxed(),
    },
    Route {
        method: Method::POST,
        path: "/chat/{id}/submit-tool-result",
        action: Some(Action::Answer),
        name: "submitChatToolResult",
        summary: "Does the same as `/submit-tool-result` with the session of the path.",
        input: body::<OfPath<AnswerRequest>>(),
        output: json::<AnsweredBody>(ACCEPTED),
        handler: |service, call| {
            async move { answer(&service, &call.principal, call.json_of_path()?).await }.boxed()
        },
    },
    Route {
        method: Method::POST,
        path: "/chat/{id}/interrupt",
        action: Some(Action::Stop),
        name: "interruptChat",
        summary: "Does the same as `/interrupt` with the session of the path.",
        input: body::<OfPath<StopRequest>>(),
        output: json::<StoppedBody>(OK_OR_ACCEPTED),
        handler: |service, call| {
            async move {
                let request = call.json_of_path()?;
                stop(&service, &call.principal, request, StopKind::Interrupt).await
            }
            .boxed()
        },
    },
    Route {
        method: Method::POST,
        path: "/chat/{id}/abort",
        action: Some(Action::Stop),
        name: "abortChat",
        summary: "Does the same as `/abort` with the session of the path.",
        input: body::<OfPath<StopRequest>>(),
        output: json::<StoppedBody>(OK_OR_ACCEPTED),
        handler: |service, call| {
            async move {
                let request = call.json_of_path()?;
                stop(&service, &call.principal, request, StopKind::Abort).await
            }
            .boxed()
        },
    },
    Route {
        method: Method::POST,
        path: "/agui/{agent}",
        action: Some(Action::Chat),
        name: "runAgui",
        summary: "Handles a `RunAgentInput` of AG-UI, and streams the events of the turn that it starts or continues.",
        input: Input::ChatBody(schema::<RunAgentInputSchema>),
        output: Output::Turn(schema::<AguiEventSchema>),
        handler: |service, call| async move { ag_ui::run(&service, &call).await }.boxed(),
    },
    Route {
        method: Method::POST,
        path: "/agui/{agent}/connect",
        action: Some(Action::Read),
        name: "connectAgui",
        summary: "Streams the turn in progress or the last one to a client of AG-UI, and changes nothing.",
        input: Input::ChatBody(schema::<RunAgentInputSchema>),
        output: Output::Turn(schema::<AguiEventSchema>),
        handler: |service, call| async move { ag_ui::connect(&service, &call).await }.boxed(),
    },
    Route {
        method: Method::GET,
        path: "/agui/{agent}/capabilities",
        action: Some(Action::Describe),
        name: "getAguiCapabilities",
        summary: "Returns what an agent supports, for clients of AG-UI.",
        input: Input::None,
        output: json::<serde_json::Value>(OK),
        handler: |service, call| async move { ag_ui::capabilities(&service, &call) }.boxed(),
    },
    Route {
        method: Method::GET,
        path: "/agents",
        action: Some(Action::Describe),
        name: "listAgents",
        summary: "Lists the agents of the server.",
        input: Input::None,
        output: json::<AgentsBody>(OK),
        handler: |service, _| async move { ok(&description::agents(&service)) }.boxed(),
    },
    Route {
        method: Method::GET,
        path: "/openapi.json",
        action: Some(Action::Describe),
        name: "describe",
        summary: "Returns the OpenAPI document of the server.",
        input: Input::None,
        output: json::<serde_json::Value>(OK),
        handler: |_, _| async move { ok(&openapi::document()) }.boxed(),
    },
    Route {
        method: Method::GET,
        path: "/health/live",
        action: None,
        name: "live",
        summary: "Returns that the process answers requests. It needs no credentials.",
        input: Input::None,
        output: json::<HealthBody>(OK),
        handler: |_, _| async move { ok(&health::live()) }.boxed(),
    },
    Route {
        method: Method::GET,
        path: "/health/ready",
        action: Some(Action::CheckReadiness),
        name: "ready",
        summary: "Returns whether the server takes new runs and its store answers.",
        input: Input::None,
        output: json::<HealthBody>(OK),
        handler: |service, _| async move { ok(&health::ready(&service).await?) }.boxed(),
    },
];

type Handled = BoxFuture<'static, Result<Reply, ApiError>>;

/// Decodes the body and passes it to a handler.
fn with_body<T>(
    service: Arc<Service>,
    call: Call,
    handle: fn(Arc<Service>, Principal, T) -> Handled,
) -> Handled
where
    T: serde::de::DeserializeOwned + Send + 'static,
{
    match call.json() {
        Ok(request) => handle(service, call.principal, request),
        Err(error) => async { Err(error) }.boxed(),
    }
}

async fn answer(
    service: &Arc<Service>,
    principal: &Principal,
    request: AnswerRequest,
) -> Result<Reply, ApiError> {
    let answered = answers::answer(service, principal, request).await?;
    let reply =
        Reply::json(StatusCode::ACCEPTED, &answered)?.header(SESSION_HEADER, &answered.session_id);
    Ok(match &answered.run_id {
        Some(run) => reply.header(RUN_HEADER, run),
        None => reply,
    })
}

async fn stop(
    service: &Service,
    principal: &Principal,
    request: StopRequest,
    kind: StopKind,
) -> Result<Reply, ApiError> {
    let stopped = stops::stop(service, principal, request, kind).await?;
    let status = if stopped.ended { StatusCode::OK } else { StatusCode::ACCEPTED };
    Reply::json(status, &stopped)
}

fn started(body: &StartedBody) -> Result<Reply, ApiError> {
    let reply = Reply::json(StatusCode::ACCEPTED, body)?;
    Ok(reply.header(SESSION_HEADER, &body.session_id).header(RUN_HEADER, &body.run_id))
}

fn ok(body: &impl serde::Serialize) -> Result<Reply, ApiError> {
    Reply::json(StatusCode::OK, body)
}
