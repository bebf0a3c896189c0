//! The handlers of the routes: functions of the service, the principal and a decoded request.

pub(crate) mod ag_ui;
pub(crate) mod answers;
pub(crate) mod chat;
pub(crate) mod description;
pub(crate) mod forks;
pub(crate) mod health;
pub(crate) mod messages;
pub(crate) mod sessions;
pub(crate) mod starts;
pub(crate) mod status;
pub(crate) mod stops;
pub(crate) mod streams;
mod turns;
