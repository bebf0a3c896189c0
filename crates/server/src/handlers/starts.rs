//! `POST /start` and `POST /resume`.

use std::collections::BTreeMap;
use std::sync::Arc;

use helix_agents_core::agent::AnyAgent;
use helix_agents_core::budget::Budget;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{ExecuteOptions, Input, ResumeOptions, RunHandle};
use helix_agents_core::id::{RequestId, RunId, SessionId};
use helix_agents_core::session::SessionReader;
use sha2::{Digest as _, Sha256};

use crate::api::{ResumeRequest, StartRequest, StartedBody};
use crate::api_error::ApiError;
use crate::auth::{Principal, Scope};
use crate::metadata;
use crate::ownership::{Accessible, OWNER_TAG, accessible, find};
use crate::service::Service;

/// The prefix of generated session ids.
const GENERATED: &str = "ses_";

/// Starts a turn, or attaches to the run with the given id.
///
/// A client that lost the response sends the request again with the same run id. Without a session id, the session's id
/// then follows from the principal and the run id, so that the repetition finds the session.
pub(crate) async fn start(
    service: &Arc<Service>,
    principal: &Principal,
    request: StartRequest,
) -> Result<StartedBody, ApiError> {
    let run = request.run_id.map(RunId::validated).transpose()?;
    let is_chosen = request.session_id.is_some();
    let session = match (request.session_id, &run) {
        (Some(chosen), _) => SessionId::validated(chosen)?,
        (None, Some(run)) => session_of_run(principal, run),
        (None, None) => new_session(),
    };
    let mut input = Input::new(request.message.into_message()?);
    input.state = request.state;
    let (agent, metadata, budget) = (&request.agent_type, &request.metadata, request.budget);
    let launched = Launch { session, is_chosen, agent, run, input, metadata, budget };
    Ok(started(&launch(service, principal, launched).await?))
}

/// A turn to start.
pub(crate) struct Launch<'a> {
    /// The session, which may not exist yet.
    pub(crate) session: SessionId,
    /// Whether the caller has chosen the session's id.
    pub(crate) is_chosen: bool,
    /// The name of the agent.
    pub(crate) agent: &'a str,
    /// The id of the run. If the session has this run, the caller is attached to it.
    pub(crate) run: Option<RunId>,
    pub(crate) input: Input,
    /// Labels of a new session.
    pub(crate) metadata: &'a BTreeMap<String, String>,
    /// Limits on the session's usage.
    pub(crate) budget: Option<Budget>,
}

/// Starts a turn in a session of the principal, or attaches to its run.
pub(crate) async fn launch(
    service: &Arc<Service>,
    principal: &Principal,
    launch: Launch<'_>,
) -> Result<RunHandle, ApiError> {
    let Launch { session, is_chosen, agent, run, input, metadata, budget } = launch;
    let existing = find(&*service.store, principal, &session).await?;
    match &existing {
        Some(found) => found.check_root()?,
        None if is_chosen => check_chosen(&session)?,
        None => {}
    }
    // A repeated request takes no room: its run is in progress or has ended.
    let is_repeated = match (&existing, &run) {
        (Some(_), Some(run)) => attaches(service, &session, run).await?,
        _ => false,
    };
    let permit = if is_repeated { None } else { Some(service.admit_run(principal)?) };
    if existing.is_none() {
        service.check_quota(principal.id()).await?;
    }
    let agent = service.agent(agent, &session)?;
    let mut options = ExecuteOptions::default().session(session);
    options.run = run;
    options.budget = permitted_budget(principal, &agent, budget);
    options.trace = principal.trace();
    // The session is that of its owner even if another caller creates one with this id right now.
    options = match existing.as_ref().map(Accessible::owner) {
        Some(Some(owner)) => options.required_tag(OWNER_TAG, owner),
        // A principal with access to all sessions continues one without an owner.
        Some(None) => options.tag(OWNER_TAG, principal.id()),
        None => options.required_tag(OWNER_TAG, principal.id()),
    };
    for (name, value) in metadata::to_tags(metadata)? {
        options = options.tag(name, value);
    }
    let handle = service.executor.execute(agent, input, options).await?;
    if let Some(permit) = permit {
        service.watch_run(handle.clone(), permit);
    }
    Ok(handle)
}

/// Resumes a session.
pub(crate) async fn resume(
    service: &Arc<Service>,
    principal: &Principal,
    request: ResumeRequest,
) -> Result<StartedBody, ApiError> {
    let session = SessionId::from(request.session_id);
    let found = accessible(&*service.store, principal, &session).await?;
    found.check_root()?;
    let permit = service.admit_run(principal)?;
    let mut options = ResumeOptions::default();
    options.after = request.after.map(RunId::validated).transpose()?;
    options.message = request.message.map(|message| message.into_message()).transpose()?;
    options.checkpoint = request.checkpoint;
    options.trace = principal.trace();
    options.required_tags = found.required_tags();
    let agent = service.agent(&found.head.created.agent, &session)?;
    options.budget = permitted_budget(principal, &agent, request.budget);
    let handle = service.executor.resume(agent, &session, options).await?;
    let body = started(&handle);
    service.watch_run(handle, permit);
    Ok(body)
}

/// Returns `true` if a start with this id attaches to the last run of the session.
async fn attaches(service: &Service, session: &SessionId, run: &RunId) -> Result<bool, ApiError> {
    let fold = SessionReader::of(&*service.store).overview(session).await?;
    let is_last = fold.last_run().is_some_and(|last| last.id == *run);
    Ok(is_last || fold.knows_message(&RequestId::from(run.as_str())))
}

fn started(handle: &RunHandle) -> StartedBody {
    StartedBody {
        session_id: handle.session().to_string(),
        stream_id: handle.session().to_string(),
        run_id: handle.run().to_string(),
    }
}

/// Returns the budget that a principal may set: no limit exceeds that of the agent, except for a principal with access to
/// all sessions.
fn permitted_budget(
    principal: &Principal,
    agent: &AnyAgent,
    requested: Option<Budget>,
) -> Option<Budget> {
    requested.map(|requested| {
        if principal.has_scope(Scope::AllSessions) {
            requested
        } else {
            requested.smaller(*agent.budget())
        }
    })
}

/// Checks the id that a caller chooses for a new session. Generated ids are reserved, because those of sessions that
/// other principals are about to start can be computed.
pub(crate) fn check_chosen(session: &SessionId) -> Result<(), ApiError> {
    if session.as_str().starts_with(GENERATED) {
        let message = "the id of a new session must not start like a generated one";
        return Err(ApiError::new(ErrorCode::IdInvalid, message));
    }
    Ok(())
}

fn new_session() -> SessionId {
    use helix_agents_core::clock::IdSourceExt as _;
    helix_agents_runtime::SystemIds.session()
}

/// Returns the id of the session that a request without a session id, but with a run id, creates. It differs for each
/// principal and is the same for a repeated request.
fn session_of_run(principal: &Principal, run: &RunId) -> SessionId {
    let digest =
        Sha256::new().chain_update(principal.id()).chain_update([0]).chain_update(run.as_str());
    let digest = digest.finalize();
    let digits: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    SessionId::from(format!("{GENERATED}{digits}"))
}
