//! Readers of streams that are being written: their latency, throughput and memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use helix_agents::clock::Timestamp;
use helix_agents::id::{BatchId, RunId, SessionId};
use helix_agents::stream::{Batch, Chunk, ChunkKind, StreamManager, StreamOp, Writer};
use tokio::sync::{Barrier, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::measure::place::{Opener, Place};
use crate::measure::process;
use crate::probe::{Latency, ReaderLoad, Readers};

/// The number of concurrent writes in the fast phase.
const AT_ONCE: usize = 32;

/// The approximate text of one chunk of a model's reply.
const WORD: &str = " word";

/// A phase. Its batches are written to each stream and read before the next phase starts.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// One batch before the readers wait.
    First,
    /// Batches at a fixed interval.
    Paced,
    /// Batches as fast as possible.
    Fast,
}

/// The state that the readers and the writer share.
struct Stage {
    load: ReaderLoad,
    /// The number of batches so far.
    batches: AtomicU64,
    streams: Vec<SessionId>,
    /// A barrier for the readers and the driver, after each phase.
    read: Barrier,
    /// The origin of all timestamps.
    epoch: Instant,
}

impl Stage {
    fn batches(&self, phase: Phase) -> u32 {
        match phase {
            Phase::First => 1,
            Phase::Paced => self.load.paced,
            Phase::Fast => self.load.fast,
        }
    }

    /// Returns the time since the epoch.
    fn nanos(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

pub(super) async fn measure(place: &Place, load: ReaderLoad) -> Result<Readers> {
    let stage = Arc::new(Stage {
        load,
        batches: AtomicU64::new(0),
        streams: (0..load.streams)
            .map(|number| SessionId::from(format!("stream-{number}")))
            .collect(),
        read: Barrier::new(load.readers as usize + 1),
        epoch: Instant::now(),
    });
    let writer = WriterTask::start(place.opener.clone(), Arc::clone(&stage));
    writer.write(Phase::First).await?;
    let before = process::bytes()?;
    let mut readers = JoinSet::new();
    for number in 0..load.readers {
        let streams = Arc::clone(&place.handles.streams);
        readers.spawn(read(streams, Arc::clone(&stage), number));
    }
    stage.read.wait().await;
    let after = process::bytes()?;
    writer.write(Phase::Paced).await?;
    stage.read.wait().await;
    let started = Instant::now();
    writer.write(Phase::Fast).await?;
    stage.read.wait().await;
    let took = started.elapsed();
    let mut latencies = Vec::new();
    while let Some(reader) = readers.join_next().await {
        latencies.extend(reader.context("a reader panicked")??);
    }
    let chunks = u64::from(load.readers) * u64::from(load.fast) * u64::from(load.chunks);
    Ok(Readers {
        latency: Latency::of(latencies),
        chunks_per_second: chunks as f64 / took.as_secs_f64(),
        bytes_per_reader: (after as f64 - before as f64) / f64::from(load.readers),
    })
}

/// Reads the chunks of each phase. Returns the latencies of the paced phase.
async fn read(streams: Arc<dyn StreamManager>, stage: Arc<Stage>, number: u32) -> Result<Vec<u64>> {
    let stream = stage.streams.get(number as usize % stage.streams.len());
    let mut chunks = streams.read(stream.context("a reader without a stream")?, 0).await?;
    let mut latencies = Vec::new();
    for phase in [Phase::First, Phase::Paced, Phase::Fast] {
        for _ in 0..stage.batches(phase) * stage.load.chunks {
            let chunk = chunks.next().await.context("a stream ended")??.chunk;
            let ChunkKind::TextDelta { delta } = &chunk.kind else {
                bail!("unexpected chunk: {chunk:?}")
            };
            ensure!(delta == WORD, "unexpected text: {delta:?}");
            if matches!(phase, Phase::Paced) {
                latencies.push(stage.nanos().saturating_sub(u64::try_from(chunk.at.0)?));
            }
        }
        stage.read.wait().await;
    }
    Ok(latencies)
}

/// A thread with its own tokio runtime and store handles, like another process.
struct WriterTask {
    phases: mpsc::UnboundedSender<(Phase, oneshot::Sender<Result<()>>)>,
}

impl WriterTask {
    fn start(opener: Opener, stage: Arc<Stage>) -> Self {
        let (phases, requests) = mpsc::unbounded_channel();
        drop(thread::spawn(move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(serve(&opener, &stage, requests))
        }));
        Self { phases }
    }

    /// Writes a phase. Returns when all its batches are written.
    async fn write(&self, phase: Phase) -> Result<()> {
        let (sender, receiver) = oneshot::channel();
        drop(self.phases.send((phase, sender)));
        receiver.await.context("the writer ended")?
    }
}

async fn serve(
    opener: &Opener,
    stage: &Stage,
    mut phases: mpsc::UnboundedReceiver<(Phase, oneshot::Sender<Result<()>>)>,
) -> Result<()> {
    let streams = opener.open().await?.streams;
    while let Some((phase, sender)) = phases.recv().await {
        drop(sender.send(write(&*streams, stage, phase).await));
    }
    Ok(())
}

/// Writes the batches of a phase, one to each stream per round.
async fn write(streams: &dyn StreamManager, stage: &Stage, phase: Phase) -> Result<()> {
    let batches = (0..stage.batches(phase)).flat_map(|_| &stage.streams);
    if matches!(phase, Phase::Paced) {
        let mut ticks = interval(Duration::from_micros(stage.load.pause_us));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for stream in batches {
            ticks.tick().await;
            streams.write(stream, batch(stage, stream)).await?;
        }
        return Ok(());
    }
    let writes = batches.map(|stream| streams.write(stream, batch(stage, stream)));
    let writes = futures::stream::iter(writes).buffer_unordered(AT_ONCE);
    writes.try_for_each(async |_| Ok(())).await?;
    Ok(())
}

/// Returns a batch whose chunks contain the time of the write.
fn batch(stage: &Stage, stream: &SessionId) -> Batch {
    let chunk = Arc::new(Chunk {
        agent: "bench".into(),
        session: stream.clone(),
        run: RunId::from("run"),
        step: 1,
        at: Timestamp(i64::try_from(stage.nanos()).unwrap_or(i64::MAX)),
        kind: ChunkKind::TextDelta { delta: WORD.to_owned() },
    });
    let chunks = std::iter::repeat_n(chunk, stage.load.chunks as usize).collect();
    let id = BatchId(stage.batches.fetch_add(1, Ordering::Relaxed).into());
    Batch::new(id, Writer::without_run(stream), [StreamOp::Chunks { attempt: None, chunks }])
}
