//! The routes for clients of AG-UI.

use std::sync::Arc;

use helix_agents_core::id::SessionId;
use helix_agents_protocols::ag_ui::{Options, RunAgentInput, RunIntent};
use http::StatusCode;
use serde_json::json;

use super::turns;
use crate::api_error::ApiError;
use crate::call::{Call, Reply};
use crate::front_end::AgUi;
use crate::limits::Permit;
use crate::ownership::Accessible;
use crate::service::Service;
use crate::view::View;

/// Handles a request to run an agent: a message of the user, or answers to calls. A request that has neither, or whose
/// run is known, joins the turn in progress.
pub(crate) async fn run(service: &Arc<Service>, call: &Call) -> Result<Reply, ApiError> {
    let principal = &call.principal;
    let input = RunAgentInput::decode(&call.body, &service.limits.chat_request())?;
    let permit = service.admit_stream(principal)?;
    let (session, agent) = (input.session()?, call.parameter("agent"));
    if let RunIntent::Say { message } = &input.intent {
        let agent = turns::agent_for(service, principal, &session, Some(agent)).await?;
        let (message, run) = (message.clone(), input.run_id()?);
        turns::say(service, principal, session.clone(), &agent, message, Some(run)).await?;
    }
    let found = turns::conversation(service, principal, &session, Some(agent)).await?;
    match &input.intent {
        RunIntent::Say { .. } | RunIntent::Join => {}
        RunIntent::Answer { answers } => {
            let view = View::read_with_last_run(service, &found.identity()).await?;
            turns::answer(service, principal, &found, &view, answers).await?;
        }
        _ => return Err(ApiError::invalid("the server does not know this kind of request")),
    }
    show(service, &found, input, permit).await
}

/// Shows the present turn of a session, whatever the request contains besides the session.
pub(crate) async fn connect(service: &Arc<Service>, call: &Call) -> Result<Reply, ApiError> {
    let input = RunAgentInput::decode(&call.body, &service.limits.chat_request())?;
    let permit = service.admit_stream(&call.principal)?;
    let (session, agent) = (input.session()?, Some(call.parameter("agent")));
    let found = turns::conversation(service, &call.principal, &session, agent).await?;
    show(service, &found, input, permit).await
}

/// Returns the capabilities of an agent.
pub(crate) fn capabilities(service: &Service, call: &Call) -> Result<Reply, ApiError> {
    let name = call.parameter("agent");
    service.agent(name, &SessionId::from("capabilities"))?;
    let capabilities = json!({
        "identity": { "name": name, "type": "helix-agents", "version": env!("CARGO_PKG_VERSION") },
        "transport": { "streaming": true, "resumable": true },
        "state": { "snapshots": true, "deltas": true, "persistentState": true },
        "reasoning": { "supported": true, "streaming": true },
        "humanInTheLoop": { "supported": true, "approvals": true, "interrupts": true },
    });
    Reply::json(StatusCode::OK, &capabilities)
}

async fn show(
    service: &Arc<Service>,
    found: &Accessible,
    input: RunAgentInput,
    permit: Permit,
) -> Result<Reply, ApiError> {
    let view = View::read_with_last_run(service, &found.identity()).await?;
    let options = Options::default().error_texts(service.error_texts());
    let translator = AgUi::new(&view, input, options);
    Ok(turns::show(service, found, &view, translator, permit).await?)
}
