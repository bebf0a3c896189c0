//! Readers of streams that are there while others write: what they see, when, and what they cost.

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

use crate::measure::place::{Place, Way};
use crate::measure::process;
use crate::probe::{Latency, Live, Readers};

/// How many streams are written to at once when it is to go fast.
const AT_ONCE: usize = 32;

/// About what a model says at once.
const WORD: &str = " word";

/// What is written to each stream, and then read before more is written.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// One batch, before anybody reads.
    First,
    /// Batch after batch, at leisure.
    Paced,
    /// As fast as it goes.
    Fast,
}

/// All that takes part.
struct Stage {
    live: Live,
    /// Batches so far.
    batches: AtomicU64,
    streams: Vec<SessionId>,
    /// Readers meet there when they have read what a phase wrote.
    read: Barrier,
    /// When times are counted from.
    epoch: Instant,
}

impl Stage {
    fn batches(&self, phase: Phase) -> u32 {
        match phase {
            Phase::First => 1,
            Phase::Paced => self.live.paced,
            Phase::Fast => self.live.fast,
        }
    }

    /// Since the epoch.
    fn nanos(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

pub(super) async fn measure(place: &Place, live: Live) -> Result<Readers> {
    let stage = Arc::new(Stage {
        live,
        batches: AtomicU64::new(0),
        streams: (0..live.streams).map(|it| SessionId::from(format!("stream-{it}"))).collect(),
        read: Barrier::new(live.readers as usize + 1),
        epoch: Instant::now(),
    });
    let writer = WriterTask::start(place.way.clone(), Arc::clone(&stage));
    writer.write(Phase::First).await?;
    let before = process::bytes()?;
    let mut readers = JoinSet::new();
    for number in 0..live.readers {
        let streams = Arc::clone(&place.handles.streams);
        readers.spawn(read(streams, Arc::clone(&stage), number));
    }
    stage.read.wait().await;
    let after = process::bytes()?;
    writer.write(Phase::Paced).await?;
    stage.read.wait().await;
    let begun = Instant::now();
    writer.write(Phase::Fast).await?;
    stage.read.wait().await;
    let took = begun.elapsed();
    let mut latencies = Vec::new();
    while let Some(reader) = readers.join_next().await {
        latencies.extend(reader.context("a reader panicked")??);
    }
    let chunks = u64::from(live.readers) * u64::from(live.fast) * u64::from(live.chunks);
    Ok(Readers {
        latency: Latency::of(latencies),
        chunks_per_second: chunks as f64 / took.as_secs_f64(),
        bytes_per_reader: (after as f64 - before as f64) / f64::from(live.readers),
    })
}

/// Reads what each phase writes; returns how long the chunks of the paced one took to come.
async fn read(streams: Arc<dyn StreamManager>, stage: Arc<Stage>, number: u32) -> Result<Vec<u64>> {
    let stream = stage.streams.get(number as usize % stage.streams.len());
    let mut chunks = streams.read(stream.context("a reader without a stream")?, 0).await?;
    let mut latencies = Vec::new();
    for phase in [Phase::First, Phase::Paced, Phase::Fast] {
        for _ in 0..stage.batches(phase) * stage.live.chunks {
            let chunk = chunks.next().await.context("a stream ended")??.chunk;
            let ChunkKind::TextDelta { delta } = &chunk.kind else {
                bail!("{chunk:?} was not written")
            };
            ensure!(delta == WORD, "{delta:?} was not written");
            if matches!(phase, Phase::Paced) {
                latencies.push(stage.nanos().saturating_sub(u64::try_from(chunk.at.0)?));
            }
        }
        stage.read.wait().await;
    }
    Ok(latencies)
}

/// A thread with an executor and handles of its own: as if it were another process.
struct WriterTask {
    phases: mpsc::UnboundedSender<(Phase, oneshot::Sender<Result<()>>)>,
}

impl WriterTask {
    fn start(way: Way, stage: Arc<Stage>) -> Self {
        let (phases, asked) = mpsc::unbounded_channel();
        drop(thread::spawn(move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(serve(&way, &stage, asked))
        }));
        Self { phases }
    }

    /// Returns when all of it is written.
    async fn write(&self, phase: Phase) -> Result<()> {
        let (tell, told) = oneshot::channel();
        drop(self.phases.send((phase, tell)));
        told.await.context("the writer ended")?
    }
}

async fn serve(
    way: &Way,
    stage: &Stage,
    mut phases: mpsc::UnboundedReceiver<(Phase, oneshot::Sender<Result<()>>)>,
) -> Result<()> {
    let streams = way.open().await?.streams;
    while let Some((phase, tell)) = phases.recv().await {
        drop(tell.send(write(&*streams, stage, phase).await));
    }
    Ok(())
}

/// Round by round a batch to each stream.
async fn write(streams: &dyn StreamManager, stage: &Stage, phase: Phase) -> Result<()> {
    let batches = (0..stage.batches(phase)).flat_map(|_| &stage.streams);
    if matches!(phase, Phase::Paced) {
        let mut ticks = interval(Duration::from_micros(stage.live.pause_us));
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

/// Chunks that say when they were written.
fn batch(stage: &Stage, stream: &SessionId) -> Batch {
    let chunk = Chunk {
        agent: "bench".into(),
        session: stream.clone(),
        run: RunId::from("run"),
        step: 1,
        at: Timestamp(i64::try_from(stage.nanos()).unwrap_or(i64::MAX)),
        kind: ChunkKind::TextDelta { delta: WORD.to_owned() },
    };
    let chunks = vec![chunk; stage.live.chunks as usize];
    let id = BatchId(stage.batches.fetch_add(1, Ordering::Relaxed).into());
    Batch::new(id, Writer::without_run(stream), [StreamOp::Chunks { attempt: None, chunks }])
}
