//! The providers of a program, and the choice of the provider that serves a model.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use helix_agents_core::error::{Error, ErrorCode, ErrorRecord, Result};
use helix_agents_core::llm::{
    FailedAttempt, LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink,
};
use helix_agents_core::step::StepResult;

use crate::env;
use crate::http::HttpClient;
use crate::secret::is_secret_header;
use crate::server::{ModelServer, ModelServerOptions};

mod config;
mod delivery;
mod detect;
mod info;
mod known;
mod load;
mod select;

use delivery::Delivery;
pub use detect::{LOCAL_PORTS, LocalServer};
pub use info::{ProviderInfo, ProviderKey, ProviderSource};
pub(crate) use known::KnownProvider;
pub use select::{ModelSource, SelectedModel};

/// The file in the current directory that [`ProviderRegistry::from_env`] reads.
pub const CONFIG_FILE: &str = "helix.toml";

/// The providers of a program, by name. The registry is itself an [`LlmAdapter`]: each call goes to
/// the provider that its model names. Cheap to clone.
///
/// A model is written `provider:model`. Without a provider, it belongs to the only provider or to
/// the default one. A model whose own name contains a colon needs the provider prefix. An agent
/// that names no model gets the default model.
///
/// # Examples
///
/// ```
/// use helix_agents_llm::{ModelServerOptions, ProviderRegistry};
///
/// # fn main() -> helix_agents_core::error::Result<()> {
/// let local = ModelServerOptions::new("local", "http://127.0.0.1:8080/v1");
/// let hosted = ModelServerOptions::new("hosted", "https://llm.example.com/v1");
/// let models = ProviderRegistry::new()
///     .with_provider(local.with_default_model("qwen"))?
///     .with_provider(hosted.with_api_key("secret"))?
///     .with_default("local")?;
/// assert_eq!(models.default_model()?.to_string(), "local:qwen");
/// assert_eq!(models.model("hosted:large")?.provider, "hosted");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct ProviderRegistry {
    providers: BTreeMap<Arc<str>, Provider>,
    default: Option<Arc<str>>,
    /// The model of calls that name no model, as `provider:model`, if it differs from that of the
    /// default provider.
    default_model: Option<Arc<str>>,
    http: HttpClient,
}

#[derive(Debug, Clone)]
struct Provider {
    access: Access,
    default_model: Option<Arc<str>>,
    source: ProviderSource,
    /// The environment variable that holds the key or should hold it, if the key comes from a variable.
    key_variable: Option<Arc<str>>,
}

/// The way to call a provider.
#[derive(Debug, Clone)]
enum Access {
    /// A server, whose adapter the registry created.
    Server(ModelServer),
    /// An adapter of the program.
    Adapter(Arc<dyn LlmAdapter>),
    /// The key is missing from this variable. This is an error only when the provider is used.
    WithoutKey(Arc<str>),
}

/// A model and its provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResolvedModel {
    /// The name of the provider.
    pub provider: String,
    /// The model as the provider knows it. Empty if a custom adapter chooses its own model.
    pub model: String,
}

impl fmt::Display for ResolvedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.provider)?;
        if self.model.is_empty() { Ok(()) } else { write!(f, ":{}", self.model) }
    }
}

impl ProviderRegistry {
    /// Creates a registry without providers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a model server. It shares the registry's connection pool.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] in the same cases as [`ModelServer::new`].
    pub fn with_provider(self, options: ModelServerOptions) -> Result<Self> {
        self.with_server(options, ProviderSource::Program, None)
    }

    /// Adds a model server that this source configures. `key_variable` is the variable that holds its key.
    fn with_server(
        self,
        options: ModelServerOptions,
        source: ProviderSource,
        key_variable: Option<&str>,
    ) -> Result<Self> {
        let server = ModelServer::new(options.with_http(&self.http))?;
        let name = server.name().to_owned();
        let provider = Provider {
            default_model: server.default_model().map(Arc::from),
            access: Access::Server(server),
            source,
            key_variable: key_variable.map(Arc::from),
        };
        Ok(self.insert(&name, provider))
    }

    /// Adds a custom adapter under a name. It serves the models with that prefix, and may serve
    /// calls that name no model.
    #[must_use]
    pub fn with_adapter(self, name: &str, adapter: Arc<dyn LlmAdapter>) -> Self {
        let provider = Provider {
            access: Access::Adapter(adapter),
            default_model: Some("".into()),
            source: ProviderSource::Program,
            key_variable: None,
        };
        self.insert(name, provider)
    }

    /// Uses `adapter` if no provider and no default model is configured; otherwise returns the
    /// registry unchanged. The adapter does not serve agents that name a model of another provider.
    ///
    /// A program that uses the configured model, and a script if there is none:
    ///
    /// ```
    /// use helix_agents_llm::ProviderRegistry;
    /// # use helix_agents_llm::{ModelServer, ModelServerOptions};
    /// # fn models(script: ModelServer) -> helix_agents_core::error::Result<ProviderRegistry> {
    /// let models = ProviderRegistry::from_env()?.or_adapter("script", script);
    /// eprintln!("the model is {}", models.default_model()?);
    /// # Ok(models)
    /// # }
    /// # let script = ModelServer::new(ModelServerOptions::new("x", "http://127.0.0.1:9/v1"))?;
    /// let models = ProviderRegistry::new().or_adapter("script", script);
    /// assert_eq!(models.default_model()?.to_string(), "script");
    /// # Ok::<(), helix_agents_core::error::Error>(())
    /// ```
    #[must_use]
    pub fn or_adapter(self, name: &str, adapter: impl LlmAdapter) -> Self {
        if self.is_empty() && self.default_model.is_none() {
            return self.with_adapter(name, Arc::new(adapter));
        }
        self
    }

    fn insert(mut self, name: &str, provider: Provider) -> Self {
        self.providers.insert(name.into(), provider);
        self
    }

    /// Sets the provider of models that name no provider.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if there is no such provider.
    pub fn with_default(mut self, name: &str) -> Result<Self> {
        if !self.providers.contains_key(name) {
            return Err(Error::new(
                ErrorCode::ConfigInvalid,
                format!("the default provider `{name}` is not configured ({})", self.list()),
            ));
        }
        self.default = Some(name.into());
        Ok(self)
    }

    /// Sets the default model, which is used by calls that name no model.
    #[must_use]
    pub fn with_default_model(mut self, name: &str) -> Self {
        self.default_model = Some(name.into());
        self
    }

    /// Returns the names of the providers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.providers.keys().map(AsRef::as_ref)
    }

    /// Returns `true` if there are no providers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.providers.is_empty()
    }

    /// Returns the default model or, if none is set, that of the default provider.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ModelUnknown`] with a list of the configured providers.
    pub fn default_model(&self) -> Result<ResolvedModel> {
        self.resolve("")
    }

    /// Returns the provider of a model and the provider's name for it. `provider:` selects the
    /// default model of that provider. [`default_model`](Self::default_model) returns the model of
    /// agents that name none.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ModelUnknown`] with a list of the configured providers, also for an
    /// empty name.
    pub fn model(&self, name: &str) -> Result<ResolvedModel> {
        if name.is_empty() {
            return Err(unknown("the name of the model is empty".to_owned()));
        }
        self.resolve(name)
    }

    fn resolve(&self, name: &str) -> Result<ResolvedModel> {
        let (provider, model) = self.find(self.named(name))?;
        let default =
            self.providers.get(&*provider).and_then(|provider| provider.default_model.as_deref());
        let model = Some(model).filter(|model| !model.is_empty()).or(default);
        let model = model.ok_or_else(|| {
            unknown(format!(
                "no model is named, and the provider `{provider}` has no default model"
            ))
        })?;
        Ok(ResolvedModel { model: model.to_owned(), provider: provider.to_string() })
    }

    /// Returns the name, or that of the default model if the name is empty.
    fn named<'a>(&'a self, name: &'a str) -> &'a str {
        let default = self.default_model.as_deref().filter(|_| name.is_empty());
        default.unwrap_or(name)
    }

    fn find<'a>(&self, name: &'a str) -> Result<(Arc<str>, &'a str)> {
        if let Some((prefix, model)) = name.split_once(':') {
            let Some((provider, _)) = self.providers.get_key_value(prefix) else {
                let hint = self.default_name().map_or_else(String::new, |default| {
                    format!("; if the colon belongs to the model's name, write `{default}:{name}`")
                });
                return Err(unknown(format!(
                    "no provider `{prefix}` is configured ({}){hint}",
                    self.list()
                )));
            };
            return Ok((Arc::clone(provider), model));
        }
        let provider = self.default_name().ok_or_else(|| {
            if name.is_empty() {
                return unknown(format!(
                    "no model is named, and there is no default provider ({})",
                    self.list()
                ));
            }
            unknown(format!(
                "the model `{name}` names no provider, and there is no default one ({})",
                self.list()
            ))
        })?;
        Ok((provider, name))
    }

    fn default_name(&self) -> Option<Arc<str>> {
        let only = match self.providers.len() {
            1 => self.providers.keys().next(),
            _ => None,
        };
        self.default.as_ref().or(only).map(Arc::clone)
    }

    fn list(&self) -> String {
        if self.providers.is_empty() {
            return format!(
                "set {}, {}, {} or another provider's key, or describe one in {CONFIG_FILE}",
                env::OPENAI_API_KEY.name,
                env::ANTHROPIC_API_KEY.name,
                env::GEMINI_API_KEY.name,
            );
        }
        let names: Vec<&str> = self.names().collect();
        format!("configured: {}", names.join(", "))
    }

    /// Returns the settings, with the default model if they name none.
    fn settings<'a>(&self, config: &'a LlmConfig) -> Cow<'a, LlmConfig> {
        let model = self.named(&config.model);
        if model == config.model {
            return Cow::Borrowed(config);
        }
        let model = model.to_owned();
        let mut config = config.clone();
        config.model = model;
        Cow::Owned(config)
    }

    fn adapter(&self, config: &LlmConfig) -> Result<&dyn LlmAdapter> {
        let (name, _) = self.find(&config.model)?;
        match self.providers.get(&*name).map(|provider| &provider.access) {
            Some(Access::Server(server)) => Ok(server),
            Some(Access::Adapter(adapter)) => Ok(&**adapter),
            Some(Access::WithoutKey(variable)) => Err(without_key(&name, variable)),
            None => Err(unknown(format!("no provider `{name}` is configured"))),
        }
    }

    /// Returns the settings for a fallback model. Headers with keys are not sent to another provider.
    fn with_model(&self, config: &LlmConfig, model: &str) -> LlmConfig {
        let provider = |model: &str| self.find(model).map(|(provider, _)| provider).ok();
        let mut fallback = config.clone();
        if provider(model) != provider(&config.model) {
            fallback.headers.retain(|name, _| !is_secret_header(&name.to_ascii_lowercase()));
        }
        model.clone_into(&mut fallback.model);
        fallback
    }

    /// Calls the model, and then its fallbacks until one can be used. No other model is called after output.
    async fn with_fallbacks(
        &self,
        config: Cow<'_, LlmConfig>,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let fallbacks = &request.config.fallback_models;
        let request = request.with_config(&config);
        let delivery = Delivery::new(sink);
        let mut response = self.adapter(&config)?.generate_step(request.clone(), &delivery).await?;
        let mut failed = Vec::new();
        for model in fallbacks {
            let Some(error) = fallback_reason(&response, &delivery) else { break };
            tracing::warn!(code = &*error.code, model, "model call failed; calling another model");
            let attempt = FailedAttempt::of_response(error, response.usage);
            let config = self.with_model(&config, model);
            let request = request.clone().with_config(&config);
            let called = match self.adapter(&config) {
                Ok(adapter) => adapter.generate_step(request, &delivery).await,
                Err(error) => Err(error),
            };
            match called {
                Ok(next) => {
                    failed.append(&mut response.failed_attempts);
                    failed.push(attempt);
                    response = next;
                }
                Err(error) if error.code() == ErrorCode::Cancelled || delivery.has_output() => {
                    return Err(error);
                }
                // The failure of the first model says more than that of a model that could not be called.
                Err(error) => tracing::warn!(%error, model, "the model could not be called"),
            }
        }
        failed.append(&mut response.failed_attempts);
        response.failed_attempts = failed;
        Ok(response)
    }
}

impl LlmAdapter for ProviderRegistry {
    // Written by hand, because a call without fallbacks needs no future besides that of its adapter.
    fn generate_step<'registry, 'request, 'sink, 'call>(
        &'registry self,
        request: LlmRequest<'request>,
        sink: &'sink dyn LlmSink,
    ) -> BoxFuture<'call, Result<LlmResponse>>
    where
        'registry: 'call,
        'request: 'call,
        'sink: 'call,
    {
        match self.settings(request.config) {
            Cow::Borrowed(config) if config.fallback_models.is_empty() => {
                match self.adapter(config) {
                    Ok(adapter) => adapter.generate_step(request, sink),
                    Err(error) => Box::pin(ready(Err(error))),
                }
            }
            config => Box::pin(self.with_fallbacks(config, request, sink)),
        }
    }

    fn check(&self, config: &LlmConfig) -> Result<()> {
        let config = self.settings(config);
        self.adapter(&config)?.check(&config)?;
        config.fallback_models.iter().try_for_each(|model| {
            let config = self.with_model(&config, model);
            self.adapter(&config)?.check(&config)
        })
    }
}

impl fmt::Debug for ProviderRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderRegistry")
            .field("providers", &self.names().collect::<Vec<_>>())
            .field("default", &self.default)
            .field("default_model", &self.default_model)
            .finish_non_exhaustive()
    }
}

/// Returns the error of a response if another model may succeed: the model could not be used, and no output was
/// delivered.
fn fallback_reason<'a>(
    response: &'a LlmResponse,
    delivery: &Delivery<'_>,
) -> Option<&'a ErrorRecord> {
    const REASONS: [ErrorCode; 9] = [
        ErrorCode::MediaUnsupported,
        ErrorCode::ProviderCredentialsExpired,
        ErrorCode::ProviderModelNotFound,
        ErrorCode::ProviderRateLimited,
        ErrorCode::ProviderRegionUnsupported,
        ErrorCode::ProviderStreamCut,
        ErrorCode::ProviderTimeout,
        ErrorCode::ProviderUnauthorized,
        ErrorCode::ProviderUnavailable,
    ];
    match &response.result {
        StepResult::Error { error, should_stop: true, .. }
            if !delivery.has_output()
                && REASONS.iter().any(|reason| reason.as_str() == error.code) =>
        {
            Some(error)
        }
        _ => None,
    }
}

fn unknown(problem: String) -> Error {
    Error::new(ErrorCode::ModelUnknown, problem)
}

fn without_key(provider: &str, variable: &str) -> Error {
    Error::new(
        ErrorCode::ConfigInvalid,
        format!("the key of the provider `{provider}` is missing: set {variable}"),
    )
}
