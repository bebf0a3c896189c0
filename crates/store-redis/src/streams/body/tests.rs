//! Chunks as text, and back.

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{Attempt, Chunk, ChunkKind};

use super::{Part, around, chunks};

fn chunk(session: &str, kind: ChunkKind) -> Chunk {
    let session = SessionId::from(session);
    Chunk { agent: "a".into(), session, run: "r".into(), step: 1, at: Timestamp(7), kind }
}

fn text(session: &str, delta: &str) -> Chunk {
    chunk(session, ChunkKind::TextDelta { delta: delta.to_owned() })
}

#[test]
fn chunks_of_one_origin_share_a_part_and_come_back_as_they_were() {
    let all = [text("s", "one"), text("s", "\"two\"\0"), text("other", "three"), text("s", "four")];
    let parts = Part::all(&all).unwrap();
    assert_eq!(parts.iter().map(|it| it.count).collect::<Vec<_>>(), [2, 1, 1]);
    let back: Vec<Chunk> =
        parts.iter().flat_map(|it| chunks(it.text.as_bytes()).unwrap()).collect();
    assert_eq!(back, all);
}

#[test]
fn the_numbers_of_attempts_fit_into_an_announcement_whatever_its_origin_is_called() {
    let origin = chunk("\"attempts\":[]", ChunkKind::StreamResync);
    let attempts = |attempts| ChunkKind::StepCommitted { attempts, version: 3 };
    let (before, behind) = around(&origin, &attempts(Vec::new())).unwrap();
    let back: Vec<Chunk> = chunks(format!("{before}1,2{behind}").as_bytes()).unwrap().collect();
    assert_eq!(back, [Chunk { kind: attempts(vec![Attempt(1), Attempt(2)]), ..origin }]);
}
