//! The routes of an agent server, compared with axum handlers that make the same calls and do nothing else.
//!
//! Clients, server and runtime share one thread, and the clients only search the bytes for what they wait for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, future::try_join_all};
use helix_agents::executor::{AgentExecutor, ExecuteOptions, Input};
use helix_agents::prelude::*;
use helix_agents::server::{AgentServer, Limits};
use helix_agents::stream::ChunkKind;
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use tokio::net::TcpListener;

use crate::measure::place::Place;
use crate::measure::process;
use crate::probe::{Compared, Http, HttpLoad};

mod bare;
mod wire;

use bare::Bare;
use wire::Connection;

/// The name of the agent.
pub(super) const AGENT: &str = "talker";

/// The number of characters of a chunk.
const CHUNK: usize = 8;

pub(super) async fn measure(place: &Place, load: HttpLoad) -> Result<Http> {
    let talker = Site::open(place, ScriptedLlm::new([Reply::text("A short reply.")])).await?;
    Ok(Http {
        status: status(&talker, load).await?,
        first_chunk: first_chunk(&talker, load).await?,
        first_chunk_in_process_ns: first_chunk_in_process(&talker, load).await?,
        fan_out: fan_out(place, load).await?,
        bytes_per_idle_stream: idle(place, load).await?,
    })
}

/// The servers of one runtime: ours and the bare one.
struct Site {
    runtime: Arc<LocalRuntime>,
    agent: Agent,
    ours: u16,
    bare: u16,
}

impl Site {
    async fn open(place: &Place, model: ScriptedLlm) -> Result<Self> {
        let agent = Agent::builder(AGENT).system_prompt("You talk.").model("scripted").build()?;
        let registry = AgentRegistry::default();
        registry.register(&agent)?;
        let (state, streams) =
            (Arc::clone(&place.handles.state), Arc::clone(&place.handles.streams));
        let runtime = LocalRuntime::builder()
            .state_store(Arc::clone(&state))
            .stream_manager(Arc::clone(&streams))
            .llm(model.chunk_size(CHUNK))
            .registry(registry.clone())
            .build()?;
        let runtime = Arc::new(runtime);
        let executor: Arc<dyn AgentExecutor> = Arc::clone(&runtime) as _;
        let bare =
            Bare { executor: Arc::clone(&executor), registry: registry.clone(), store: state };
        let server =
            AgentServer::builder_with_streams(executor, registry, Arc::clone(&bare.store), streams)
                .limits(unlimited())
                .no_sweep()
                .allow_unauthenticated()
                .build()?;
        let (ours, listener) = listen().await?;
        tokio::spawn(async move { server.serve(listener, std::future::pending()).await });
        let (bare_port, listener) = listen().await?;
        tokio::spawn(bare.serve(listener));
        Ok(Self { runtime, agent, ours, bare: bare_port })
    }

    /// Returns the port of our server (0) or of the bare one (1), with a name for sessions.
    fn port(&self, number: usize) -> (u16, &'static str) {
        if number == 0 { (self.ours, "ours") } else { (self.bare, "bare") }
    }
}

/// Returns limits that a benchmark does not reach.
fn unlimited() -> Limits {
    let mut limits = Limits::default();
    (limits.requests, limits.starts) = (None, None);
    let many = 1_000_000;
    (limits.streams, limits.streams_per_principal) = (many, many);
    (limits.runs, limits.runs_per_principal) = (many, many);
    limits
}

async fn listen() -> Result<(u16, TcpListener)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    Ok((listener.local_addr()?.port(), listener))
}

/// Reads the status of a session, alternately from both servers.
async fn status(site: &Site, load: HttpLoad) -> Result<Compared> {
    let options = ExecuteOptions::default().session("status");
    site.runtime.start(&site.agent, "Talk!", options).await?.result().await?;
    let mut connections = Vec::new();
    for port in [site.ours, site.bare] {
        connections.push(Connection::open(port).await?);
    }
    alternate(load.requests, async |number| {
        let connection = connections.get_mut(number).context("a connection is missing")?;
        let started = Instant::now();
        connection.get("/status?sessionId=status").await?;
        Ok(started.elapsed())
    })
    .await
}

/// Starts a run and waits for the first chunk of its text, alternately at both servers.
async fn first_chunk(site: &Site, load: HttpLoad) -> Result<Compared> {
    let mut count = 0;
    alternate(load.starts, async |number| {
        let (port, name) = site.port(number);
        count += 1;
        let session = format!("{name}-{count}");
        let (mut starter, mut reader) =
            (Connection::open(port).await?, Connection::open(port).await?);
        let started = Instant::now();
        starter.start(&session).await?;
        reader.follow(&session).await?;
        reader.until("text_delta").await?;
        Ok(started.elapsed())
    })
    .await
}

/// Does the same without a server. Returns the median time.
async fn first_chunk_in_process(site: &Site, load: HttpLoad) -> Result<u64> {
    let mut took = Vec::new();
    for count in 0..load.starts {
        let started = Instant::now();
        let options = ExecuteOptions::default().session(format!("in-process-{count}"));
        let handle = site.runtime.start(&site.agent, Input::from("Talk!"), options).await?;
        let mut chunks = handle.stream().await?;
        while let Some(stored) = chunks.next().await {
            if matches!(stored?.chunk.kind, ChunkKind::TextDelta { .. }) {
                break;
            }
        }
        took.push(nanos(started.elapsed()));
    }
    Ok(median(took))
}

/// Lets many clients read one run, alternately from both servers. The times are those until all have read everything.
async fn fan_out(place: &Place, load: HttpLoad) -> Result<Compared> {
    let text = "A word. ".repeat(load.chunks as usize);
    let mut count = 0;
    alternate(load.rounds, async |number| {
        let gate = Gate::new();
        let model = ScriptedLlm::new([Reply::text(text.clone()).at_gate(&gate)]);
        let site = Site::open(place, model).await?;
        let (port, name) = site.port(number);
        count += 1;
        let session = format!("fan-out-{name}-{count}");
        Connection::open(port).await?.start(&session).await?;
        let open = (0..load.readers).map(|_| async {
            let mut reader = Connection::open(port).await?;
            reader.follow(&session).await?;
            reader.until("run_started").await?;
            anyhow::Ok(reader)
        });
        let readers = try_join_all(open).await?;
        gate.reached().await;
        let started = Instant::now();
        gate.open();
        try_join_all(readers.into_iter().map(async |mut reader| reader.until("run_ended").await))
            .await?;
        Ok(started.elapsed())
    })
    .await
}

/// Returns the memory of one stream without a chunk to read, with its connection.
async fn idle(place: &Place, load: HttpLoad) -> Result<f64> {
    let gate = Gate::new();
    let site = Site::open(place, ScriptedLlm::new([Reply::text("Late.").at_gate(&gate)])).await?;
    Connection::open(site.ours).await?.start("idle").await?;
    let open = async || {
        let mut reader = Connection::open(site.ours).await?;
        reader.follow("idle").await?;
        reader.until("run_started").await?;
        anyhow::Ok(reader)
    };
    let first = open().await?;
    let before = process::bytes()?;
    let readers = try_join_all((0..load.idle).map(|_| open())).await?;
    let after = process::bytes()?;
    gate.open();
    drop((first, readers));
    Ok((after as f64 - before as f64) / f64::from(load.idle))
}

/// Measures our server (0) and the bare one (1) alternately. Returns the medians.
async fn alternate(
    times: u32,
    mut once: impl AsyncFnMut(usize) -> Result<Duration>,
) -> Result<Compared> {
    let mut took = [Vec::new(), Vec::new()];
    for round in 0..times {
        for (number, took) in took.iter_mut().enumerate() {
            let once = once(number).await?;
            // The first rounds warm up.
            if round >= times / 10 {
                took.push(nanos(once));
            }
        }
    }
    let [ours, bare] = took.map(median);
    Ok(Compared { ours_ns: ours, bare_ns: bare })
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
