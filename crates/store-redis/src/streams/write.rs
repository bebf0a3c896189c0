//! Writing streams: a batch is one script, and mostly one entry of a Redis stream.

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{
    Attempt, AttemptRef, Boundary, Chunk, ChunkKind, Mark, StreamOp, Written, check_batch,
};

use super::body::{Part, around};
use super::json;
use crate::connection::Again;
use crate::{Inner, script};

/// What a script is told, word by word.
#[derive(Default)]
struct Words(Vec<Vec<u8>>);

impl Words {
    fn say(&mut self, word: impl Into<Vec<u8>>) {
        self.0.push(word.into());
    }

    fn number(&mut self, number: &impl ToString) {
        self.say(number.to_string());
    }

    fn parts(&mut self, chunks: &[Chunk]) -> Result<()> {
        let parts = Part::all(chunks)?;
        self.number(&parts.len());
        for part in parts {
            self.number(&part.count);
            self.say(part.text);
        }
        Ok(())
    }

    fn boundaries(&mut self, boundaries: &[Boundary]) -> Result<()> {
        self.number(&boundaries.len());
        for Boundary { version, chunk } in boundaries {
            self.number(version);
            self.parts(std::slice::from_ref(chunk))?;
        }
        Ok(())
    }

    fn attempts(&mut self, attempts: &[Attempt]) {
        self.number(&attempts.len());
        attempts.iter().for_each(|attempt| self.number(&attempt.0));
    }

    fn around(&mut self, origin: &Chunk, kind: &ChunkKind) -> Result<()> {
        let (before, behind) = around(origin, kind)?;
        self.say(before);
        self.say(behind);
        Ok(())
    }

    fn operation(&mut self, operation: &StreamOp) -> Result<()> {
        match operation {
            StreamOp::Begin { effect, origin } => {
                self.say("begin");
                self.say(origin.session.as_str());
                self.say(json(effect)?);
                self.around(origin, &ChunkKind::StepDiscarded { attempts: Vec::new() })
            }
            StreamOp::Chunks { attempt, chunks } => {
                let (kind, name) = match attempt {
                    None => ("none", String::new()),
                    Some(AttemptRef::Known(attempt)) => ("known", attempt.0.to_string()),
                    Some(AttemptRef::Begun(index)) => ("begun", index.to_string()),
                };
                self.say("chunks");
                self.say(kind);
                self.say(name);
                self.parts(chunks)
            }
            StreamOp::Mark(mark) => self.mark(mark),
        }
    }

    fn mark(&mut self, mark: &Mark) -> Result<()> {
        let Mark { version, settled, discarded, origin, boundaries } = mark;
        self.say("mark");
        self.say(origin.session.as_str());
        self.number(version);
        self.attempts(settled);
        self.attempts(discarded);
        let attempts = Vec::new();
        self.around(origin, &ChunkKind::StepCommitted { attempts, version: *version })?;
        self.around(origin, &ChunkKind::StepDiscarded { attempts: Vec::new() })?;
        self.boundaries(boundaries)
    }
}

impl Inner {
    pub(super) async fn write(&self, stream: &SessionId, batch: Vec<StreamOp>) -> Result<Written> {
        check_batch(&batch)?;
        let mut words = Words::default();
        words.say(stream.as_str());
        words.number(&self.streams.retention);
        words.number(&self.streams.ttl.as_millis());
        batch.iter().try_for_each(|operation| words.operation(operation))?;
        let words: Vec<&[u8]> = words.0.iter().map(Vec::as_slice).collect();
        let keys = self.keys.of(stream).stream();
        // Nobody could tell chunks that were written twice.
        let mut reply = self.server.eval(&script::STREAM_WRITE, &keys, &words, Again::No).await?;
        let mut written = Written { last_seq: reply.number()?, ..Written::default() };
        let begun: usize = reply.number()?;
        for _ in 0..begun {
            written.begun.push(Attempt(reply.number()?));
        }
        while !reply.is_empty() {
            written.refused.push(Attempt(reply.number()?));
        }
        self.watch.written(stream);
        Ok(written)
    }
}
