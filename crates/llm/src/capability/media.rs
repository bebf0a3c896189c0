//! The check of attached images and files.

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::message::{Media, Message, SharedMessage};

use super::ModelCapabilities;

impl ModelCapabilities {
    /// Rejects images and files that the model does not accept, if `is_sent` returns `true` for them. Its second argument
    /// is `true` for a file of a tool result.
    ///
    /// # Errors
    /// Returns [`ErrorCode::MediaUnsupported`].
    pub(crate) fn check_media(
        &self,
        model: &str,
        messages: &[SharedMessage],
        is_sent: impl Fn(&Media, bool) -> bool,
    ) -> Result<()> {
        if self.images && self.files {
            return Ok(());
        }
        let accepts = |media: &Media| if media.is_image() { self.images } else { self.files };
        let refused = |media: &&Media, in_result| !accepts(media) && is_sent(media, in_result);
        let first = messages.iter().find_map(|message| match &**message {
            Message::User(user) => {
                let mut files = user.attachments.iter().map(|attachment| &attachment.media);
                files.find(|media| refused(media, false))
            }
            Message::Tool(result) => result.attachments.iter().find(|media| refused(media, true)),
            _ => None,
        });
        let Some(media) = first else { return Ok(()) };
        let kind = if media.is_image() { "images" } else { "files" };
        let problem = format!("the model `{model}` does not accept {kind}");
        Err(Error::new(ErrorCode::MediaUnsupported, problem)
            .with_operation("llm::generate_step")
            .with_context("media_type", &media.media_type))
    }
}
