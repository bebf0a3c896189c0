//! Messages of users, as requests contain them.

use helix_agents_core::message::{Media, MediaSource, UserMessage};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::api_error::ApiError;

/// A message: its text alone, or an object with the text and attachments.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum MessageBody {
    /// The text.
    Text(String),
    /// The text and attachments.
    Full(FullMessage),
}

/// A message with attachments.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FullMessage {
    /// The text.
    content: String,
    /// The images and other files, which follow the text.
    #[serde(default)]
    attachments: Vec<AttachmentBody>,
}

/// An image or another file: either `base64` or `url`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AttachmentBody {
    /// The media type, such as `image/png`.
    #[serde(rename = "type")]
    media_type: String,
    /// The bytes as standard base64.
    base64: Option<String>,
    /// The address from which the model's provider reads the bytes.
    url: Option<String>,
    /// The name of the file.
    name: Option<String>,
}

impl MessageBody {
    /// Returns the message. A client cannot create a hidden message, and cannot refer to files that were uploaded to a
    /// provider, because they belong to the server's account.
    pub(crate) fn into_message(self) -> Result<UserMessage, ApiError> {
        let FullMessage { content, attachments } = match self {
            Self::Text(content) => FullMessage { content, attachments: Vec::new() },
            Self::Full(full) => full,
        };
        if content.is_empty() && attachments.is_empty() {
            return Err(ApiError::invalid("the message is empty"));
        }
        attachments.into_iter().try_fold(UserMessage::new(content), |message, attachment| {
            let AttachmentBody { media_type, base64, url, name } = attachment;
            let source = match (base64, url) {
                (Some(base64), None) => MediaSource::Base64(base64.into()),
                (None, Some(url)) => MediaSource::Url(url.into()),
                _ => return Err(ApiError::invalid("an attachment has either `base64` or `url`")),
            };
            let media = Media::new(media_type, source);
            Ok(message.attach(match name {
                Some(name) => media.name(name),
                None => media,
            }))
        })
    }
}
