//! What the attribute makes of functions.

mod calls;
mod compile_errors;
mod definitions;
mod expansion;

// What the attribute refers to if it is not told otherwise.
extern crate helix_agents_core as helix_agents;

use std::sync::Arc;

use helix_agents_core::id::CallId;
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::{ToolContext, ToolContextConfig, ToolStream};
use tokio_util::sync::CancellationToken;

/// A context as a runtime would make one, without anybody watching.
fn context() -> ToolContext {
    ToolContext::new(ToolContextConfig {
        agent: "tester".into(),
        session: "session".into(),
        run: "run".into(),
        fencing_token: 1,
        step: 3,
        call: CallId::new(3, 0),
        tool: "tool".into(),
        arguments: "{}".to_owned(),
        attempt: 1,
        timeout: None,
        cancel: CancellationToken::new(),
        state: Arc::default(),
        stream: Arc::new(Nobody),
    })
}

struct Nobody;

impl ToolStream for Nobody {
    fn show(&self, _kind: ChunkKind) {}
}
