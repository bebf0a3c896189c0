//! The agent `clerk`. Its tools show what a front end can display: results with progress, questions that the page
//! answers, approvals, custom data, state, a sub-agent, and a tool that ends the turn.

use anyhow::Result;
use helix_agents::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The custom state of a session.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Desk {
    notes: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
}

#[derive(Serialize)]
struct Weather {
    city: String,
    weather: &'static str,
}

/// Returns today's weather in a city.
#[tool]
async fn get_weather(place: Place, cx: &ToolContext) -> Result<Weather, ToolError> {
    cx.progress("asking the station", Some(0.5));
    Ok(Weather { city: place.city, weather: "rain" })
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used, because the page reads the arguments")]
struct Question {
    /// The question for the user.
    question: String,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used, because the page writes the answer")]
struct Choice {
    /// The colour that the user chose.
    colour: String,
}

#[derive(Deserialize, JsonSchema)]
struct Payment {
    /// The recipient.
    to: String,
    /// The amount in cents.
    cents: u64,
}

/// Pays someone. The user has to approve it.
#[tool]
async fn pay(payment: Payment) -> Result<String, ToolError> {
    Ok(format!("paid {} cents to {}", payment.cents, payment.to))
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Note {
    /// The text of the note.
    text: String,
}

/// Takes a note.
#[tool]
async fn take_note(note: Note, cx: &ToolContext) -> Result<&'static str, ToolError> {
    cx.emit("note", &note)?;
    cx.update_state(|desk: &mut Desk| desk.notes.push(note.text))?;
    Ok("noted")
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Work {
    /// The finished text.
    text: String,
}

/// Hands in a finished text. This ends the turn.
#[tool]
async fn hand_in(work: Work) -> Result<Work, ToolError> {
    Ok(work)
}

/// Builds the agent.
pub(crate) fn clerk() -> Result<Agent> {
    let poet = Agent::builder("poet")
        .description("Writes a short poem.")
        .system_prompt("You write poems of two lines.")
        .output::<String>()
        .build()?;
    let ask = Tool::client::<Question>("ask_colour", "Asks the user for a colour.");
    let clerk = Agent::builder("clerk")
        .system_prompt("You are a clerk. Help with the tools that you have.")
        .state::<Desk>()
        .tool(get_weather)
        .tool(ask.output_schema::<Choice>())
        .tool(pay.into_tool().requires_approval().editable())
        .tool(take_note)
        .tool(hand_in.into_tool().finish_with())
        .sub_agent(&poet);
    Ok(clerk.build()?)
}
