//! A scenario with slow hooks.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents::event::ToolOutcome;
use helix_agents::hooks::{
    AgentHooks, HookContext, HookDecision, HookResult, LlmChange, ToolCallView,
};
use helix_agents::llm::LlmConfig;

use super::alone::two_things;
use super::{Scenario, note_line, worker};

/// Returns the scenario: two hooks of the first step each take `HELIX_HOOK_MS`, if that is set, and append their keys
/// to the file `hooks` next to the trace.
pub(super) fn named(name: &str, trace: &Path) -> Option<Scenario> {
    if !["slow_hooks", "slow_streams"].contains(&name) {
        return None;
    }
    let takes = std::env::var("HELIX_HOOK_MS").ok().and_then(|time| time.parse().ok());
    let hooks = Slow {
        takes: Duration::from_millis(takes.unwrap_or(0)),
        trace: trace.with_file_name("hooks"),
    };
    Scenario::scripted(worker(trace).hooks(hooks), two_things())
}

struct Slow {
    takes: Duration,
    trace: PathBuf,
}

impl Slow {
    async fn take_time(&self, cx: &HookContext) -> HookResult {
        note_line(&self.trace, cx.key())?;
        tokio::time::sleep(self.takes).await;
        Ok(())
    }
}

#[async_trait]
impl AgentHooks for Slow {
    async fn before_llm_call(
        &self,
        cx: &HookContext,
        _: &LlmConfig,
    ) -> HookResult<HookDecision<LlmChange>> {
        if cx.step == 1 {
            self.take_time(cx).await?;
        }
        Ok(HookDecision::Continue)
    }

    async fn after_tool(
        &self,
        cx: &HookContext,
        _: ToolCallView<'_>,
        _: &ToolOutcome,
    ) -> HookResult {
        if cx.step == 1 { self.take_time(cx).await } else { Ok(()) }
    }
}
