//! One process of a world: a runtime with its own clock, network and lifetime.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::AnyAgent;
use helix_agents_core::clock::{Clock, IdSource};
use helix_agents_core::error::Result;
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;
use helix_agents_runtime::Settings;
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_testkit::trees::{Family, ProcessLife};

use crate::engine::in_work_items;
use crate::marks::Reached;
use crate::parameters::{EngineKind, Story};
use crate::time::SimClock;
use crate::wire::Wire;

/// The time that cancelled tools may take to stop.
const GRACE: Duration = Duration::from_millis(100);

/// The configuration of a process.
pub(crate) struct ProcessConfig {
    pub(crate) story: Story,
    pub(crate) wire: Arc<Wire>,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) llm: Arc<dyn LlmAdapter>,
    pub(crate) family: Arc<Family>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) reached: Reached,
}

/// A process. Clones refer to the same process.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) life: ProcessLife,
    pub(crate) wire: Arc<Wire>,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) executor: Arc<dyn AgentExecutor>,
    /// The agents in this process's build.
    pub(crate) family: Arc<Family>,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.life.number())
    }
}

impl Process {
    /// Returns the root agent of every tree.
    pub(crate) fn agent(&self) -> AnyAgent {
        self.family.agent(&self.family.root.name)
    }

    /// Starts a process.
    pub(crate) fn boot(config: ProcessConfig) -> Result<Self> {
        let ProcessConfig { story, wire, clock, llm, family, ids, reached } = config;
        let registry = family.registry.clone();
        let store: Arc<dyn StateStore> = Arc::<Wire>::clone(&wire);
        let streams: Arc<dyn StreamManager> = Arc::<Wire>::clone(&wire);
        let time: Arc<dyn Clock> = Arc::<SimClock>::clone(&clock);
        let life = wire.life.clone();
        let executor: Arc<dyn AgentExecutor> = match story.engine() {
            EngineKind::Local => Arc::new(
                LocalRuntime::builder()
                    .state_store(store)
                    .stream_manager(streams)
                    .llm_adapter(llm)
                    .registry(registry)
                    .clock(time)
                    .ids(ids)
                    .durability(story.durability())
                    .lease(story.lease())
                    .grace(GRACE)
                    .build()?,
            ),
            EngineKind::WorkItems(redelivery) => {
                let settings = Settings {
                    store: Some(store),
                    streams: Some(streams),
                    llm: Some(llm),
                    registry,
                    clock: Some(time),
                    ids: Some(ids),
                    lease: story.lease(),
                    grace: GRACE,
                    ..Settings::default()
                };
                Arc::new(in_work_items(settings, redelivery, reached)?)
            }
        };
        Ok(Self { life, wire, clock, executor, family })
    }
}
