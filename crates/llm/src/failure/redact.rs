//! Redaction of keys and conversation contents in providers' messages.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use helix_agents_core::llm::LlmConfig;
use memchr::memmem;
use reqwest::Url;
use serde_json::Value;

use crate::secret::{ApiKey, is_secret_header};

mod echoes;
#[cfg(test)]
mod tests;

/// The maximum number of characters of a provider's message in an error.
const MAX_CHARS: usize = 300;

/// The maximum size of the part of a provider's message from which text is shown. Secrets and quotes that start in this
/// part are recognised to their ends.
const MAX_BYTES: usize = 4096;

/// The minimum number of bytes that are read after that part.
const MIN_BYTES_AFTER: usize = 256;

/// The minimum length of a secret in a header, a URL or an option. Shorter values are names of schemes and similar
/// words.
const MIN_SECRET: usize = 8;

/// The minimum length of a key. Shorter ones are placeholders for servers that need no key, and letters such as `x`
/// occur in every message.
const MIN_KEY: usize = 4;

const HIDDEN: &str = "[…]";

/// The places of a request that contain secrets.
#[derive(Clone, Copy, Default)]
pub(crate) struct Secrets<'a> {
    /// The API key, or the session token of AWS credentials.
    pub(crate) key: Option<&'a ApiKey>,
    /// The access token.
    pub(crate) token: Option<&'a ApiKey>,
    /// The settings of the call, whose headers and provider options may contain keys.
    pub(crate) config: Option<&'a LlmConfig>,
    /// The URL, whose query may contain a key.
    pub(crate) url: Option<&'a Url>,
}

impl Secrets<'_> {
    fn texts(&self) -> Vec<Cow<'_, str>> {
        let mut texts = Vec::new();
        let mut keys: Vec<Cow<'_, str>> = Vec::new();
        let own = [self.key, self.token].into_iter().flatten();
        keys.extend(own.map(|key| Cow::Borrowed(key.expose())));
        if let Some(config) = self.config {
            for (name, value) in &config.headers {
                if is_secret_header(&name.to_ascii_lowercase()) {
                    texts.extend(words(value).map(Cow::Borrowed));
                    if let Some(user) = basic_user(value) {
                        let password = user.split_once(':').map(|(_, password)| password);
                        keys.extend(password.map(|password| Cow::Owned(password.to_owned())));
                        texts.push(Cow::Owned(user));
                    }
                }
            }
            let options = config.provider_options.values().flatten();
            for (name, value) in options {
                add_secrets(value, is_secret_option(name), &mut texts);
            }
        }
        let query = self.url.and_then(Url::query).unwrap_or_default();
        texts.extend(query.split('&').map(value_of).map(Cow::Borrowed));
        let encoded = texts.iter().filter(|text| text.contains('%'));
        let decoded: Vec<_> =
            encoded.filter_map(|text| String::from_utf8(Form::decoded(text).bytes).ok()).collect();
        texts.extend(decoded.into_iter().map(Cow::Owned));
        texts.retain(|text| text.len() >= MIN_SECRET);
        keys.retain(|key| key.len() >= MIN_KEY);
        texts.extend(keys);
        texts
    }
}

impl fmt::Debug for Secrets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

/// Returns the words of a header's value, such as `Bearer KEY` and `name="KEY"; …`, without quotes, names and padding.
fn words(value: &str) -> impl Iterator<Item = &str> {
    let words = value.split_whitespace();
    let words = words.flat_map(|word| [word].into_iter().chain(word.split([';', ','])));
    let words = words.flat_map(|word| [word, value_of(word)]);
    let words = words.map(|word| word.trim_matches(['"', '\'', ';', ',']));
    words.flat_map(|word| [word, word.trim_end_matches('=')])
}

/// Returns the part after the first `=`, or the whole text.
fn value_of(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(_, value)| value)
}

/// Returns `USER:PASSWORD` of basic authentication.
fn basic_user(header: &str) -> Option<String> {
    let (scheme, user) = header.trim().split_once(' ')?;
    let user = STANDARD_NO_PAD.decode(user.trim().trim_end_matches('=')).ok()?;
    String::from_utf8(user).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))
}

fn is_secret_option(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let parts = ["token", "key", "secret", "password", "authorization"];
    is_secret_header(&name) || parts.iter().any(|part| name.contains(part))
}

/// Adds the texts of an option that may be secret: those below a member with such a name.
fn add_secrets<'a>(value: &'a Value, is_secret: bool, texts: &mut Vec<Cow<'a, str>>) {
    match value {
        Value::String(text) if is_secret => {
            texts.push(Cow::Borrowed(text));
            // The option may be a header such as `Bearer KEY`.
            let key = text.split_once(' ').filter(|(_, key)| !key.contains(' '));
            texts.extend(key.map(|(_, key)| Cow::Borrowed(key)));
        }
        Value::Array(items) => {
            for item in items {
                add_secrets(item, is_secret, texts);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                add_secrets(value, is_secret || is_secret_option(name), texts);
            }
        }
        _ => {}
    }
}

/// Redacts the secrets of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Redactor<'a> {
    pub(crate) secrets: Secrets<'a>,
    /// The conversation as it was sent.
    pub(crate) conversation: &'a [u8],
}

impl Redactor<'_> {
    /// Returns `true` if the text is or contains a secret, or a word that looks like an API key.
    pub(crate) fn has_secret(&self, text: &str) -> bool {
        // A short key may be a part of a word.
        let contains = |secret: &str| secret.len() >= MIN_SECRET && text.contains(secret);
        self.secrets.texts().iter().any(|secret| text == secret || contains(secret))
            || !Form::plain(text).keys().is_empty()
    }

    /// Returns the start of a provider's message on one line, without keys and quotes of the
    /// request.
    pub(crate) fn short(&self, message: &str) -> String {
        let secrets = self.secrets.texts();
        // Percent-encoding makes three bytes of one.
        let longest = 3 * secrets.iter().map(|secret| secret.len()).max().unwrap_or_default();
        let read = start_of(message, MAX_BYTES + longest.max(MIN_BYTES_AFTER));
        let mut hidden = echoes::echoes(read, self.conversation);
        hide_keys(read, &secrets, &mut hidden);
        let shown = without(start_of(read, MAX_BYTES), &hidden);
        let mut text = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let cut = text.char_indices().nth(MAX_CHARS).map(|(at, _)| at);
        if !text.is_empty() && (cut.is_some() || message.len() > MAX_BYTES) {
            text.truncate(cut.unwrap_or(text.len()));
            text.push('…');
        }
        text
    }
}

/// Returns at most this many bytes of a text.
fn start_of(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Hides secrets, and words that look like API keys.
fn hide_keys(text: &str, secrets: &[Cow<'_, str>], hidden: &mut [bool]) {
    for form in [Form::plain(text), Form::decoded(text)] {
        for secret in secrets {
            for at in memmem::find_iter(&form.bytes, secret.as_bytes()) {
                form.hide(at, secret.len(), hidden);
            }
        }
        for (at, length) in form.keys() {
            form.hide(at, length, hidden);
        }
    }
}

/// The bytes of a text, as they are or with percent-encoding decoded.
struct Form {
    bytes: Vec<u8>,
    /// The position of each byte in the text, and the end of the text.
    positions: Vec<usize>,
}

impl Form {
    fn plain(text: &str) -> Self {
        Self { bytes: text.as_bytes().to_vec(), positions: (0..=text.len()).collect() }
    }

    fn decoded(text: &str) -> Self {
        let code = |at: usize| {
            let digits = text.get(at + 1..at + 3)?;
            let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)
        };
        let (mut bytes, mut positions, mut at) = (Vec::new(), Vec::new(), 0);
        while let Some(byte) = text.as_bytes().get(at) {
            positions.push(at);
            let code = if *byte == b'%' { code(at) } else { None };
            bytes.push(code.unwrap_or(*byte));
            at += if code.is_some() { 3 } else { 1 };
        }
        positions.push(at);
        Self { bytes, positions }
    }

    /// Marks the part of the text that these bytes come from.
    fn hide(&self, at: usize, length: usize, hidden: &mut [bool]) {
        if let (Some(start), Some(end)) = (self.positions.get(at), self.positions.get(at + length))
        {
            hide(hidden, *start, *end);
        }
    }

    /// Returns the position and length of each word that looks like an API key, or like a masked one such as `sk-…*yz`.
    fn keys(&self) -> Vec<(usize, usize)> {
        let mut keys = Vec::new();
        for prefix in ["sk-", "sk_", "gsk_", "xai-", "AIza", "hf_"] {
            // The end of the last word, whose inside is not searched again.
            let mut end = 0;
            for at in memmem::find_iter(&self.bytes, prefix) {
                let Some((before, rest)) = self.bytes.split_at_checked(at) else { break };
                if at < end || before.last().is_some_and(u8::is_ascii_alphanumeric) {
                    continue;
                }
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_*.".contains(byte);
                let word = rest.iter().take_while(|byte| is_part(byte)).count();
                end = at + word;
                // Without the period at the end of a sentence.
                let last = rest.iter().take(word).rposition(|byte| *byte != b'.');
                let length = last.map_or(0, |last| last + 1);
                if length > 8 {
                    keys.push((at, length));
                }
            }
        }
        keys
    }
}

fn hide(hidden: &mut [bool], start: usize, end: usize) {
    for flag in hidden.iter_mut().take(end).skip(start) {
        *flag = true;
    }
}

/// Returns the text without the hidden bytes.
fn without(text: &str, hidden: &[bool]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut was_hidden = false;
    for (at, character) in text.char_indices() {
        let is_hidden = hidden.get(at).copied().unwrap_or_default();
        if !is_hidden {
            out.push(character);
        } else if !was_hidden {
            out.push_str(HIDDEN);
        }
        was_hidden = is_hidden;
    }
    out
}
