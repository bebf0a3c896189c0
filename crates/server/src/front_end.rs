//! The translators of front ends' protocols as sources of event streams.

mod ag_ui;
mod ai_sdk;

pub(crate) use ag_ui::AgUi;
pub(crate) use ai_sdk::AiSdk;
