//! The guide as documentation tests: every Rust block in `docs/src` is compiled and run.
//!
//! `tests/it/guide` checks that every page with code is listed here, and that no block avoids the
//! tests.

macro_rules! pages {
    ($($(#[$only:meta])* $page:ident = $file:literal,)+) => {$(
        $(#[$only])*
        #[doc = include_str!(concat!("../../../docs/src/", $file))]
        mod $page {}
    )+};
}

pages! {
    agents = "agents.md",
    budgets = "budgets.md",
    #[cfg(feature = "client")]
    client = "client.md",
    #[cfg(all(feature = "store-postgres", feature = "store-redis"))]
    configuration = "configuration.md",
    errors = "errors.md",
    finishing = "finishing.md",
    getting_started = "getting-started.md",
    hooks = "hooks.md",
    models = "models.md",
    providers_anthropic = "providers/anthropic.md",
    providers_azure = "providers/azure.md",
    providers_bedrock = "providers/bedrock.md",
    providers_gemini = "providers/gemini.md",
    providers_openai = "providers/openai.md",
    providers_vertex = "providers/vertex.md",
    human_in_the_loop = "human-in-the-loop.md",
    #[cfg(feature = "planner")]
    plan_execute = "plan-execute.md",
    #[cfg(feature = "client")]
    remote_agents = "remote-agents.md",
    #[cfg(all(feature = "runtime-durable", feature = "store-postgres"))]
    runtime_durable = "runtime-durable.md",
    #[cfg(feature = "runtime-temporal")]
    runtime_temporal = "runtime-temporal.md",
    #[cfg(feature = "server")]
    serving = "serving.md",
    sessions = "sessions.md",
    state = "state.md",
    streaming = "streaming.md",
    sub_agents = "sub-agents.md",
    #[cfg(feature = "telemetry")]
    telemetry = "telemetry.md",
    testing = "testing.md",
    tools = "tools.md",
    #[cfg(all(feature = "store-postgres", feature = "store-redis"))]
    stores = "stores.md",
    writing_a_loop = "writing-a-loop.md",
    writing_a_store = "writing-a-store.md",
}
