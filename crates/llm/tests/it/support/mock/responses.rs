//! The rules of the Responses API of OpenAI.

use helix_agents_llm::ApiFormat;
use serde_json::{Value, json};

use super::seal::{self, Verdict};
use super::{Part, Request, Rules, event};

/// The Responses API for one account.
pub(crate) struct Responses {
    account: &'static str,
}

impl Responses {
    pub(crate) fn of(account: &'static str) -> Self {
        Self { account }
    }

    fn check_reasoning(&self, items: &[Value]) -> Result<(), String> {
        for (index, item) in items.iter().enumerate() {
            if item["type"] != "reasoning" {
                continue;
            }
            let (id, content) = (item["id"].as_str().unwrap(), item["encrypted_content"].as_str());
            let content = content.ok_or_else(|| format!("Item with id '{id}' not found."))?;
            if seal::verify((self.account, ""), &[], id, content) != Verdict::Valid {
                return Err("The encrypted content could not be verified.".into());
            }
            let follows = items.get(index + 1).is_some_and(|next| {
                matches!(next["type"].as_str(), Some("reasoning" | "function_call"))
                    || next["role"] == "assistant"
            });
            if !follows {
                return Err(format!(
                    "Item '{id}' was provided without its required following item."
                ));
            }
        }
        Ok(())
    }
}

impl Rules for Responses {
    fn format(&self) -> ApiFormat {
        ApiFormat::OpenAiResponses
    }

    fn check(&mut self, request: &Request) -> Result<(), String> {
        let body = request.json();
        if body["store"] != false || body["include"] != json!(["reasoning.encrypted_content"]) {
            return Err("the reasoning could not be sent back".into());
        }
        let tools = body["tools"].as_array().into_iter().flatten();
        if tools.clone().any(|tool| tool["type"] == "function" && tool.get("strict").is_none()) {
            return Err("Missing required parameter: 'tools[0].strict'.".into());
        }
        let items = body["input"].as_array().unwrap();
        let outputs = items.iter().filter(|item| item["type"] == "function_call_output");
        let outputs: Vec<&Value> = outputs.map(|item| &item["call_id"]).collect();
        let mut calls = items.iter().filter(|item| item["type"] == "function_call");
        if let Some(call) = calls.find(|call| !outputs.contains(&&call["call_id"])) {
            return Err(format!("No tool output found for function call {}.", call["call_id"]));
        }
        self.check_reasoning(items)
    }

    fn events(&mut self, request: &Request, parts: &[Part], _: bool) -> Vec<Vec<u8>> {
        let place = request.json()["input"].as_array().unwrap().len();
        let mut events = vec![json!({"type": "response.created", "response": {"model": "m"}})];
        for (index, part) in parts.iter().enumerate() {
            let reasoning = |text: &str| {
                let id = format!("rs_{place}_{index}");
                let content = seal::sign(self.account, "", &[], &id);
                let summary: &[Value] = &[json!({"type": "summary_text", "text": text})];
                let summary = if text.is_empty() { &[] } else { summary };
                json!({"type": "reasoning", "id": id, "encrypted_content": content, "summary": summary})
            };
            let item = match part {
                Part::Thinking(text) => reasoning(text),
                Part::Redacted(_) => reasoning(""),
                Part::Text(text) => {
                    json!({"type": "message", "id": format!("msg_{place}_{index}"), "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": text, "annotations": []}]})
                }
                Part::Call(id) | Part::Search(id) | Part::Found(id) => {
                    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id,
                    "name": "lookup", "arguments": "{\"key\":1}", "status": "completed"})
                }
            };
            events.push(
                json!({"type": "response.output_item.done", "output_index": index, "item": item}),
            );
        }
        let response =
            json!({"status": "completed", "usage": {"input_tokens": 9, "output_tokens": 4}});
        events.push(json!({"type": "response.completed", "response": response}));
        events.iter().map(event).collect()
    }

    fn overload(&self) -> Vec<u8> {
        event(&json!({"type": "error", "code": "server_error", "message": "Overloaded"}))
    }
}
