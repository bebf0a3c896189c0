//! Logs of sessions.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::RecordedEvent;
use helix_agents_core::id::SessionId;
use helix_agents_core::session::Session;

use super::Client;
use crate::api::LogPage;
use crate::error::{ClientError, Result};
use crate::transport::Request;

/// The number of appends that are read at once. An append may have several megabytes.
const APPENDS: u32 = 100;

impl Client {
    /// Returns a part of a session's log: at most `limit` appends after the position `after`, where 0 is the start of
    /// the log. [`LogPage::next`] is the position of the next part.
    ///
    /// # Errors
    /// Returns `session_not_found`, and the errors of [requests](Self#errors).
    pub async fn log(&self, session: &SessionId, after: u64, limit: u32) -> Result<LogPage> {
        let request = Request::get(&["sessions", session.as_str(), "log"])
            .query("after", Some(after))
            .query("limit", Some(limit));
        self.transport.json(&request).await
    }

    /// Returns all events of a session's log.
    ///
    /// # Errors
    /// Returns `session_not_found`, and the errors of [requests](Self#errors).
    pub async fn events(&self, session: &SessionId) -> Result<Vec<RecordedEvent>> {
        let mut page = self.log(session, 0, APPENDS).await?;
        let mut events = page.events;
        while let Some(next) = page.next {
            page = self.log(session, next, APPENDS).await?;
            events.append(&mut page.events);
        }
        Ok(events)
    }

    /// Returns a session with its whole history, computed from its log.
    ///
    /// # Errors
    /// Returns `session_not_found`, `server_protocol` if this version cannot read the log, and the errors of
    /// [requests](Self#errors).
    pub async fn load(&self, session: &SessionId) -> Result<Session> {
        let mut fold = Session::new(session.clone());
        for event in self.events(session).await? {
            fold.apply_recorded(&event).map_err(|error| {
                let message = "this version cannot read the log of the session";
                ClientError::new(ErrorCode::ServerProtocol, message).with_source(error)
            })?;
        }
        Ok(fold)
    }
}
