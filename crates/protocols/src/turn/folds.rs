//! The folds from which a session is shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use helix_agents_core::event::{Answer, PendingCall};
use helix_agents_core::id::{CallId, SessionId};
use helix_agents_core::session::{Session, StepRecord};

/// The fold of a root session and those of its sub-agents.
///
/// The fold of the root is sufficient to show the session itself. A sub-agent's questions to humans and clients are
/// recorded in the sub-agent's own log, so they are only shown if its fold is given as well.
///
/// # Examples
///
/// ```
/// use helix_agents_core::session::Session;
/// use helix_agents_protocols::turn::Folds;
///
/// let (root, poet) = (Session::new("chat".into()), Session::new("chat-sub-1.0".into()));
/// let folds = Folds::new(&root).with_child(&poet);
/// assert_eq!(folds.root().id().as_str(), "chat");
/// assert!(folds.missing().is_empty());
/// ```
#[derive(Debug, Clone)]
pub struct Folds<'a> {
    root: &'a Session,
    children: BTreeMap<&'a SessionId, &'a Session>,
}

impl<'a> Folds<'a> {
    /// Creates the folds of a root session, without its sub-agents.
    #[must_use]
    pub fn new(root: &'a Session) -> Self {
        Self { root, children: BTreeMap::new() }
    }

    /// Adds the fold of a sub-agent, at any level of the tree.
    #[must_use]
    pub fn with_child(mut self, child: &'a Session) -> Self {
        self.children.insert(child.id(), child);
        self
    }

    /// Returns the fold of the root session.
    #[must_use]
    pub fn root(&self) -> &'a Session {
        self.root
    }

    /// Returns the calls whose answers are recorded and were not handled by a run, by their references, each with whether
    /// it was approved.
    pub(super) fn answers(&self) -> BTreeMap<String, Option<bool>> {
        let mut answers = BTreeMap::new();
        for session in self.sessions() {
            let pairs = session.open_step().into_iter().flat_map(StepRecord::pairs);
            let open = pairs.filter(|(_, record)| record.finish.is_none());
            for (call, answer) in open.filter_map(|(call, record)| Some((call, record.answer()?))) {
                let approved = match answer {
                    Answer::Approved { .. } => Some(true),
                    Answer::Denied { .. } => Some(false),
                    _ => None,
                };
                answers.insert(self.reference(session, &call.id), approved);
            }
        }
        answers
    }

    /// Returns the fold of a sub-agent, if it was given.
    #[must_use]
    pub fn child(&self, id: &SessionId) -> Option<&'a Session> {
        self.children.get(id).copied()
    }

    /// Returns the pending calls of all sessions, by their references.
    pub(crate) fn pending(&self) -> BTreeMap<String, Arc<PendingCall>> {
        let pending = self.sessions().flat_map(|session| {
            let calls = session.pending_calls();
            calls.map(|pending| (self.reference(session, &pending.call), Arc::clone(pending)))
        });
        pending.collect()
    }

    /// Returns all sessions.
    fn sessions(&self) -> impl Iterator<Item = &'a Session> {
        self.children.values().copied().chain([self.root])
    }

    /// Returns the reference of a call.
    fn reference(&self, session: &Session, call: &CallId) -> String {
        if session.id() == self.root.id() {
            call.to_string()
        } else {
            format!("{}#{call}", session.id())
        }
    }

    /// Returns the sub-agents of the present turn and the companions whose folds were not given. Call it again after
    /// adding these, because they may have sub-agents of their own.
    #[must_use]
    pub fn missing(&self) -> Vec<&'a SessionId> {
        let mut missing = Vec::new();
        let mut open = vec![self.root];
        while let Some(session) = open.pop() {
            for child in sub_agents(session) {
                match self.child(child) {
                    Some(fold) => open.push(fold),
                    None => missing.push(child),
                }
            }
        }
        missing
    }
}

/// Returns `true` if a reference names a call of a sub-agent: it contains the sub-agent's session.
pub(crate) fn is_of_sub_agent(reference: &str) -> bool {
    reference.contains('#')
}

/// Returns the sub-agents of the present turn of a session, and all of its companions: these can ask in any turn.
fn sub_agents(session: &Session) -> impl Iterator<Item = &SessionId> {
    let turn = session.turn();
    let closed = session.closed_steps().rev();
    let closed = closed.take_while(move |(checkpoint, _)| checkpoint.turn == turn);
    let steps = closed.map(|(_, step)| step).chain(session.open_step());
    let starts = steps.flat_map(|step| &step.calls).filter_map(|call| call.child.as_ref());
    let starts = starts.map(|child| &child.start).filter(|start| start.companion.is_none());
    let companions = session.companions().map(|(_, record)| &record.start);
    starts.chain(companions).map(|start| &start.session)
}
