//! Error bodies of providers: the many variations of `{"error": {…}}`.

use serde_json::Value;

/// The contents of an error body.
#[derive(Debug, Default)]
pub(crate) struct ProviderError {
    pub(crate) message: Option<String>,
    /// A stable code such as `model_not_found`, or the error's type if it has no code.
    pub(crate) code: Option<String>,
    /// The HTTP status that an error in the middle of a stream reports.
    pub(crate) status: Option<u16>,
}

impl ProviderError {
    /// Parses a body. An unreadable body, such as an HTML page, results in an empty error.
    pub(crate) fn parse(body: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            return Self::default();
        };
        // Some gateways wrap the object in a list.
        let value = match &value {
            Value::Array(items) => items.first().unwrap_or(&Value::Null),
            other => other,
        };
        let error = value.get("error").unwrap_or(value);
        if let Value::String(message) = error {
            let code = value.get("code").and_then(Value::as_str).map(str::to_owned);
            return Self { message: Some(message.clone()), code, ..Self::default() };
        }
        let text = |name| error.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = |name| {
            let number = error.get(name).and_then(Value::as_u64)?;
            u16::try_from(number).ok().filter(|status| (400..600).contains(status))
        };
        Self {
            message: text("message").or_else(|| detail(error.get("detail")?)),
            code: text("code").or_else(|| text("type")).or_else(|| text("status")),
            status: number("code").or_else(|| number("status")),
        }
    }

    /// Returns the HTTP status that a provider would have sent for this error if the reply had not
    /// started.
    pub(crate) fn likely_status(&self) -> u16 {
        let code = self.code.as_deref().unwrap_or_default();
        let has = |word: &str| code.contains(word);
        if has("rate_limit") || has("quota") {
            429
        } else if has("auth") || has("api_key") || has("permission") {
            401
        } else if has("invalid") || has("context_length") || has("not_found") {
            400
        } else {
            500
        }
    }

    /// Returns `true` if the provider refuses the key. Some providers report this as an invalid request.
    pub(crate) fn is_about_the_key(&self) -> bool {
        let message = self.message.as_deref().unwrap_or_default().to_ascii_lowercase();
        let words = ["incorrect api key", "invalid api key", "api key not valid"];
        self.code.as_deref() == Some("invalid_api_key")
            || words.iter().any(|words| message.contains(words))
    }

    /// Returns `true` if the account's quota is exhausted, so that waiting does not help.
    pub(crate) fn is_out_of_quota(&self) -> bool {
        matches!(self.code.as_deref(), Some("insufficient_quota" | "billing_hard_limit_reached"))
    }

    /// Returns `true` if the provider does not have the model.
    pub(crate) fn is_about_the_model(&self, status: u16) -> bool {
        let named = |text: &str| text.to_ascii_lowercase().contains("model");
        match self.code.as_deref() {
            Some("model_not_found") => true,
            _ => status == 404 && self.message.as_deref().is_some_and(named),
        }
    }
}

/// Reads FastAPI's form: a string, or a list of problems. The `input` members, which quote the
/// request, are dropped.
fn detail(detail: &Value) -> Option<String> {
    match detail {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let texts = items.iter().filter_map(|item| item.get("msg")?.as_str());
            Some(texts.collect::<Vec<_>>().join("; "))
        }
        _ => None,
    }
}
