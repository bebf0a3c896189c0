//! Conversations of several steps with servers that enforce the rules of their providers.

mod failures;
mod pauses;
mod reasoning;
mod settings;
