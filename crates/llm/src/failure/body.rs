//! Error bodies of providers: the many variations of `{"error": {…}}`.

use serde_json::Value;

/// The contents of an error body.
#[derive(Debug, Default)]
pub(crate) struct ProviderError {
    pub(crate) message: Option<String>,
    /// A stable code such as `model_not_found`, or the error's type if it has no code.
    pub(crate) code: Option<String>,
    /// The type of the error, such as `invalid_request_error` or `RESOURCE_EXHAUSTED`.
    kind: Option<String>,
    /// Google's reasons, such as `ACCESS_TOKEN_EXPIRED`.
    reasons: Vec<String>,
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
            let code = value.get("code").and_then(Value::as_str).filter(|code| !code.is_empty());
            let code = code.map(str::to_owned);
            return Self { message: Some(message.clone()), code, ..Self::default() };
        }
        // Some gateways send empty codes.
        let text = |name| {
            error
                .get(name)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let number = |name| match error.get(name)? {
            Value::String(digits) => digits.parse().ok().filter(is_error_status),
            number => u16::try_from(number.as_u64()?).ok().filter(is_error_status),
        };
        Self {
            // AWS capitalises the name in some errors.
            message: text("message")
                .or_else(|| text("Message"))
                .or_else(|| detail(error.get("detail")?)),
            code: text("code").or_else(|| text("type")).or_else(|| text("status")),
            kind: text("type").or_else(|| text("status")),
            reasons: error.get("details").map(reasons).unwrap_or_default(),
            status: number("code").or_else(|| number("status")),
        }
    }

    /// Returns the HTTP status that a provider would have sent for this error if the reply had not
    /// started. An unknown error may be temporary.
    pub(crate) fn likely_status(&self) -> u16 {
        self.names().find_map(status_of).unwrap_or(500)
    }

    /// Returns the code, the type and the reasons.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let names = [self.code.as_deref(), self.kind.as_deref()];
        names.into_iter().flatten().chain(self.reasons.iter().map(String::as_str))
    }

    /// Returns `true` if the model wrote a call or an output that the server could not read. Another attempt may
    /// succeed. Groq reports this as an invalid request.
    pub(crate) fn is_malformed_reply(&self) -> bool {
        let codes = ["tool_use_failed", "json_validate_failed", "output_parse_failed"];
        self.names().any(|name| codes.contains(&name))
    }

    /// Returns `true` if the provider refuses the key. Some providers report this as an invalid request. The message
    /// must start with these words, because elsewhere they may be a quote of the request.
    pub(crate) fn is_about_the_key(&self) -> bool {
        let message = self.message.as_deref().unwrap_or_default().trim().to_ascii_lowercase();
        self.names().any(|name| name == "invalid_api_key")
            || ABOUT_THE_KEY.iter().any(|words| message.starts_with(words))
    }

    /// Returns `true` if the message may contain a part of the key.
    pub(crate) fn may_quote_the_key(&self) -> bool {
        let message = self.message.as_deref().unwrap_or_default().to_ascii_lowercase();
        self.is_about_the_key() || ABOUT_THE_KEY.iter().any(|words| message.contains(words))
    }

    /// Returns `true` if the quota or the credit of the account is exhausted, so that waiting does not help.
    pub(crate) fn is_out_of_quota(&self) -> bool {
        let codes = ["insufficient_quota", "billing_hard_limit_reached", "billing_error"];
        let message = self.message.as_deref().unwrap_or_default().trim().to_ascii_lowercase();
        // Anthropic reports it as an invalid request.
        self.names().any(|name| codes.contains(&name))
            || message.starts_with("your credit balance is too low")
    }
}

/// The words of messages about a refused key, in lower case.
const ABOUT_THE_KEY: [&str; 3] = ["incorrect api key", "invalid api key", "api key not valid"];

/// The words in the codes and types of errors, in lower case and without separators, and the statuses that they mean.
/// The first word of this list that a name contains decides.
const WORDS: &[(&str, u16)] = &[
    ("ratelimit", 429),
    ("quota", 429),
    ("throttl", 429),
    ("exhausted", 429),
    ("toomanyrequests", 429),
    ("modelnotready", 429),
    ("billing", 402),
    ("payment", 402),
    ("timeout", 504),
    ("deadline", 504),
    ("overloaded", 529),
    ("unavailable", 503),
    ("internal", 500),
    ("servererror", 500),
    ("apikey", 401),
    ("auth", 401),
    ("permission", 403),
    ("accessdenied", 403),
    ("invalid", 400),
    ("validation", 400),
    ("contextlength", 400),
    ("notfound", 404),
    ("toolarge", 413),
    ("toolong", 400),
    ("unsupported", 400),
    ("badrequest", 400),
    ("contentfilter", 400),
    ("unimplemented", 501),
    ("notsupported", 501),
    ("failedprecondition", 400),
    ("outofrange", 400),
    ("policy", 400),
    ("image", 400),
];

/// Returns the status that the code or the type of an error means, if it is known.
fn status_of(name: &str) -> Option<u16> {
    let name = plain(name);
    WORDS.iter().find_map(|(word, status)| name.contains(word).then_some(*status))
}

/// Returns a name in lower case and without separators.
pub(super) fn plain(name: &str) -> String {
    let is_part = |character: &char| character.is_ascii_alphanumeric();
    name.chars().filter(is_part).collect::<String>().to_ascii_lowercase()
}

/// Returns the reasons in the details of Google's errors.
fn reasons(details: &Value) -> Vec<String> {
    let details = details.as_array().into_iter().flatten();
    let reasons = details.filter_map(|detail| detail.get("reason")?.as_str());
    reasons.map(str::to_owned).collect()
}

fn is_error_status(status: &u16) -> bool {
    (400..600).contains(status)
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
