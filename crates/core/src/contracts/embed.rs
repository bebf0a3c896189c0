//! The embedder contract: texts as vectors.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::error::Result;
use crate::usage::Usage;

/// Turns texts into vectors whose similarity tells how close their meanings are.
///
/// Vectors of different models, or with different numbers of dimensions, cannot be compared.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Returns the model. Only vectors of equal models can be compared.
    fn model(&self) -> EmbeddingModel<'_>;

    /// Returns the vectors of texts, in their order. All have the same number of dimensions, and their numbers are
    /// finite.
    ///
    /// # Errors
    /// Returns the errors of a failed call, after its retries, and [`ErrorCode::Cancelled`] if the call is cancelled.
    /// No vectors are returned then.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection. Nothing else is affected.
    ///
    /// [`ErrorCode::Cancelled`]: crate::error::ErrorCode::Cancelled
    async fn embed(
        &self,
        texts: &[&str],
        purpose: EmbeddingPurpose,
        cancel: &CancellationToken,
    ) -> Result<Embeddings>;
}

/// The model of an [`Embedder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingModel<'a> {
    /// The name, as `provider:model`.
    pub name: &'a str,
    /// The number of dimensions that is requested. `None` is the default of the model.
    pub dimensions: Option<u32>,
}

/// The use of a text. Some models create different vectors for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmbeddingPurpose {
    /// The text is stored, to be found later.
    Document,
    /// The text is a search query.
    Query,
}

/// The vectors of texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Embeddings {
    /// One vector per text.
    pub vectors: Vec<Vec<f32>>,
    /// The tokens that the call used, if the provider reports them.
    pub usage: Usage,
}
