//! Brings a tree to its end: answers and continues everything until nothing is left to do.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use helix_agents_conformance::normalise;
use helix_agents_conformance::rng::Rng;
use helix_agents_core::error::Error;
use helix_agents_core::executor::{ExecuteOptions, Resumable, ResumeOptions};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::session::load_events;
use helix_agents_core::store::{Head, Page, SessionFilter, SessionStatus, StateStore};
use tokio::time::Instant;

use super::plan::Family;
use super::users::{Answers, is_expected};
use super::{Booted, ROOT};

/// The maximum number of rounds.
const ROUNDS: usize = 120;

/// The wait between rounds without progress, where an engine notices a crashed process late.
const PAUSE: Duration = Duration::from_secs(1);

/// The time limit for active runs, by the clock of the program.
const RUN_TIMEOUT: Duration = Duration::from_secs(120);

/// The actions that bring a tree to its end.
pub(super) struct Settling<'a> {
    pub(super) booted: &'a Booted,
    pub(super) store: &'a dyn StateStore,
    pub(super) family: &'a Family,
    pub(super) answers: &'a Answers,
}

/// Returns the heads of a tree's sessions, newest first.
///
/// # Errors
/// Returns the store's error as text.
pub async fn heads(store: &dyn StateStore, root: &SessionId) -> Result<Vec<Head>, String> {
    let filter = SessionFilter::new().root(root.clone());
    let page = Page { after: None, limit: 1000 };
    store.list(&filter, &page).await.map_err(|error| error.to_string())
}

/// Frees the leases of crashed processes at once, as if they had expired.
///
/// # Errors
/// Returns the store's error as text.
pub async fn free_leases(store: &dyn StateStore) -> Result<(), String> {
    free_leases_of(store, |_| true).await
}

/// Frees the leases of the runs of some processes, while others live.
pub(super) async fn free_leases_of(
    store: &dyn StateStore,
    is_dead: impl Fn(&RunId) -> bool,
) -> Result<(), String> {
    for head in heads(store, &ROOT.into()).await? {
        let run = head.summary.run.filter(|run| head.lease_until.is_some() && is_dead(run));
        if let Some(run) = run {
            let freed = store.renew(&head.session, &run, Duration::ZERO).await;
            freed.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn expected(what: &str, error: &Error) -> Result<(), String> {
    if is_expected(error.code()) { Ok(()) } else { Err(format!("{what}: {error:?}")) }
}

impl Settling<'_> {
    /// Continues until every session has ended. Sessions are only resumed individually if nothing else makes
    /// progress.
    pub(super) async fn settle(&self, rng: &mut Rng) -> Result<(), String> {
        let root = SessionId::from(ROOT);
        let mut stood = 0;
        let mut failures = 0;
        let mut before = Vec::new();
        let mut moved = Instant::now();
        for _ in 0..ROUNDS {
            let heads = heads(self.store, &ROOT.into()).await?;
            if heads.is_empty() {
                self.execute("Begin.").await?;
            } else if heads.iter().all(|head| has_ended(head, failures)) {
                return Ok(());
            }
            let now: Vec<_> = heads.iter().map(|head| head.position.version).collect();
            if now == before {
                stood += 1;
                tokio::time::sleep(PAUSE.min(self.booted.misses)).await;
            } else {
                (stood, moved) = (0, Instant::now());
            }
            before = now;
            if stood > 3 && moved.elapsed() >= self.booted.misses {
                return Err(format!(
                    "no session makes progress, and nothing wakes one\n{}",
                    self.logs().await?
                ));
            }
            self.answer_all(&root, rng).await?;
            (self.booted.sweep)().await.map_err(|error| format!("sweep: {error:?}"))?;
            self.wait_for_runs().await?;
            if self.resume(&root, self.family.root.name.as_str()).await? {
                failures += usize::from(self.status(&root).await? == SessionStatus::Failed);
                self.wait_for_runs().await?;
            }
            if stood > 1 {
                self.resume_below().await?;
            }
        }
        Err(format!("the tree did not end in {ROUNDS} rounds"))
    }

    pub(super) async fn execute(&self, text: &str) -> Result<(), String> {
        let options = ExecuteOptions::default().session(ROOT);
        let agent = self.family.agent(&self.family.root.name);
        match self.booted.executor.execute(agent, text.into(), options).await {
            Ok(_) => Ok(()),
            Err(error) => expected("execute", &error),
        }
    }

    async fn status(&self, session: &SessionId) -> Result<SessionStatus, String> {
        let head = self.store.head(session).await.map_err(|error| error.to_string())?;
        head.map(|head| head.summary.status).ok_or_else(|| "a session is missing".to_owned())
    }

    async fn answer_all(&self, root: &SessionId, rng: &mut Rng) -> Result<(), String> {
        let executor = &*self.booted.executor;
        let Ok(pending) = executor.pending_calls(root).await else { return Ok(()) };
        for view in pending {
            if let Err(error) = self.answers.give(executor, root, &view, rng, true).await {
                expected("submit", &error)?;
            }
        }
        Ok(())
    }

    /// Resumes a session. Returns `true` if a run started.
    async fn resume(&self, session: &SessionId, agent: &str) -> Result<bool, String> {
        let executor = &*self.booted.executor;
        match executor.can_resume(session).await {
            Ok(Resumable::Yes) => {}
            Ok(_) => return Ok(false),
            Err(error) => return expected("can_resume", &error).map(|()| false),
        }
        let agent = self.family.agent(agent);
        match executor.resume(agent, session, ResumeOptions::default()).await {
            Ok(_) => Ok(true),
            Err(error) => expected("resume", &error).map(|()| false),
        }
    }

    /// Resumes interrupted companions individually, one after another: each may resume others.
    async fn resume_below(&self) -> Result<(), String> {
        let mut resumed = BTreeSet::new();
        loop {
            let heads = heads(self.store, &ROOT.into()).await?;
            let interrupted = |head: &&Head| {
                let is_child = head.created.parent.is_some();
                is_child && head.summary.status == SessionStatus::Interrupted
            };
            let mut children = heads.iter().filter(interrupted);
            let Some(head) = children.find(|head| resumed.insert(head.session.clone())) else {
                return Ok(());
            };
            self.resume(&head.session, &head.created.agent).await?;
            self.wait_for_runs().await?;
        }
    }

    async fn wait_for_runs(&self) -> Result<(), String> {
        let over = async {
            while heads(self.store, &ROOT.into()).await?.iter().any(Head::is_leased) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        };
        match tokio::time::timeout(RUN_TIMEOUT, over).await {
            Ok(over) => over,
            Err(_) => Err(format!("a run does not end\n{}", self.logs().await?)),
        }
    }

    /// Returns the logs of the sessions that have not ended.
    async fn logs(&self) -> Result<String, String> {
        let mut text = String::new();
        for head in heads(self.store, &ROOT.into()).await?.iter().filter(|head| !has_ended(head, 0))
        {
            let log = load_events(self.store, &head.session, 0).await;
            let log = normalise::log(&log.map_err(|error| error.to_string())?);
            _ = writeln!(text, "{} {:?}:\n{log}", head.session, head.summary);
        }
        Ok(text)
    }
}

/// Returns `true` if nothing is left to do. The root continues a few times after a failure. A failed child
/// has reported to its parent.
fn has_ended(head: &Head, failures: usize) -> bool {
    match head.summary.status {
        SessionStatus::Completed | SessionStatus::Aborted => true,
        SessionStatus::Failed => head.created.parent.is_some() || failures > 5,
        SessionStatus::Active | SessionStatus::Interrupted => false,
    }
}
