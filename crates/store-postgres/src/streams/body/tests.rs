//! Chunks as text and back.

use helix_agents_core::clock::Timestamp;
use helix_agents_core::stream::{Attempt, Chunk, ChunkKind};

use super::{Body, Encoder, Group};

fn chunk(step: u32, at: i64, delta: &str) -> Chunk {
    Chunk {
        agent: "a".into(),
        session: "s".into(),
        run: "r".into(),
        step,
        at: Timestamp(at),
        kind: ChunkKind::TextDelta { delta: delta.to_owned() },
    }
}

fn body(parts: &[(Option<Attempt>, &[Chunk])]) -> (u64, String) {
    let (mut encoder, mut body) = (Encoder::default(), Body::default());
    for (attempt, chunks) in parts {
        encoder.parts(chunks).unwrap().iter().for_each(|part| body.push(*attempt, part));
    }
    (body.count, String::from_utf8(body.finish()).unwrap())
}

fn read(body: &str) -> Vec<(Option<Attempt>, Chunk)> {
    let groups = Group::all(body.as_bytes()).unwrap().into_iter();
    groups.flat_map(|group| std::iter::repeat(group.attempt).zip(group.chunks())).collect()
}

#[test]
fn chunks_of_one_origin_and_attempt_share_both() {
    let one = [chunk(1, 1, "x"), chunk(1, 2, "\"]}")];
    let more = [chunk(1, 3, "y"), chunk(2, 4, "z")];
    let begun = Some(Attempt(7));
    let (count, body) = body(&[(None, &one), (None, &more), (begun, &one), (begun, &[])]);
    let expected = concat!(
        r#"[{"agent":"a","session":"s","run":"r","step":1,"chunks":["#,
        r#"[1,{"type":"text_delta","delta":"x"}],[2,{"type":"text_delta","delta":"\"]}"}],"#,
        r#"[3,{"type":"text_delta","delta":"y"}]]},"#,
        r#"{"agent":"a","session":"s","run":"r","step":2,"chunks":["#,
        r#"[4,{"type":"text_delta","delta":"z"}]]},"#,
        r#"{"agent":"a","session":"s","run":"r","step":1,"attempt":7,"chunks":["#,
        r#"[1,{"type":"text_delta","delta":"x"}],[2,{"type":"text_delta","delta":"\"]}"}]]}]"#,
    );
    assert_eq!(body, expected);
    let boundaries = one.iter().chain(&more).map(|chunk| (None, chunk.clone()));
    let of_attempt = one.iter().map(|chunk| (begun, chunk.clone()));
    assert_eq!(read(&body), boundaries.chain(of_attempt).collect::<Vec<_>>());
    assert_eq!(count, 6);
}

#[test]
fn what_is_no_body_is_told_apart() {
    for body in ["", "[", "{}", "[{}]", r#"[{"agent":"a","session":"s","run":"r","step":1}]"#] {
        assert!(Group::all(body.as_bytes()).is_none(), "{body}");
    }
}
