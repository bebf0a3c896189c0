//! The rules of the `generateContent` API of Gemini.

use helix_agents_llm::ApiFormat;
use serde_json::{Value, json};

use super::seal::{self, Verdict};
use super::{Part, Request, Rules, event};

/// The signature for calls that another model made.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// The API for one account.
pub(crate) struct Gemini {
    account: &'static str,
}

impl Gemini {
    pub(crate) fn of(account: &'static str) -> Self {
        Self { account }
    }

    fn check_signatures(&self, model: &str, parts: &[Value]) -> Result<(), String> {
        for part in parts {
            let Some(signature) = part.get("thoughtSignature") else { continue };
            let signature =
                signature.as_str().ok_or("thoughtSignature: null is not a signature")?;
            let is_valid = seal::verify((self.account, ""), &[], &signed_text(part), signature)
                == Verdict::Valid;
            if !is_valid && signature != UNSIGNED {
                return Err("Corrupted thought signature.".into());
            }
        }
        let first_call = parts.iter().find(|part| part.get("functionCall").is_some());
        if model.contains("gemini-3")
            && first_call.is_some_and(|call| call.get("thoughtSignature").is_none())
        {
            return Err(
                "Function call is missing a thought_signature in functionCall parts.".into()
            );
        }
        Ok(())
    }
}

impl Rules for Gemini {
    fn format(&self) -> ApiFormat {
        ApiFormat::GeminiGenerate
    }

    fn check(&mut self, request: &Request) -> Result<(), String> {
        let body = request.json();
        let excluded = ["systemInstruction", "tools", "toolConfig"];
        if body.get("cachedContent").is_some()
            && excluded.into_iter().any(|member| body.get(member).is_some())
        {
            return Err("CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.".into());
        }
        let contents = body["contents"].as_array().unwrap();
        if contents.last().is_none_or(|content| content["role"] != "user") {
            return Err("Please ensure that multiturn requests end with a user role.".into());
        }
        let model = request.head.split("/models/").nth(1).unwrap();
        for (content, next) in contents.iter().zip(contents.iter().skip(1)) {
            if content["role"] == next["role"] {
                return Err("Please ensure that multiturn requests alternate.".into());
            }
            let count = |content: &Value, kind: &str| {
                let parts = content["parts"].as_array().unwrap();
                parts.iter().filter(|part| part.get(kind).is_some()).count()
            };
            if count(content, "functionCall") != count(next, "functionResponse") {
                return Err("the number of function response parts is not that of the calls".into());
            }
        }
        let replies = contents.iter().filter(|content| content["role"] == "model");
        replies
            .map(|content| content["parts"].as_array().unwrap())
            .try_for_each(|parts| self.check_signatures(model, parts))
    }

    fn events(&mut self, _: &Request, parts: &[Part], _: bool) -> Vec<Vec<u8>> {
        let mut is_signed = false;
        let chunk =
            |part: Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]});
        let mut events: Vec<Value> = Vec::new();
        for part in parts {
            let mut part = match part {
                Part::Thinking(text) | Part::Redacted(text) => {
                    json!({"text": text, "thought": true})
                }
                Part::Text(text) => json!({"text": text}),
                Part::Call(id) | Part::Search(id) | Part::Found(id) => {
                    json!({"functionCall": {"id": id, "name": "lookup", "args": {"key": 1}}})
                }
            };
            // Only the first one of parallel calls is signed.
            if part.get("functionCall").is_some() && !std::mem::replace(&mut is_signed, true) {
                let signature = seal::sign(self.account, "", &[], &signed_text(&part));
                part["thoughtSignature"] = signature.into();
            }
            events.push(chunk(part));
        }
        events.push(json!({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4}}));
        events.iter().map(event).collect()
    }

    fn overload(&self) -> Vec<u8> {
        event(&json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "Overloaded"}}))
    }
}

/// Returns the content of a part that its signature covers.
fn signed_text(part: &Value) -> String {
    let call = &part["functionCall"];
    format!("{}{}{}", part["text"], call["name"], call["args"])
}
