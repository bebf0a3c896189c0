//! The expansion of the attribute.

mod calls;
mod definitions;
mod expansion;
mod methods;
mod names;

// Lets `expansion` pass `$crate::macros::framework` as the path of the crate.
pub(crate) use helix_agents as framework;

use std::sync::Arc;

use helix_agents_core::id::CallId;
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::{ToolContext, ToolContextConfig, ToolStream};
use tokio_util::sync::CancellationToken;

/// Creates a context like a runtime does, without a stream.
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
        stream: Arc::new(NoStream),
        trace: None,
    })
}

struct NoStream;

impl ToolStream for NoStream {
    fn show(&self, _kind: ChunkKind) {}
}
