//! Redaction of keys and conversation contents in providers' messages.

use memchr::memmem;

use crate::secret::ApiKey;

#[cfg(test)]
mod tests;

/// The maximum number of characters of a provider's message in an error.
const MAX_CHARS: usize = 300;

/// The minimum length at which text that the message shares with the conversation counts as a
/// quote.
const ECHO_BYTES: usize = 16;

const HIDDEN: &str = "[…]";

/// Redacts the secrets of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Redactor<'a> {
    pub(crate) key: Option<&'a ApiKey>,
    /// The conversation as it was sent.
    pub(crate) conversation: &'a [u8],
}

impl Redactor<'_> {
    /// Returns the start of a provider's message on one line, without keys and quotes of the
    /// request.
    pub(crate) fn short(&self, message: &str) -> String {
        let words: Vec<&str> = message.split_whitespace().collect();
        let mut text = words.join(" ");
        if let Some(key) = self.key.map(ApiKey::expose).filter(|key_text| !key_text.is_empty()) {
            text = text.replace(key, HIDDEN);
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
