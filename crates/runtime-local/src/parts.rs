//! What every run of a runtime shares.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::clock::{Clock, IdSource};
use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::session::{Durability, Outside, align_ended};
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;
use tokio::runtime::Handle;

use crate::live::LiveRuns;

/// The kind of this runtime, as it stands in logs: it takes over only runs of its own kind.
pub(crate) const RUNTIME: &str = "local";

/// What every run of a runtime shares.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) streams: Arc<dyn StreamManager>,
    pub(crate) llm: Arc<dyn LlmAdapter>,
    pub(crate) registry: AgentRegistry,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) durability: Durability,
    pub(crate) lease: Duration,
    pub(crate) grace: Duration,
    pub(crate) tasks: Option<Handle>,
    pub(crate) auto_resume: bool,
    /// The runs of this process.
    pub(crate) runs: Arc<LiveRuns>,
}

impl Parts {
    /// What requests from outside are appended with.
    pub(crate) fn outside(&self) -> Outside<'_> {
        Outside { store: &*self.store, ids: &*self.ids }
    }

    /// Brings the stream of a session without a current run into line with its log.
    pub(crate) async fn align_ended(&self, session: &SessionId) -> Result<()> {
        let (store, streams) = (&*self.store, &*self.streams);
        align_ended(store, streams, &*self.clock, &*self.ids, session).await
    }
}
