//! The names that most programs need: `use helix_agents::prelude::*;`.

pub use crate::agent::{Agent, AgentRegistry, AnyAgent, SubAgent};
pub use crate::budget::Budget;
pub use crate::error::{Error, ErrorCode, ErrorKind};
pub use crate::event::ToolOutcome;
pub use crate::executor::{
    AgentExecutor, AgentExecutorExt, AgentResult, ExecuteOptions, Input, Resumable, ResumeOptions,
    RunHandle,
};
pub use crate::hooks::{AgentHooks, HookContext, HookDecision, HookResult, ToolCallView};
pub use crate::id::{RunId, SessionId};
pub use crate::message::UserMessage;
pub use crate::session::{RunStatus, Session, Submission};
pub use crate::store::StateStore;
pub use crate::store_url::open_store;
pub use crate::stream::{ChunkKind, StreamManager};
pub use crate::tool::{
    EffectClass, ReconcileOutcome, Tool, ToolContext, ToolError, ToolFunction, ToolMethods,
};
pub use crate::{RuntimeBuilder, Sessions, Sweeper};

#[cfg(feature = "llm")]
pub use helix_agents_llm::ProviderRegistry;

#[cfg(feature = "macros")]
pub use helix_agents_macros::{tool, tools};

#[cfg(feature = "runtime-durable")]
pub use helix_agents_runtime_durable::DurableRuntime;

#[cfg(feature = "runtime-local")]
pub use helix_agents_runtime_local::LocalRuntime;

#[cfg(feature = "runtime-temporal")]
pub use helix_agents_runtime_temporal::{TemporalRuntime, TemporalWorker};

#[cfg(feature = "store-memory")]
pub use helix_agents_store_memory::MemoryStore;

#[cfg(feature = "store-postgres")]
pub use helix_agents_store_postgres::PostgresStore;

#[cfg(feature = "store-redis")]
pub use helix_agents_store_redis::RedisStore;

#[cfg(feature = "store-sqlite")]
pub use helix_agents_store_sqlite::SqliteStore;
