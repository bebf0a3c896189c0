//! Records of errors.

use std::sync::Arc;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{ErrorCode, ErrorRecord};
use helix_agents_core::stream::{Chunk, ChunkKind, StoredChunk};

use super::Redaction;

fn chunk(error: ErrorRecord) -> StoredChunk {
    let chunk = Chunk {
        agent: "clerk".into(),
        session: "talk".into(),
        run: "run-1".into(),
        step: 1,
        at: Timestamp(0),
        kind: ChunkKind::Error { error },
    };
    StoredChunk { seq: 7, attempt: None, chunk: Arc::new(chunk) }
}

fn shown(redaction: Redaction, code: ErrorCode) -> ErrorRecord {
    let secret = ErrorRecord::new(code, "10.0.0.7 is down").with_detail("the prompt");
    let stored = chunk(secret);
    let shown = redaction.chunk(&stored);
    assert_eq!((shown.seq, &shown.chunk.run), (stored.seq, &stored.chunk.run));
    let ChunkKind::Error { error } = &shown.chunk.kind else { panic!("{shown:?}") };
    error.clone()
}

#[test]
fn foreign_messages_and_all_details_are_removed() {
    for code in ErrorCode::ALL.iter().copied() {
        let error = shown(Redaction::new(false), code);
        assert!(error.is(code) && error.kind == code.kind());
        assert_eq!(error.detail, None, "{code}");
        let is_foreign = code.as_str().starts_with("provider_")
            || [
                ErrorCode::HookRefused,
                ErrorCode::Internal,
                ErrorCode::SubAgentDispatchFailed,
                ErrorCode::SubAgentFailed,
                ErrorCode::ToolFailed,
                ErrorCode::ToolPanicked,
                ErrorCode::ToolRefused,
            ]
            .contains(&code);
        assert_eq!(error.message.contains("10.0.0.7"), !is_foreign, "{code}");
        assert_eq!(error.message.contains("`run-1`"), is_foreign, "{code}");
    }
}

#[test]
fn a_server_for_development_shows_everything() {
    let error = shown(Redaction::new(true), ErrorCode::ProviderRejected);
    assert_eq!(
        error.in_full(),
        ErrorRecord::new(ErrorCode::ProviderRejected, "10.0.0.7 is down")
            .with_detail("the prompt")
            .in_full()
    );
}

#[test]
fn other_chunks_are_not_copied() {
    let stored = chunk(ErrorRecord::new(ErrorCode::StepLimit, "too many steps"));
    let shown = Redaction::new(false).chunk(&stored);
    assert!(Arc::ptr_eq(&shown.chunk, &stored.chunk));
}
