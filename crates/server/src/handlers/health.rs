//! `GET /health/live` and `GET /health/ready`.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::id::SessionId;

use crate::api::HealthBody;
use crate::api_error::ApiError;
use crate::service::Service;

/// The time within which the store of a ready server answers.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// A session that does not exist: users cannot choose an id with `-agent-`.
const PROBE: &str = "health-agent-probe";

/// Returns that the process answers requests.
pub(crate) fn live() -> HealthBody {
    HealthBody { status: "ok".to_owned() }
}

/// Returns that the server takes new runs: it is not shutting down, and its store answers within a second.
pub(crate) async fn ready(service: &Service) -> Result<HealthBody, ApiError> {
    service.check_open()?;
    let probe = SessionId::from(PROBE);
    tokio::time::timeout(STORE_TIMEOUT, service.store.head(&probe)).await.map_err(|_| {
        Error::new(ErrorCode::StoreUnavailable, "the store did not answer within a second")
    })??;
    Ok(live())
}
