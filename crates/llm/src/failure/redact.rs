//! Redaction of keys and conversation contents in providers' messages.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use memchr::memmem;
use reqwest::Url;

use crate::secret::{ApiKey, is_secret_header};

#[cfg(test)]
mod tests;

/// The maximum number of characters of a provider's message in an error.
const MAX_CHARS: usize = 300;

/// The minimum length at which text that the message shares with the conversation counts as a
/// quote.
const ECHO_BYTES: usize = 16;

/// The minimum length of a secret in a header or in a URL. Shorter values are names of schemes and similar words.
const MIN_SECRET: usize = 8;

const HIDDEN: &str = "[…]";

/// The places of a request that contain secrets.
#[derive(Clone, Copy, Default)]
pub(crate) struct Secrets<'a> {
    /// The API key, or the session token of AWS credentials.
    pub(crate) key: Option<&'a ApiKey>,
    /// The access token.
    pub(crate) token: Option<&'a ApiKey>,
    /// The caller's headers.
    pub(crate) headers: Option<&'a BTreeMap<String, String>>,
    /// The URL, whose query may contain a key.
    pub(crate) url: Option<&'a Url>,
}

impl Secrets<'_> {
    fn texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let keys = [self.key, self.token].into_iter().flatten().map(ApiKey::expose);
        let keys = keys.filter(|key| !key.is_empty()).map(Cow::Borrowed);
        let headers = self.headers.into_iter().flatten();
        let headers = headers.filter(|(name, _)| is_secret_header(&name.to_ascii_lowercase()));
        // Values such as `Bearer KEY` and `name=KEY; …` consist of several words.
        let words = headers.flat_map(|(_, value)| value.split([' ', '=', ';', ',']));
        let words = words.map(Cow::Borrowed);
        let queries = self.url.and_then(Url::query);
        let raw = queries.into_iter().flat_map(|query| query.split(['&', '='])).map(Cow::Borrowed);
        let pairs = self.url.into_iter().flat_map(Url::query_pairs).map(|(_, value)| value);
        keys.chain(words.chain(raw).chain(pairs).filter(|text| text.len() >= MIN_SECRET))
    }
}

impl fmt::Debug for Secrets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
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
    /// Returns `true` if the text contains a secret.
    pub(crate) fn has_secret(&self, text: &str) -> bool {
        self.secrets.texts().any(|secret| text.contains(&*secret))
    }

    /// Returns the start of a provider's message on one line, without keys and quotes of the
    /// request.
    pub(crate) fn short(&self, message: &str) -> String {
        let words: Vec<&str> = message.split_whitespace().collect();
        let mut text = words.join(" ");
        for secret in self.secrets.texts() {
            text = text.replace(&*secret, HIDDEN);
        }
        let cut = text.char_indices().nth(MAX_CHARS).map(|(at, _)| at);
        if let Some(at) = cut {
            text.truncate(at);
            text.push('…');
        }
        let text = hide_keys(&text);
        self.hide_echoes(&text)
    }

    /// Hides every part of the text that occurs in the conversation.
    fn hide_echoes(&self, text: &str) -> String {
        let bytes = text.as_bytes();
        let mut hidden = vec![false; bytes.len()];
        for (at, window) in bytes.windows(ECHO_BYTES).enumerate() {
            if memmem::find(self.conversation, window).is_some() {
                for flag in hidden.iter_mut().skip(at).take(ECHO_BYTES) {
                    *flag = true;
                }
            }
        }
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
}

/// Hides words that look like API keys.
fn hide_keys(text: &str) -> String {
    let looks_like_a_key = |word: &str| {
        let word = word.trim_start_matches(|character: char| !character.is_ascii_alphanumeric());
        word.len() > 8
            && ["sk-", "sk_", "gsk_", "xai-", "AIza", "hf_"]
                .iter()
                .any(|prefix| word.starts_with(prefix))
    };
    let words = text.split(' ');
    let words = words.map(|word| if looks_like_a_key(word) { HIDDEN } else { word });
    words.collect::<Vec<_>>().join(" ")
}
