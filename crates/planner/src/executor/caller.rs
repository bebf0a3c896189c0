//! Tool calls of an executor.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use helix_agents_core::id::CallId;
use helix_agents_core::json::Json;
use helix_agents_core::panics::caught_async;
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::{Tool, ToolContext, ToolContextConfig, ToolError, ToolStream};
use serde_json::{Map, Value};

/// Calls the tools of an executor.
///
/// Arguments are validated, panics are caught, and the timeout of each tool applies. The `retry`
/// and `reconcile` of a tool do not apply.
#[derive(Debug)]
pub struct ToolCaller {
    tools: Arc<[Tool]>,
    cx: ToolContext,
    /// The number of calls so far for each combination of tool and arguments.
    made: Mutex<BTreeMap<String, usize>>,
}

impl ToolCaller {
    pub(crate) fn new(tools: Arc<[Tool]>, cx: ToolContext) -> Self {
        Self { tools, cx, made: Mutex::default() }
    }

    /// Calls a tool. Identical calls are all executed, each with its own idempotency key. The keys
    /// are the same when the round runs again.
    ///
    /// # Errors
    /// Returns the error of the tool, or the reason why it was not called.
    pub async fn call(&self, name: &str, kwargs: &Map<String, Value>) -> Result<Value, ToolError> {
        let Some(tool) = self.tools.iter().find(|tool| tool.name() == name) else {
            let known: Vec<_> = self.tools.iter().map(Tool::name).collect();
            let known = known.join(", ");
            return Err(ToolError::new(format!(
                "there is no tool `{name}`; the tools are: {known}"
            )));
        };
        let input = Value::Object(kwargs.clone());
        if let Err(violations) = tool.validate(&input) {
            let message =
                format!("the arguments do not match the schema: {}", violations.join("; "));
            return Err(ToolError::new(message));
        }
        let input = Json::from(input);
        let cx = self.context(tool, &input)?;
        let run = caught_async("the tool", || tool.invoke(&input, cx.clone()));
        let ended = match tool.own_timeout() {
            None => run.await,
            Some(limit) => tokio::time::timeout(limit, run).await.map_err(|_| {
                cx.cancellation().cancel();
                ToolError::new(format!("the tool did not finish within {limit:?}"))
            })?,
        };
        // The model reads this error like any other result.
        let returned = ended.map_err(|panic| ToolError::new(panic.in_full()))??;
        let effects = cx.effects();
        if !effects.state_patch.is_empty() {
            self.cx.update_state::<Value>(|state| effects.state_patch.apply(state))?;
        }
        for (name, amount) in effects.usage {
            self.cx.record_usage(name, amount);
        }
        Ok(returned.to_value())
    }

    fn context(&self, tool: &Tool, input: &Json) -> Result<ToolContext, ToolError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let times = made.entry(format!("{} {}", tool.name(), input.text())).or_default();
        *times += 1;
        let call = CallId::from(format!("{}/{times}", self.cx.call()));
        drop(made);
        Ok(ToolContext::new(ToolContextConfig {
            agent: self.cx.agent().into(),
            session: self.cx.session().clone(),
            run: self.cx.run().clone(),
            fencing_token: self.cx.fencing_token(),
            step: self.cx.step(),
            call,
            tool: tool.name().into(),
            arguments: input.text().to_owned(),
            attempt: self.cx.attempt(),
            timeout: tool.own_timeout().or_else(|| self.cx.timeout()),
            cancel: self.cx.cancellation().child_token(),
            state: Arc::new(self.cx.state::<Value>()?),
            stream: Arc::new(Through(self.cx.clone())),
            trace: self.cx.trace_parent(),
        }))
    }
}

/// Forwards the chunks of a tool to the executor's call.
struct Through(ToolContext);

impl ToolStream for Through {
    fn show(&self, kind: ChunkKind) {
        match kind {
            ChunkKind::ToolProgress { message, fraction, .. } => self.0.progress(message, fraction),
            ChunkKind::Custom { name, data } => {
                let data: Value = serde_json::from_str(&data).unwrap_or(Value::String(data));
                // A value that was serialized as JSON can be serialized again.
                drop(self.0.emit(&name, &data));
            }
            _ => {}
        }
    }
}
