//! Decodes the body of a response to text.

use encoding_rs::{Encoding, UTF_8};
use reqwest::Response;
use reqwest::header::{self, HeaderMap};

use super::MAX_CHARS;
use crate::text::shortened;

/// Subtypes of `application/` that are text.
const TEXT: [&str; 8] = [
    "json",
    "xml",
    "javascript",
    "x-javascript",
    "x-www-form-urlencoded",
    "yaml",
    "x-yaml",
    "toml",
];

/// The content type of a response; empty if the server does not send one.
///
/// # Errors
/// Returns an error if the content is compressed or not text.
pub(super) fn content_type(headers: &HeaderMap) -> Result<String, String> {
    let encoding = headers.get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    if let Some(encoding) = encoding.filter(|name| !name.eq_ignore_ascii_case("identity")) {
        let encoding = shortened(encoding, MAX_CHARS);
        return Err(format!(
            "the response has the content encoding `{encoding}`, which was not requested"
        ));
    }
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(String::new()) };
    let value = shortened(value.to_str().unwrap_or_default().trim(), MAX_CHARS);
    if is_text(&value) {
        return Ok(value);
    }
    Err(format!("the response is `{}`, not text", essence(&value)))
}

fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_text(content_type: &str) -> bool {
    let essence = essence(content_type);
    match essence.split_once('/') {
        Some(("text", _)) => true,
        Some((_, kind)) => {
            TEXT.contains(&kind) || kind.ends_with("+json") || kind.ends_with("+xml")
        }
        None => essence.is_empty(),
    }
}

fn encoding(content_type: &str) -> &'static Encoding {
    let charset = content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        name.trim().eq_ignore_ascii_case("charset").then_some(value)
    });
    charset.and_then(|label| Encoding::for_label(label.as_bytes())).unwrap_or(UTF_8)
}

/// Decodes at most `most` bytes of the body. Returns the text and whether it is truncated.
///
/// # Errors
/// Returns an error if the connection fails, or if the body is not text.
pub(super) async fn text(
    mut response: Response,
    content_type: &str,
    most: usize,
) -> Result<(String, bool), String> {
    let mut bytes = Vec::new();
    let mut truncated = false;
    let broken = |error: reqwest::Error| {
        format!("the connection failed while the response was read: {error}")
    };
    while let Some(piece) = response.chunk().await.map_err(broken)? {
        let room = most - bytes.len();
        bytes.extend_from_slice(piece.get(..room).unwrap_or(&piece));
        if piece.len() > room {
            truncated = true;
            break;
        }
    }
    let mut decoder = encoding(content_type).new_decoder();
    let mut text = String::new();
    text.reserve(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len()));
    // Truncated bytes may end within a character.
    let (_, _, _) = decoder.decode_to_string(&bytes, &mut text, !truncated);
    if text.contains('\0') {
        return Err("the response is not text".to_owned());
    }
    Ok((text, truncated))
}
