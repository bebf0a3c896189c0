//! Conformance suites for authors of stores, streams and runtimes of Helix Agents.
//!
//! The traits of `helix-agents-core` describe what a backend guarantees, and the suites of this crate check it.
//! Each suite has a harness trait, which opens the backend under test, and a macro, which expands to one
//! `#[test]` per scenario:
//!
//! | contract | harness | macro |
//! |---|---|---|
//! | [`StateStore`](helix_agents_core::store::StateStore) | [`StoreHarness`](store_suite::StoreHarness) | [`store_suite!`] |
//! | [`StreamManager`](helix_agents_core::stream::StreamManager) | [`StreamHarness`](stream_suite::StreamHarness) | [`stream_suite!`] |
//! | a store that also keeps streams | [`BackendHarness`](backend_suite::BackendHarness) | [`backend_suite!`] |
//! | data that survives SIGKILL | [`DurableHarness`](durable_suite::DurableHarness) | [`durable_suite!`] |
//! | [`AgentExecutor`](helix_agents_core::executor::AgentExecutor) | [`RuntimeHarness`](runtime_suite::RuntimeHarness) | [`runtime_suite!`] |
//!
//! Every scenario has a [deadline](scenario::LIMIT), so a backend that hangs fails a test instead of blocking
//! the test run. A backend conforms to a contract if it passes all scenarios of the suite.
//!
//! [`chaos`] wraps a harness and injects random faults: run the store suite and the stream suite against the
//! wrapped harness as well. [`faults`] and [`retrying`] wrap a store, for use in your own tests.
//! [`normalise`] renders logs and streams as text that can be compared.
//!
//! Add the crate to the development dependencies of the backend. The macros need no other crate. A harness is
//! implemented with the crate `async-trait`, and its methods use types of `helix-agents-core`, which the crate
//! `helix-agents` exports, too.
//!
//! # Examples
//!
//! The store suite and the stream suite for a backend that keeps both, in a file such as `tests/it/main.rs`.
//! Replace `MemoryStore` with your backend:
//!
//! ```
//! # fn main() {}
//! mod conformance {
//!     use std::sync::Arc;
//!
//!     use helix_agents_conformance::store_suite::StoreHarness;
//!     use helix_agents_core::store::{StateStore, StoreScope};
//!     use helix_agents_store_memory::MemoryStore;
//!
//!     struct Harness(MemoryStore);
//!
//!     #[async_trait::async_trait]
//!     impl StoreHarness for Harness {
//!         fn scope(&self) -> StoreScope {
//!             StoreScope::Process
//!         }
//!
//!         async fn open(&self) -> Arc<dyn StateStore> {
//!             Arc::new(self.0.clone())
//!         }
//!     }
//!
//!     async fn harness() -> Harness {
//!         Harness(MemoryStore::new())
//!     }
//!
//!     helix_agents_conformance::store_suite!(harness);
//! }
//!
//! mod stream {
//!     use std::sync::Arc;
//!
//!     use helix_agents_conformance::stream_suite::StreamHarness;
//!     use helix_agents_core::stream::StreamManager;
//!     use helix_agents_store_memory::{MemoryOptions, MemoryStore};
//!
//!     struct Harness(MemoryStore);
//!
//!     #[async_trait::async_trait]
//!     impl StreamHarness for Harness {
//!         async fn open(&self) -> Arc<dyn StreamManager> {
//!             Arc::new(self.0.clone())
//!         }
//!
//!         async fn open_keeping(&self, chunks: u64) -> Arc<dyn StreamManager> {
//!             Arc::new(MemoryStore::with_options(MemoryOptions::new().stream_retention(chunks)))
//!         }
//!     }
//!
//!     async fn harness() -> Harness {
//!         Harness(MemoryStore::new())
//!     }
//!
//!     helix_agents_conformance::stream_suite!(harness);
//! }
//! ```
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

pub mod backend_suite;
pub mod chaos;
pub mod durable_suite;
pub mod faults;
pub mod ids;
pub mod normalise;
pub mod retrying;
pub mod rng;
pub mod runtime_suite;
pub mod scenario;
mod similar_ids;
pub mod store_suite;
pub mod stream_suite;
mod traced;
