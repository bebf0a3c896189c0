//! Agents behind HTTP.
//!
//! [`AgentServer`] puts an executor, a registry of agents and a store behind routes with which clients start, follow,
//! answer and stop runs. It fails closed: [`AgentServerBuilder`] has no `build` before it knows who may send requests,
//! and a principal has access to the sessions that it has created and to no others.
//!
//! The handlers are functions over decoded requests. Only `pipeline` and `router` know axum, and only `serve` knows
//! sockets.

mod access;
mod agent_server;
mod api;
mod api_error;
mod auth;
mod builder;
mod call;
mod event_stream;
mod front_end;
mod handlers;
mod limits;
mod metadata;
mod openapi;
mod ownership;
mod pipeline;
mod redaction;
mod router;
mod routes;
mod service;
mod view;

pub use agent_server::AgentServer;
pub use auth::{Action, Authorizer, Principal, Refusal, Role, Scope, Tokens, token_digest};
pub use builder::{AgentServerBuilder, NoAuthorizer, WithAuthorizer};
pub use helix_agents_protocols::ai_sdk::Major;
pub use limits::{Limits, Rate};
pub use ownership::OWNER_TAG;
