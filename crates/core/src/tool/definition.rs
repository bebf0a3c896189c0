//! The erased form of a tool: what agents hold and runtimes run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::approval::People;
use super::context::ToolContext;
use super::error::ToolError;
use super::function::ToolFunction;
use crate::error::{Error, ErrorCode, Result};
use crate::json::Json;
use crate::llm::RetryPolicy;
use crate::schema::Schema;
use crate::text::{MAX_QUOTED, excerpt_of};

/// What running a tool a second time does, and so what happens to a call whose outcome a crash
/// left in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EffectClass {
    /// It only reads. It runs again.
    Pure,
    /// Running it twice with one idempotency key is as good as once. It runs again.
    #[default]
    Idempotent,
    /// It must not run twice. Its start is recorded before it runs, and a call in doubt goes to
    /// the tool's `reconcile`, or the model is told that the outcome is unknown.
    AtMostOnce,
}

/// What became of a call in doubt, as far as the outside world can tell.
#[derive(Debug, Clone, PartialEq)]
pub enum ReconcileOutcome {
    /// It acted, and this is its result.
    Completed(Value),
    /// It did not act: run it now.
    NotExecuted,
    /// Nobody can tell: the model is told so.
    Unknown,
}

/// Makes an agent's output of a finish tool's result.
pub type FinishTransform = Arc<dyn Fn(Value) -> Result<Value, ToolError> + Send + Sync>;

/// Finds out what became of a call in doubt. It gets the call's arguments and the context with its
/// idempotency key.
pub type Reconcile =
    Arc<dyn Fn(Value, ToolContext) -> BoxFuture<'static, ReconcileOutcome> + Send + Sync>;

type Run =
    Arc<dyn Fn(&Json, ToolContext) -> BoxFuture<'static, Result<Json, ToolError>> + Send + Sync>;

/// A tool with its options. Made from a `#[tool]` function, or by [`Tool::function`].
#[derive(Clone)]
pub struct Tool {
    pub(crate) name: Arc<str>,
    pub(crate) description: Arc<str>,
    pub(crate) input: Result<Schema, Arc<Error>>,
    pub(crate) output: Option<Result<Schema, Arc<Error>>>,
    pub(crate) run: Run,
    pub(crate) finish: bool,
    pub(crate) transform: Option<FinishTransform>,
    pub(crate) strict: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) effect: Option<EffectClass>,
    pub(crate) people: People,
    pub(crate) reconcile: Option<Reconcile>,
}

impl<T: ToolFunction> From<T> for Tool {
    fn from(function: T) -> Self {
        let function = Arc::new(function);
        Self::function(T::NAME, T::DESCRIPTION, move |input: T::Input, cx: ToolContext| {
            let function = Arc::clone(&function);
            async move { function.call(input, &cx).await }
        })
    }
}

impl Tool {
    /// A tool from an async closure. It gets its context as a cheap clone.
    pub fn function<I, O, F, Fut>(name: &str, description: &str, run: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send,
        O: Serialize,
        F: Fn(I, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ToolError>> + Send,
    {
        let run = Arc::new(run);
        Self::erased(name, description, Schema::of::<I>(), move |input, cx| {
            let (run, input) = (Arc::clone(&run), input.clone());
            Box::pin(async move {
                let input = input.to_typed::<I>().map_err(|error| {
                    ToolError::new(format!("invalid arguments: {}", excerpt_of(error, MAX_QUOTED)))
                })?;
                as_result(&run(input, cx).await?)
            })
        })
    }

    /// A tool whose schema is only known at run time. Its arguments fit the schema when `run` is
    /// called.
    pub fn dynamic<F, Fut>(name: &str, description: &str, input_schema: Value, run: F) -> Self
    where
        F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, ToolError>> + Send,
    {
        let run = Arc::new(run);
        Self::erased(name, description, Schema::from_value(input_schema), move |input, cx| {
            let (run, input) = (Arc::clone(&run), input.to_value());
            Box::pin(async move { as_result(&run(input, cx).await?) })
        })
    }

    pub(super) fn erased<F>(name: &str, description: &str, input: Result<Schema>, run: F) -> Self
    where
        F: Fn(&Json, ToolContext) -> BoxFuture<'static, Result<Json, ToolError>>
            + Send
            + Sync
            + 'static,
    {
        Self {
            name: name.into(),
            description: description.trim().into(),
            // Reported when the agent is built, with everything else that is wrong.
            input: input.map_err(Arc::new),
            output: None,
            run: Arc::new(run),
            finish: false,
            transform: None,
            strict: false,
            timeout: None,
            retry: None,
            effect: None,
            people: People::default(),
            reconcile: None,
        }
    }

    /// Gives it another name, for instance to use one function twice.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Gives it another description.
    #[must_use]
    pub fn described(mut self, description: &str) -> Self {
        self.description = description.trim().into();
        self
    }

    /// Checks results against the schema of `T` too; one that does not fit is a failure.
    #[must_use]
    pub fn output_schema<T: JsonSchema>(mut self) -> Self {
        self.output = Some(Schema::of::<T>().map_err(Arc::new));
        self
    }

    /// Makes it a way to complete the agent: its result is the output. An agent with such a tool
    /// has no `__finish__`.
    #[must_use]
    pub fn finish_with(mut self) -> Self {
        self.finish = true;
        self
    }

    /// Makes it a way to complete the agent whose result is turned into the output first. The
    /// transform should be pure and simple: if it fails, the run fails.
    #[must_use]
    pub fn finish_with_transform<R, O>(
        mut self,
        transform: impl Fn(R) -> Result<O, ToolError> + Send + Sync + 'static,
    ) -> Self
    where
        R: DeserializeOwned,
        O: Serialize,
    {
        self.finish = true;
        self.transform = Some(Arc::new(move |result| {
            Ok(serde_json::to_value(transform(serde_json::from_value(result)?)?)?)
        }));
        self
    }

    /// Asks the provider to constrain the arguments to the schema. A hint: models without that get
    /// the request without it.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// How long one try may take. Without it the agent's `tool_timeout` holds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Runs it again after failures that it calls [retryable](ToolError::retryable), and after
    /// timeouts. Without it there is one try.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// What running it twice does. Default: [`EffectClass::Idempotent`], and
    /// [`EffectClass::AtMostOnce`] for a tool that requires approval.
    #[must_use]
    pub fn effect(mut self, effect: EffectClass) -> Self {
        self.effect = Some(effect);
        self
    }

    /// Finds out what became of a call that a crash left in doubt; for
    /// [`EffectClass::AtMostOnce`].
    #[must_use]
    pub fn reconcile<F, Fut>(mut self, reconcile: F) -> Self
    where
        F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ReconcileOutcome> + Send + 'static,
    {
        self.reconcile = Some(Arc::new(move |input, cx| Box::pin(reconcile(input, cx))));
        self
    }

    /// The name under which models call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What running it twice does.
    #[must_use]
    pub fn effect_class(&self) -> EffectClass {
        let gated = self.people.approval.is_some();
        self.effect.unwrap_or(if gated { EffectClass::AtMostOnce } else { EffectClass::default() })
    }

    /// Whether it completes the agent.
    #[must_use]
    pub fn is_finish(&self) -> bool {
        self.finish
    }

    /// How long one try may take, if it has a timeout of its own.
    #[must_use]
    pub fn own_timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// When it is tried again, if it is.
    #[must_use]
    pub fn retry_policy(&self) -> Option<&RetryPolicy> {
        self.retry.as_ref()
    }

    /// What finds out about a call in doubt.
    #[must_use]
    pub fn reconciler(&self) -> Option<&Reconcile> {
        self.reconcile.as_ref()
    }

    /// Checks arguments against the input schema.
    ///
    /// # Errors
    /// What is wrong with them, one sentence each, for the model to read.
    pub fn validate(&self, input: &Value) -> Result<(), Vec<String>> {
        match &self.input {
            Ok(schema) => schema.validate(input),
            Err(error) => Err(vec![error.to_string()]),
        }
    }

    /// Runs it once; for runtimes. The arguments must have been
    /// [validated](Self::validate).
    ///
    /// # Cancel safety
    /// Dropping the future stops the tool at its next await.
    #[must_use]
    pub fn invoke(
        &self,
        input: &Json,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<Json, ToolError>> {
        (self.run)(input, cx)
    }

    /// Everything that is wrong with the definition, one sentence each.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let name = &self.name;
        if super::is_reserved(name) {
            problems.push(format!("the tool name `{name}` is reserved"));
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            problems.push(format!(
                "the tool name `{name}` must be 1 to 64 letters, digits, `_` or `-`"
            ));
        }
        if self.description.is_empty() {
            problems.push(format!("tool `{name}` has no description; models choose by it"));
        }
        let schemas = std::iter::once(&self.input).chain(&self.output);
        problems.extend(schemas.filter_map(|schema| {
            schema.as_ref().err().map(|error| format!("tool `{name}`: {}", error.message()))
        }));
        if self.reconcile.is_some() && self.effect_class() != EffectClass::AtMostOnce {
            problems.push(format!("tool `{name}`: `reconcile` needs `EffectClass::AtMostOnce`"));
        }
        if self.retry.is_some() && self.effect_class() == EffectClass::AtMostOnce {
            problems.push(format!("tool `{name}`: an at-most-once tool cannot have `retry`"));
        }
        problems.extend(self.people_problems());
        problems
    }

    pub(crate) fn input(&self) -> Result<&Schema> {
        self.input.as_ref().map_err(|error| Error::new(ErrorCode::ToolInvalid, error.to_string()))
    }
}

fn as_result<T: Serialize>(output: &T) -> Result<Json, ToolError> {
    Json::from_serialize(output)
        .map_err(|error| ToolError::new(format!("the result is not JSON: {error}")))
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .field("finish", &self.finish)
            .field("effect", &self.effect_class())
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
