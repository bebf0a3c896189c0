//! Forking: creating a session that starts with the log of another one up to a checkpoint.

use std::sync::Arc;

use super::load::not_found;
use super::request::head;
use super::{RequestContext, load};
use crate::clock::IdSourceExt as _;
use crate::error::{Error, ErrorCode, Result};
use crate::event::{Event, RecordedEvent, SCHEMA, decode, encode};
use crate::fault;
use crate::id::{RunId, SessionId};
use crate::machine::session::Session;
use crate::machine::start_events::heal_event;
use crate::run_options::ForkOptions;
use crate::store::{
    Append, CreateOutcome, ForkOutcome, Guard, LeaseChange, NewSession, Position, StateStore,
};

/// The number of appends that are read at once.
const PAGE: u32 = 256;

/// Creates a session from another session's log up to a checkpoint. The original may have an owner
/// and may continue meanwhile.
///
/// # Errors
/// Returns [`ErrorCode::SessionNotFound`], also without the
/// [required tags](ForkOptions::required_tags), [`ErrorCode::CheckpointNotFound`] if no step was closed
/// there, [`ErrorCode::SessionExists`] if a session with the new id exists,
/// [`ErrorCode::IdInvalid`], [`ErrorCode::HistoryLost`] if the original was deleted and created
/// again meanwhile, and the errors of the store.
///
/// # Durability
/// When the function returns, the new session is in the store. It is created by a single append, so
/// it exists completely or not at all.
pub async fn fork(
    request_context: RequestContext<'_>,
    from: &SessionId,
    options: &ForkOptions,
) -> Result<SessionId> {
    let request_context = request_context.requiring(&options.required_tags);
    let session = match &options.session {
        Some(chosen) => SessionId::validated(chosen.as_str())?,
        None => request_context.ids.session(),
    };
    if session == *from {
        return Err(exists(&session));
    }
    let at = match options.checkpoint {
        Some(version) => version,
        None => {
            let whole = request_context.logs().load(from).await?;
            let last = whole.checkpoints().last().map_or(0, |last| last.version);
            whole.checkpoint(last)?.version
        }
    };
    let store = request_context.store;
    let mut found = shared(store, from, &session, at).await?;
    if found.is_none() {
        // The error lists the checkpoints of the session as it is now.
        load(store, from).await?.checkpoint(at)?;
        // The checkpoint was recorded after the log was read.
        found = shared(store, from, &session, at).await?;
    }
    let Some(Shared { mut fold, base, partial }) = found else { return Err(replaced(from)) };
    // The log was read before, and the store forks only that log.
    let head = head(store, from).await?;
    if !request_context.permits(&head).await? {
        return Err(not_found(from));
    }
    let mut tags = fold.tags().clone();
    tags.extend(options.tags.iter().map(|(key, value)| (key.clone(), value.clone())));
    let new = NewSession {
        agent: Arc::clone(fold.agent()),
        root: session.clone(),
        parent: None,
        tags: tags.clone(),
    };
    // Schema 0 marks an imported log. An append that starts with events of an imported append keeps
    // schema 0. Any other append uses the current schema.
    let schema = if partial.schema == 0 { 0 } else { SCHEMA };
    let mut events = partial.events;
    let own = heal_event(&fold).into_iter().chain([Event::Forked { from: from.clone(), at, tags }]);
    for event in own {
        fold.apply(&event, partial.run.as_ref())?;
        events.push(event);
    }
    let append = Append {
        session: session.clone(),
        expected: base,
        id: request_context.ids.append(),
        run: partial.run,
        schema,
        count: u32::try_from(events.len()).unwrap_or(u32::MAX),
        body: encode(&events)?,
        summary: Some(fold.summary()),
        // Usage of the shared prefix counts in the original session.
        usage: Some(fold.stored_usage()),
        lease: LeaseChange::Clear,
        guard: Guard::None,
    };
    fault::point("fork.before_append");
    let outcome = send(request_context, from, new, append).await?;
    fault::point("fork.after_append");
    match outcome {
        ForkOutcome::Created { .. } => Ok(session),
        ForkOutcome::Exists => Err(exists(&session)),
        // The original's id may belong to another session now.
        ForkOutcome::HistoryLost => match store.head(from).await? {
            Some(head) if request_context.permits(&head).await? => Err(replaced(from)),
            _ => Err(not_found(from)),
        },
    }
}

async fn send(
    request_context: RequestContext<'_>,
    from: &SessionId,
    new: NewSession,
    append: Append,
) -> Result<ForkOutcome> {
    let store = request_context.store;
    if append.expected == Position::start() {
        // The checkpoint is within the first append, as in a log that was imported in one append.
        return Ok(match store.create_session(new, append).await? {
            CreateOutcome::Created { at } => ForkOutcome::Created { at },
            // A fork has no parent, so `ParentMissing` cannot occur.
            CreateOutcome::Exists | CreateOutcome::ParentMissing => ForkOutcome::Exists,
        });
    }
    store.fork(from, new, append).await
}

/// The part of the log that a fork shares with its original.
struct Shared {
    /// The fold of the shared events, under the new session's id.
    fold: Session,
    /// The end of the last append that is shared completely.
    base: Position,
    /// The shared events of the next append.
    partial: PartialAppend,
}

/// The first events of an append, up to the checkpoint in the middle of it.
struct PartialAppend {
    events: Vec<Event>,
    run: Option<RunId>,
    schema: u16,
}

/// Returns `None` if the log has no checkpoint at that version.
async fn shared(
    store: &dyn StateStore,
    from: &SessionId,
    session: &SessionId,
    at: u64,
) -> Result<Option<Shared>> {
    let mut fold = Session::new(session.clone());
    let mut base = Position::start();
    let mut partial = PartialAppend { events: Vec::new(), run: None, schema: SCHEMA };
    'log: loop {
        let page = store.read_log(from, fold.position().version, PAGE).await?;
        if page.is_empty() {
            break;
        }
        for append in &page {
            if append.version() <= at {
                fold.apply_append(append)?;
                base = append.position();
                continue;
            }
            let events = decode(from, append)?.into_iter().filter(|event| event.seq <= at);
            let events: Vec<RecordedEvent> = events.collect();
            for recorded in &events {
                fold.apply_recorded(recorded)?;
            }
            if !events.is_empty() {
                let (run, schema) = (append.run.clone(), append.schema);
                let events = events.into_iter().map(|recorded| recorded.event).collect();
                partial = PartialAppend { events, run, schema };
            }
            break 'log;
        }
    }
    let is_checkpoint = fold.checkpoints().last().is_some_and(|last| last.version == at);
    Ok(is_checkpoint.then_some(Shared { fold, base, partial }))
}

fn replaced(from: &SessionId) -> Error {
    let message = "the original's log was replaced while it was forked";
    Error::new(ErrorCode::HistoryLost, message).with_context("session", from)
}

fn exists(session: &SessionId) -> Error {
    Error::new(ErrorCode::SessionExists, "a session with this id already exists")
        .with_context("session", session)
}
