//! `GET /agents`.

use crate::api::{AgentBody, AgentsBody};
use crate::service::Service;

/// Returns the agents of the server.
pub(crate) fn agents(service: &Service) -> AgentsBody {
    let agents = service.registry.names().into_iter().map(|agent_type| AgentBody { agent_type });
    AgentsBody { agents: agents.collect() }
}
