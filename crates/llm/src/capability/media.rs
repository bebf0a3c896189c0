//! The check of attached images and files.

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::message::{Media, Message, SharedMessage};

use super::ModelCapabilities;

impl ModelCapabilities {
    /// Rejects images and files that the model does not accept. `in_results` is whether the API can send the files of
    /// tool results.
    ///
    /// # Errors
    /// Returns [`ErrorCode::MediaUnsupported`].
    pub(crate) fn check_media(
        &self,
        model: &str,
        messages: &[SharedMessage],
        in_results: bool,
    ) -> Result<()> {
        if self.images && self.files {
            return Ok(());
        }
        let refused = |media: &&Media| !if media.is_image() { self.images } else { self.files };
        let first = messages.iter().find_map(|message| match &**message {
            Message::User(user) => {
                user.attachments.iter().map(|attachment| &attachment.media).find(refused)
            }
            Message::Tool(result) if in_results => result.attachments.iter().find(refused),
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
