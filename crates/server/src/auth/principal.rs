//! Principals: the authenticated senders of requests.

use std::collections::BTreeSet;
use std::sync::Arc;

use helix_agents_core::id::MAX_ID_BYTES;
use helix_agents_core::trace::TraceParent;

/// A right beyond one's own sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// Access to the sessions of all owners, and to sessions without one: those that a program created without the
    /// server, or imported.
    AllSessions,
    /// Reads the logs of the sessions to which the principal has access. A log contains what the users of a session do not
    /// see: hidden messages, and the causes of errors.
    ReadLogs,
}

/// The authenticated sender of a request.
///
/// The id is recorded as the owner of the sessions that the principal creates, and as the author of its answers.
///
/// # Examples
/// ```
/// use helix_agents_server::{Principal, Scope};
///
/// let operator = Principal::new("ann").unwrap().with_scope(Scope::AllSessions);
/// assert_eq!(operator.id(), "ann");
/// assert!(operator.has_scope(Scope::AllSessions));
/// assert_eq!(Principal::new(""), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    id: Arc<str>,
    scopes: BTreeSet<Scope>,
    /// The trace that the request belongs to.
    trace: Option<TraceParent>,
}

impl Principal {
    /// Creates a principal without scopes. Returns `None` if the id is empty, longer than 200 bytes, or contains a
    /// control character.
    #[must_use]
    pub fn new(id: impl Into<Arc<str>>) -> Option<Self> {
        let id = id.into();
        let is_valid =
            !id.is_empty() && id.len() <= MAX_ID_BYTES && !id.chars().any(char::is_control);
        is_valid.then(|| Self { id, scopes: BTreeSet::new(), trace: None })
    }

    /// Adds a scope.
    #[must_use]
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.scopes.insert(scope);
        self
    }

    /// Sets the trace that the request belongs to.
    pub(crate) fn with_trace(mut self, trace: Option<TraceParent>) -> Self {
        self.trace = trace;
        self
    }

    /// Returns the trace that the request belongs to.
    pub(crate) fn trace(&self) -> Option<TraceParent> {
        self.trace
    }

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns `true` if the principal has the scope.
    #[must_use]
    pub fn has_scope(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }
}
