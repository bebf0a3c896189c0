//! The creation of capabilities in code.

use helix_agents_core::llm::Effort;

use super::{ModelCapabilities, Sampling};

impl ModelCapabilities {
    /// Creates the capabilities of a model without reasoning settings, sampling settings and strict tools.
    ///
    /// ```
    /// use helix_agents_core::llm::Effort;
    /// use helix_agents_llm::{ModelCapabilities, ModelServerOptions, Sampling};
    ///
    /// let capabilities = ModelCapabilities::new()
    ///     .with_efforts([Effort::Low, Effort::High])
    ///     .with_sampling(Sampling::Yes);
    /// let options = ModelServerOptions::new("local", "http://127.0.0.1:8080/v1")
    ///     .with_model_capabilities("thinker", capabilities);
    /// assert!(options.model_capabilities["thinker"].efforts.contains(&Effort::High));
    ///
    /// // A deployment of a known model under another name.
    /// let known = ModelCapabilities::of("claude-sonnet-5").cloned().unwrap_or_default();
    /// let options = ModelServerOptions::foundry_claude("foundry", "example")
    ///     .with_model_capabilities("production", known);
    /// assert!(options.model_capabilities["production"].strict_tools);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether reasoning can be limited to a number of tokens.
    #[must_use]
    pub fn with_budget(mut self, budget: bool) -> Self {
        self.budget = budget;
        self
    }

    /// Sets whether requests may ask the model to choose by itself how much it reasons.
    #[must_use]
    pub fn with_adaptive(mut self, adaptive: bool) -> Self {
        self.adaptive = adaptive;
        self
    }

    /// Sets whether reasoning can be turned off.
    #[must_use]
    pub fn with_can_be_off(mut self, can_be_off: bool) -> Self {
        self.can_be_off = can_be_off;
        self
    }

    /// Sets the supported levels of effort.
    #[must_use]
    pub fn with_efforts(mut self, efforts: impl IntoIterator<Item = Effort>) -> Self {
        self.efforts = efforts.into_iter().collect();
        self
    }

    /// Sets whether the model accepts settings such as `temperature`.
    #[must_use]
    pub fn with_sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// Sets whether a request can name the tool that the model must call.
    #[must_use]
    pub fn with_forced_tool(mut self, forced_tool: bool) -> Self {
        self.forced_tool = forced_tool;
        self
    }

    /// Sets whether the model accepts earlier reasoning only if everything before it is unchanged.
    #[must_use]
    pub fn with_binds_reasoning(mut self, binds_reasoning: bool) -> Self {
        self.binds_reasoning = binds_reasoning;
        self
    }

    /// Sets whether the model supports strict tools.
    #[must_use]
    pub fn with_strict_tools(mut self, strict_tools: bool) -> Self {
        self.strict_tools = strict_tools;
        self
    }

    /// Sets whether a request may contain both tools and an output schema.
    #[must_use]
    pub fn with_tools_with_schema(mut self, tools_with_schema: bool) -> Self {
        self.tools_with_schema = tools_with_schema;
        self
    }

    /// Sets whether the model accepts images.
    #[must_use]
    pub fn with_images(mut self, images: bool) -> Self {
        self.images = images;
        self
    }

    /// Sets whether the model accepts files other than images, such as documents.
    #[must_use]
    pub fn with_files(mut self, files: bool) -> Self {
        self.files = files;
        self
    }
}
