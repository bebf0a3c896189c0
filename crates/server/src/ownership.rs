//! The owner of a session, and the sessions that a principal can access.

pub(crate) mod listing;

use std::collections::BTreeMap;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::id::SessionId;
use helix_agents_core::store::{Head, NewSession, StateStore};

use crate::api_error::ApiError;
use crate::auth::{Principal, Scope};

/// The tag of a root session that names its owner. It is written by the append that creates the session, and never
/// changes.
pub const OWNER_TAG: &str = "helix.owner";

/// A session that the sender of a request can access.
#[derive(Debug, Clone)]
pub(crate) struct Accessible {
    /// The head of the session.
    pub(crate) head: Head,
    /// The tags of the root session.
    pub(crate) root_tags: BTreeMap<String, String>,
}

impl Accessible {
    /// Returns the id of the root session.
    pub(crate) fn root(&self) -> &SessionId {
        &self.head.created.root
    }

    /// Returns `true` if the session is a root.
    pub(crate) fn is_root(&self) -> bool {
        self.head.created.parent.is_none()
    }

    /// Checks that the session is a root.
    pub(crate) fn check_root(&self) -> Result<(), ApiError> {
        if self.is_root() {
            return Ok(());
        }
        let message = "the session is a child; name its root session";
        Err(ApiError::new(ErrorCode::NotRoot, message))
    }

    /// Returns the owner, if there is one.
    pub(crate) fn owner(&self) -> Option<&str> {
        self.root_tags.get(OWNER_TAG).map(String::as_str)
    }

    /// Returns the tags that operations require of the root: its owner. An operation then does not apply to a session of
    /// another owner that is created with the id in the meantime.
    pub(crate) fn required_tags(&self) -> BTreeMap<String, String> {
        let owner = self.owner().map(|owner| (OWNER_TAG.to_owned(), owner.to_owned()));
        owner.into_iter().collect()
    }

    /// Returns the identity of the session.
    pub(crate) fn identity(&self) -> SessionIdentity {
        let Head { session, created, created_at, .. } = self.head.clone();
        SessionIdentity { session, created, created_at }
    }

    /// Checks that the session still exists. Data that was read before is then data of this session, and not of another
    /// one that was created with the same id.
    pub(crate) async fn check_current(&self, store: &dyn StateStore) -> Result<(), ApiError> {
        match self.identity().is_current(store).await? {
            true => Ok(()),
            false => Err(ApiError::no_session()),
        }
    }
}

/// The identity of a session. Another session that is created with the same id differs in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionIdentity {
    /// The id.
    pub(crate) session: SessionId,
    /// The root, the parent, the agent and the tags, among them the owner of a root.
    created: NewSession,
    created_at: Timestamp,
}

impl SessionIdentity {
    /// Returns `true` if the head is one of this session.
    pub(crate) fn is_of(&self, head: &Head) -> bool {
        self.created_at == head.created_at && self.created == head.created
    }

    /// Returns `true` if this session is the one that has the id now.
    pub(crate) async fn is_current(&self, store: &dyn StateStore) -> Result<bool> {
        Ok(store.head(&self.session).await?.is_some_and(|head| self.is_of(&head)))
    }
}

/// Returns a session that the principal can access. The owner of a child is that of its root. A session of another
/// owner looks like one that does not exist.
pub(crate) async fn accessible(
    store: &dyn StateStore,
    principal: &Principal,
    session: &SessionId,
) -> Result<Accessible, ApiError> {
    session.check()?;
    find(store, principal, session).await?.ok_or_else(ApiError::no_session)
}

/// Does the same as [`accessible`] for a session that may not exist yet.
pub(crate) async fn find(
    store: &dyn StateStore,
    principal: &Principal,
    session: &SessionId,
) -> Result<Option<Accessible>, ApiError> {
    let Some(head) = store.head(session).await? else { return Ok(None) };
    let root_tags = if head.created.root == head.session {
        head.created.tags.clone()
    } else {
        // A child whose root was deleted has no owner.
        let root = store.head(&head.created.root).await?;
        root.map(|root| root.created.tags).unwrap_or_default()
    };
    let found = Accessible { head, root_tags };
    let is_own = found.owner() == Some(principal.id());
    if is_own || principal.has_scope(Scope::AllSessions) {
        return Ok(Some(found));
    }
    Err(ApiError::no_session())
}
