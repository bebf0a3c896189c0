//! Displays agent runs in a terminal.
//!
//! [`LiveView`] shows the chunks of a stream as text, with a status line while none arrive. [`Screen`]
//! writes a program's output, as text for users or as JSON for programs. Both write through [`output`],
//! which replaces control characters in text from models, tools and web pages by visible symbols, so
//! that it cannot imitate the program's own output.
//!
//! # Examples
//!
//! ```no_run
//! use futures_util::StreamExt as _;
//! use helix_agents_terminal::{LiveView, Screen};
//! use helix_agents_core::stream::ChunkStream;
//!
//! async fn show(mut chunks: ChunkStream) -> Result<(), Box<dyn std::error::Error>> {
//!     let screen = Screen::new(false);
//!     let mut view = LiveView::new(&screen).with_outcomes();
//!     while let Some(chunk) = view.waiting(chunks.next()).await {
//!         view.show(&chunk?)?;
//!     }
//!     Ok(view.finish()?)
//! }
//! ```

mod live;
pub mod output;
mod screen;

pub use live::{LiveView, ticks};
pub use screen::{Screen, Style, notice};
