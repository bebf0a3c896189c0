//! Images and other files in messages.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::UserMessage;

/// An image or another file, for a model to read.
///
/// Bytes are part of the log and of every request that contains the message, and the store limits the size of an
/// append. Use a URL or a file that was uploaded to the provider for anything larger than a few hundred kilobytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Media {
    /// The media type, such as `image/png` or `application/pdf`.
    #[serde(rename = "type")]
    pub media_type: Arc<str>,
    /// The location of the bytes.
    #[serde(flatten)]
    pub source: MediaSource,
    /// The name of the file, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
}

/// The location of a file's bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MediaSource {
    /// The bytes, encoded as standard base64 with padding.
    Base64(Arc<str>),
    /// An address from which the provider reads the bytes.
    Url(Arc<str>),
    /// A file that was uploaded to a provider. The id is sent to any provider that is called, so use it only with the
    /// one that has the file.
    File {
        /// The name of the provider that has the file, for people who read the transcript.
        provider: Arc<str>,
        /// The provider's id of the file.
        id: Arc<str>,
    },
}

impl fmt::Debug for MediaSource {
    /// Omits the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base64(text) => write!(f, "Base64({} characters)", text.len()),
            Self::Url(url) => f.debug_tuple("Url").field(url).finish(),
            Self::File { provider, id } => {
                f.debug_struct("File").field("provider", provider).field("id", id).finish()
            }
        }
    }
}

impl Media {
    /// Creates a file from its bytes.
    pub fn from_bytes(media_type: impl Into<Arc<str>>, bytes: &[u8]) -> Self {
        Self::new(media_type, MediaSource::Base64(STANDARD.encode(bytes).into()))
    }

    /// Creates a file that the provider reads from an address.
    pub fn from_url(media_type: impl Into<Arc<str>>, url: impl Into<Arc<str>>) -> Self {
        Self::new(media_type, MediaSource::Url(url.into()))
    }

    /// Creates a file from a location.
    pub fn new(media_type: impl Into<Arc<str>>, source: MediaSource) -> Self {
        Self { media_type: media_type.into(), source, name: None }
    }

    /// Sets the name of the file.
    #[must_use]
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Returns `true` if the file is an image.
    #[must_use]
    pub fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }
}

/// An image or another file of a user message, and its place in the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Attachment {
    /// The number of bytes of the text that precede the file.
    pub at: usize,
    /// The file.
    #[serde(flatten)]
    pub media: Media,
}

/// A part of a user message.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ContentPart<'a> {
    /// A piece of the text.
    Text(&'a str),
    /// An image or another file.
    Media(&'a Media),
}

impl UserMessage {
    /// Returns the parts in their order. Contains at least one part; empty text is omitted if there is another part.
    #[must_use]
    pub fn parts(&self) -> Vec<ContentPart<'_>> {
        let mut parts = Vec::with_capacity(2 * self.attachments.len() + 1);
        let mut rest = &*self.content;
        let mut from = 0;
        for attachment in &self.attachments {
            // Only another program can write an invalid position. The file then follows the text so far.
            let split = attachment.at.checked_sub(from).and_then(|at| rest.split_at_checked(at));
            if let Some((before, after)) = split {
                parts.extend(Some(before).filter(|text| !text.is_empty()).map(ContentPart::Text));
                (rest, from) = (after, attachment.at);
            }
            parts.push(ContentPart::Media(&attachment.media));
        }
        if !rest.is_empty() || parts.is_empty() {
            parts.push(ContentPart::Text(rest));
        }
        parts
    }
}
