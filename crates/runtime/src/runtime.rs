//! [`Runtime`]: an agent executor that delegates the execution of runs to an engine.

use std::fmt;
use std::sync::Arc;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::StopOptions;
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{StopKind, request};
use helix_agents_core::store::Head;

use crate::context::RuntimeContext;
use crate::engine::{BuiltEngine, Engine};
use crate::live::LiveRun;

mod executor;

/// An agent executor on an engine. Cheap to clone.
///
/// The core crate decides which transitions are legal, the store guarantees that exactly one run
/// starts, and the engine executes the run. This type implements the rest, identically for every engine.
///
/// `E` is the type of the engine. The runtimes that applications use are aliases with an engine each, such as
/// `LocalRuntime`.
pub struct Runtime<E: ?Sized = dyn Engine> {
    context: Arc<RuntimeContext>,
    engine: Arc<E>,
    /// The same engine without its type.
    erased: Arc<dyn Engine>,
}

impl<E: Engine> Runtime<E> {
    /// Creates a runtime from a shared context and an engine.
    #[must_use]
    pub fn new(context: Arc<RuntimeContext>, engine: Arc<E>) -> Self {
        let erased = Arc::clone(&engine) as Arc<dyn Engine>;
        Self { context, engine, erased }
    }
}

impl<E: BuiltEngine> Runtime<E> {
    /// Returns a builder for a runtime on this engine.
    #[must_use]
    pub fn builder() -> E::Builder {
        E::Builder::default()
    }
}

impl<E: ?Sized> Runtime<E> {
    /// Returns the same runtime without the type of its engine.
    #[must_use]
    pub fn erased(&self) -> Runtime {
        let (context, engine) = (Arc::clone(&self.context), Arc::clone(&self.erased));
        Runtime { context, erased: Arc::clone(&engine), engine }
    }

    /// Returns the dependencies shared by all runs of this runtime.
    #[must_use]
    pub fn context(&self) -> &Arc<RuntimeContext> {
        &self.context
    }

    /// Returns the engine that executes the runs.
    #[must_use]
    pub fn engine(&self) -> &Arc<E> {
        &self.engine
    }

    pub(crate) fn live(&self, session: &SessionId) -> Option<Arc<LiveRun>> {
        self.context.runs.get(session)
    }

    pub(crate) async fn head(&self, session: &SessionId) -> Result<Head> {
        self.context.store.head(session).await?.ok_or_else(|| {
            Error::new(ErrorCode::SessionNotFound, "there is no session with this id")
                .with_context("session", session)
        })
    }

    pub(crate) async fn append_request(
        &self,
        session: &SessionId,
        kind: StopKind,
        options: &StopOptions,
    ) -> Result<()> {
        let request_context = self.context.request_context().requiring(&options.required_tags);
        let (run, reason) = (options.run.as_ref(), options.reason.clone());
        let sessions = request(request_context, session, run, kind, reason).await?;
        sessions.iter().for_each(|session| self.context.wakeups.notify(session));
        Ok(())
    }
}

impl<E: ?Sized> Clone for Runtime<E> {
    fn clone(&self) -> Self {
        let Self { context, engine, erased } = self;
        let (context, engine, erased) =
            (Arc::clone(context), Arc::clone(engine), Arc::clone(erased));
        Self { context, engine, erased }
    }
}

impl<E: ?Sized> fmt::Debug for Runtime<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { context, erased, .. } = self;
        f.debug_struct("Runtime").field("context", context).field("engine", erased).finish()
    }
}
