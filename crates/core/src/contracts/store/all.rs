//! Lists all sessions that match a filter, even while sessions are deleted.

use std::collections::HashSet;

use super::{Head, MAX_PAGE, Page, SessionFilter, StateStore};
use crate::error::{ErrorCode, Result};

/// The maximum number of times that a listing restarts because the session that ended a page was
/// deleted.
const MAX_RESTARTS: u32 = 16;

/// Lists the heads of all sessions that a filter selects, page by page, each session once.
///
/// A page continues after a session that may have been deleted meanwhile. The listing then restarts
/// and skips the sessions that it has already returned.
///
/// # Errors
/// Returns the errors of [`StateStore::list`]; [`ErrorCode::SessionNotFound`] only if sessions are
/// deleted continuously.
pub async fn list_all(store: &dyn StateStore, filter: &SessionFilter) -> Result<Vec<Head>> {
    let mut page = Page { after: None, limit: MAX_PAGE };
    let (mut heads, mut known, mut restarts) = (Vec::new(), HashSet::new(), 0);
    loop {
        let found = match store.list(filter, &page).await {
            Err(error)
                if error.code() == ErrorCode::SessionNotFound
                    && page.after.take().is_some()
                    && restarts < MAX_RESTARTS =>
            {
                restarts += 1;
                continue;
            }
            found => found?,
        };
        let Some(last) = found.last() else { return Ok(heads) };
        page.after = Some(last.session.clone());
        heads.extend(found.into_iter().filter(|head| known.insert(head.session.clone())));
    }
}
