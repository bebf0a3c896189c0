//! `helix tail`: follows the output of a session from any process.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use futures_util::StreamExt as _;
use helix_agents::AnyStore;
use helix_agents::client::{Client, FollowOptions};
use helix_agents::error::Error;
use helix_agents::id::SessionId;
use helix_agents::store::StateStore as _;
use helix_agents::stream::{StoredChunk, StreamManager};
use helix_agents::terminal::LiveView;
use helix_agents::terminal::{Screen, notice};
use tokio::time::timeout;

use crate::exit::Exit;
use crate::location::Location;
use crate::place::{Access, Place};
use crate::storage;
use crate::which::Which;

/// How long the stream may be silent before the session itself is checked.
const SILENCE: Duration = Duration::from_millis(500);

/// The options of `helix tail`.
#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    #[command(flatten)]
    which: Which,
    /// The sequence number of the first chunk to print.
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    from: u64,
}

/// Runs the command.
pub(crate) async fn run(args: TailArgs, db: &Location, screen: &Screen) -> Result<Exit> {
    let place = match Place::open(db, Access::Read).await? {
        Place::Store { store, telemetry } => {
            Place::Store { store: storage::with_retries(store), telemetry }
        }
        server => server,
    };
    let done = match &place {
        Place::Store { store, .. } => follow(&args, &place, store, screen).await,
        Place::Server(client) => follow_server(&args, &place, client, screen).await,
    };
    place.close().await;
    done.map(|()| Exit::Completed)
}

/// Follows a session of a server, whose stream ends by itself.
async fn follow_server(
    args: &TailArgs,
    place: &Place,
    client: &Client,
    screen: &Screen,
) -> Result<()> {
    let session = args.which.head(place).await?.session;
    let mut chunks = client.follow_with(&session, FollowOptions::default().from(args.from));
    let mut view = LiveView::new(screen).with_outcomes();
    while !screen.is_closed()
        && let Some(chunk) = view.waiting(chunks.next()).await
    {
        show(&chunk.map_err(Error::from)?, &mut view, screen)?;
    }
    view.finish()?;
    Ok(())
}

fn show(chunk: &StoredChunk, view: &mut LiveView<'_>, screen: &Screen) -> Result<()> {
    if screen.is_json() {
        screen.json(chunk)?;
    } else {
        view.show(chunk)?;
    }
    Ok(())
}

async fn follow(args: &TailArgs, place: &Place, store: &AnyStore, screen: &Screen) -> Result<()> {
    let session = args.which.head(place).await?.session;
    let mut chunks = StreamManager::read(store, &session, args.from).await?;
    let seen = args.from.saturating_sub(1);
    let mut watch = Watch { store, session: &session, seen, warned: screen.is_json() };
    let mut view = LiveView::new(screen).with_outcomes();
    while !screen.is_closed() {
        let next = timeout(SILENCE, chunks.next());
        // A run whose process has crashed has no activity to show.
        let next = if watch.warned { next.await } else { view.waiting(next).await };
        match next {
            Ok(Some(chunk)) => {
                let chunk = chunk?;
                show(&chunk, &mut view, screen)?;
                watch.seen = chunk.seq;
                if chunk.chunk.kind.ends_run() && watch.is_over().await? {
                    break;
                }
            }
            Ok(None) => break,
            Err(_) if watch.is_over().await? => break,
            Err(_) => {}
        }
    }
    view.finish()?;
    Ok(())
}

/// Checks the session in addition to its stream, because a process that crashes at the very end of a run
/// leaves a stream without an end.
struct Watch<'a> {
    store: &'a AnyStore,
    session: &'a SessionId,
    seen: u64,
    warned: bool,
}

impl Watch<'_> {
    /// Returns `true` if no run is active and all chunks were shown.
    async fn is_over(&mut self) -> Result<bool> {
        let Some(head) = self.store.head(self.session).await? else { return Ok(true) };
        if head.summary.run.is_some() {
            if !head.is_leased() && !self.warned {
                notice(
                    "The lease of the run has expired, so its process has probably crashed; waiting for \
                     another process to resume it.",
                );
                self.warned = true;
            }
            return Ok(false);
        }
        Ok(self.store.info(self.session).await?.last_seq <= self.seen)
    }
}
