//! The tool `current_time`: the date and time.

use std::sync::Arc;

use helix_agents_core::clock::{Clock, Timestamp};
use helix_agents_core::tool::{EffectClass, Tool, ToolContext, ToolError};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{SettingProblem, SettingsError};

/// The name of the tool.
const NAME: &str = "current_time";

/// The time zone if neither the settings nor the model name one.
pub const DEFAULT_ZONE: &str = "UTC";

const DESCRIPTION: &str = "\
Return the current date, time and weekday, in the agent's time zone or in another one.";

/// The tool `current_time`: the date and time in any time zone.
///
/// # Examples
///
/// ```
/// use helix_agents_runtime_local::TokioClock;
/// use helix_agents_tools::time::TimeTool;
///
/// let time = TimeTool::new(TokioClock::new()).zone("Europe/Berlin");
/// assert!(time.tool().is_ok());
/// ```
#[derive(Debug, Clone)]
pub struct TimeTool {
    clock: Arc<dyn Clock>,
    zone: String,
}

impl TimeTool {
    /// Uses the wall-clock time of this clock, and UTC as the default time zone.
    pub fn new(clock: impl Clock) -> Self {
        Self { clock: Arc::new(clock), zone: DEFAULT_ZONE.to_owned() }
    }

    /// Sets the default time zone, as an IANA name. The model can request another one.
    #[must_use]
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.zone = zone.into();
        self
    }

    /// Creates the tool.
    ///
    /// # Errors
    /// Returns the time zone, if it does not exist.
    pub fn tool(&self) -> Result<Tool, SettingsError> {
        let default = zone(&self.zone).map_err(|problem| {
            SettingsError::new(NAME, vec![SettingProblem::new("zone", problem)])
        })?;
        let clock = Arc::clone(&self.clock);
        let run = move |wanted: TimeInput, _: ToolContext| {
            let (clock, default) = (Arc::clone(&clock), default.clone());
            async move {
                let zone = match wanted.zone.as_deref().filter(|zone| !zone.trim().is_empty()) {
                    Some(name) => zone(name).map_err(ToolError::new)?,
                    None => default,
                };
                current_time(clock.now(), zone)
            }
        };
        Ok(Tool::function(NAME, DESCRIPTION, run).effect(EffectClass::Pure))
    }
}

/// The input of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
struct TimeInput {
    /// An IANA time zone name, for example Europe/Berlin. Omit it for the agent's time zone.
    #[schemars(length(max = 64))]
    zone: Option<String>,
}

/// The output of the tool.
#[derive(Debug, PartialEq, Serialize)]
struct CurrentTime {
    /// The time in RFC 9557 format, with the offset and the name of the time zone.
    time: String,
    date: String,
    weekday: String,
    zone: String,
    unix_seconds: i64,
}

fn current_time(now: Timestamp, zone: TimeZone) -> Result<CurrentTime, ToolError> {
    let now = jiff::Timestamp::from_millisecond(now.0)?.to_zoned(zone);
    Ok(CurrentTime {
        time: format!("{now:.0}"),
        date: now.date().to_string(),
        weekday: now.strftime("%A").to_string(),
        zone: now.time_zone().iana_name().unwrap_or(DEFAULT_ZONE).to_owned(),
        unix_seconds: now.timestamp().as_second(),
    })
}

fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name.trim()).map_err(|_| {
        format!(
            "unknown time zone `{}`; use an IANA name such as Europe/Berlin or UTC",
            name.trim()
        )
    })
}

#[cfg(test)]
mod tests;
