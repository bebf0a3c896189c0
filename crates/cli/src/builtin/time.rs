//! The tool `current_time`: the date and time.

use helix_agents::clock::{Clock as _, Timestamp};
use helix_agents::error::Result;
use helix_agents::runtime_local::TokioClock;
use helix_agents::tool::{EffectClass, Tool, ToolContext, ToolError};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent_file::SourceMap;

/// The time zone if neither the agent file nor the model names one.
const DEFAULT_ZONE: &str = "UTC";

const DESCRIPTION: &str = "\
Return the current date, time and weekday, in the agent's time zone or in another one.";

/// The date and time.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TimeConfig {
    /// The default time zone, as an IANA name. The model can request another one.
    #[schemars(length(min = 1, max = 64), example = &"Europe/Berlin")]
    zone: String,
}

impl Default for TimeConfig {
    fn default() -> Self {
        Self { zone: DEFAULT_ZONE.to_owned() }
    }
}

impl TimeConfig {
    /// Creates the tool.
    ///
    /// # Errors
    /// If the time zone does not exist.
    pub(super) fn tool(&self, source_map: &SourceMap) -> Result<Tool> {
        let default = zone(&self.zone).map_err(|problem| {
            let problem = source_map.problem("/tools/time/zone", problem);
            source_map.error(vec![problem])
        })?;
        let clock = TokioClock::new();
        let run = move |wanted: TimeInput, _: ToolContext| {
            let default = default.clone();
            async move {
                let zone = match wanted.zone.as_deref().filter(|zone| !zone.trim().is_empty()) {
                    Some(name) => zone(name).map_err(ToolError::new)?,
                    None => default,
                };
                current_time(clock.now(), zone)
            }
        };
        Ok(Tool::function("current_time", DESCRIPTION, run).effect(EffectClass::Pure))
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
