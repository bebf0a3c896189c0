//! The result of a run.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::session::{RunRecord, RunStatus};
use crate::error::{Error, ErrorCode, ErrorRecord, Result};
use crate::event::Suspension;
use crate::json::Json;
use crate::json::misfit::misfit;

/// The result of a run that has ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AgentResult<O = Json> {
    /// The status of the run.
    pub status: RunStatus,
    /// The output, if the run completed with one.
    pub output: Option<O>,
    /// The error, if the run failed.
    pub error: Option<ErrorRecord>,
    /// The reason given with the request, if the run was interrupted or aborted.
    pub reason: Option<String>,
    /// The pending calls and children, if the run was suspended.
    pub suspended: Option<Arc<Suspension>>,
}

impl AgentResult {
    /// Creates the result of a run that ended with this status, without an output. All fields can be
    /// changed.
    #[must_use]
    pub const fn new(status: RunStatus) -> Self {
        Self { status, output: None, error: None, reason: None, suspended: None }
    }

    /// Returns the result of a run that has ended.
    #[must_use]
    pub fn of(run: &RunRecord) -> Self {
        Self {
            status: run.status,
            output: run.output.clone(),
            error: run.error.clone(),
            reason: run.reason.clone(),
            suspended: run.suspended.clone(),
        }
    }

    /// Converts the output into a type.
    ///
    /// # Errors
    /// Returns [`ErrorCode::OutputInvalid`] if the recorded output does not fit the type.
    pub fn typed<O: DeserializeOwned>(self) -> Result<AgentResult<O>> {
        let typed = |output: Json| {
            output.to_typed().map_err(|_| {
                let misfit = misfit::<O>(&output.to_value());
                let message = format!("the recorded output does not fit the type: {misfit}");
                Error::new(ErrorCode::OutputInvalid, message)
            })
        };
        let output = self.output.map(typed).transpose()?;
        let Self { status, error, reason, suspended, .. } = self;
        Ok(AgentResult { status, output, error, reason, suspended })
    }
}

impl<O> AgentResult<O> {
    /// Returns the output, or an error that explains why there is none.
    ///
    /// # Errors
    /// Returns the run's own error code if it failed, [`ErrorCode::Cancelled`] if it was
    /// interrupted or aborted, [`ErrorCode::Suspended`] if it is suspended,
    /// [`ErrorCode::OutputInvalid`] if it completed without output.
    pub fn into_output(self) -> Result<O> {
        if let Some(output) = self.output {
            return Ok(output);
        }
        if let Some(error) = &self.error {
            return Err(error.to_error(ErrorCode::Internal));
        }
        let code = match self.status {
            RunStatus::Completed => ErrorCode::OutputInvalid,
            status if status.is_suspended() => ErrorCode::Suspended,
            _ => ErrorCode::Cancelled,
        };
        let message = match self.status {
            RunStatus::Completed => "the run has completed without an output".to_owned(),
            status if status.is_suspended() => {
                "the run is suspended and has no output yet; answer its pending calls or wait for \
                 its children, and resume it"
                    .to_owned()
            }
            status => format!("the run is {} and has no output", status.as_str()),
        };
        Err(Error::new(code, message))
    }
}
