//! All sessions that a filter selects, whatever is deleted meanwhile.

use std::collections::HashSet;

use super::{Head, MAX_PAGE, Page, SessionFilter, StateStore};
use crate::error::{ErrorCode, Result};

/// How often a list is started again because the session after which it was to continue was deleted.
const MAX_RESTARTS: u32 = 16;

/// Lists the heads of all sessions that a filter selects, page by page, each session once.
///
/// A page continues after a session, which may be deleted by then. The list starts again in that case and
/// leaves out what it has.
///
/// # Errors
/// Those of [`StateStore::list`]; [`ErrorCode::SessionNotFound`] only if sessions are deleted without pause.
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
