//! Usage and budgets in the fold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::fold_state::FoldState;
use super::history::HistorySink;
use super::{Session, SessionOverview};
use crate::agent::AgentDefinition;
use crate::budget::{Budget, BudgetUsage};
use crate::clock::Timestamp;
use crate::error::ErrorCode;
use crate::event::{ChildStart, ModelReply, ToolFinish, ToolOutcome};
use crate::id::RunId;
use crate::mutant;
use crate::usage::{Usage, UsageEntry, UsageKind, UsageRollup};

impl Session {
    /// Returns all usage entries, oldest first: model calls, tools, sub-agents, and custom usage
    /// recorded by tools and hooks.
    #[must_use]
    pub fn usage_entries(&self) -> &[UsageEntry] {
        &self.history.usage_entries
    }

    /// Returns the token usage of the present turn: its model calls and the sub-agents that have ended. Companions are
    /// not included, because they work across turns.
    #[must_use]
    pub fn turn_usage(&self) -> Usage {
        let turn = self.turn();
        let of_turn = self.runs().rev().take_while(|run| run.turn == turn);
        let runs: BTreeSet<_> = of_turn.map(|run| &run.id).collect();
        let entries = self.usage_entries().iter().rev();
        let entries =
            entries.take_while(|entry| entry.run.as_ref().is_none_or(|run| runs.contains(run)));
        let mut usage = Usage::default();
        entries.for_each(|entry| usage += self.turn_tokens(entry));
        usage
    }

    /// Returns the token usage of each turn, as [`turn_usage`](Self::turn_usage) returned it at the end of the turn.
    #[must_use]
    pub fn usage_by_turn(&self) -> BTreeMap<u32, Usage> {
        let mut runs = BTreeMap::new();
        let mut usage = BTreeMap::new();
        let mut last = 0;
        let mut turn = (0, 0);
        for run in self.runs() {
            // After a rewind, a turn can have the number of a turn that was removed.
            turn = if run.turn == last { turn } else { (run.turn, turn.1 + 1) };
            last = run.turn;
            runs.insert(&run.id, turn);
        }
        for entry in self.usage_entries() {
            let Some((turn, part)) = entry.run.as_ref().and_then(|run| runs.get(run)) else {
                continue;
            };
            let (latest, tokens) = usage.entry(*turn).or_insert((*part, Usage::default()));
            if latest != part {
                (*latest, *tokens) = (*part, Usage::default());
            }
            *tokens += self.turn_tokens(entry);
        }
        usage.into_iter().map(|(turn, (_, tokens))| (turn, tokens)).collect()
    }

    /// Returns the tokens of an entry that count for its turn.
    fn turn_tokens(&self, entry: &UsageEntry) -> Usage {
        match &entry.kind {
            UsageKind::Tokens { tokens, .. } => *tokens,
            UsageKind::SubAgent { session, used, .. } => {
                let is_companion =
                    self.companions().any(|(_, record)| record.start.session == *session);
                if is_companion { Usage::default() } else { used.tokens }
            }
            _ => Usage::default(),
        }
    }
}

impl SessionOverview {
    /// Returns the session's own usage, without its children. The prefix that a fork shares with
    /// its original is not included.
    #[must_use]
    pub fn usage(&self) -> &UsageRollup {
        self.fold_state.totals.own()
    }

    /// Returns the session's own usage in the bounded form that stores keep.
    pub(crate) fn stored_usage(&self) -> Arc<UsageRollup> {
        Arc::new(self.usage().bounded())
    }

    /// Returns the usage of the session and its ended children, as far as its own log knows. A
    /// descendant that outlives its parent reports its further usage to the log of that parent, not
    /// to the logs above. [`usage_of_tree`](crate::session::usage_of_tree) reads the logs of all
    /// sessions.
    #[must_use]
    pub fn tree_usage(&self) -> UsageRollup {
        self.fold_state.totals.tree()
    }

    /// Returns the limits that were given to this session, at its start or when it was resumed.
    #[must_use]
    pub fn recorded_budget(&self) -> &Budget {
        const UNLIMITED: &Budget = &Budget::new();
        self.fold_state.rare.budget.as_deref().unwrap_or(UNLIMITED)
    }

    /// Returns the effective limits: the session's, and the agent's where the session has none.
    #[must_use]
    pub fn budget(&self, agent: &AgentDefinition) -> Budget {
        self.recorded_budget().or(*agent.budget())
    }

    /// Returns the budget usage, including ended children.
    #[must_use]
    pub fn spent(&self) -> BudgetUsage {
        let fold_state = &self.fold_state;
        let mut spent = fold_state.spent;
        let in_progress =
            fold_state.seen.map(|seen| millis(seen, fold_state.clock)).unwrap_or_default();
        spent.wall_time_ms = spent.wall_time_ms.saturating_add(in_progress);
        spent
    }

    /// Returns the budget that is reserved for children that have not ended.
    #[must_use]
    pub fn reserved(&self) -> BudgetUsage {
        let mut reserved = BudgetUsage::default();
        for allowance in self.open_children().filter_map(|child| child.allowance.as_ref()) {
            reserved += BudgetUsage::all_of(allowance);
        }
        reserved += self.companions_reserved();
        reserved
    }

    /// Returns `true` if the last reply requested more tool calls than the budget allowed.
    pub(crate) fn is_short_of_tool_calls(&self) -> bool {
        self.fold_state.short_of_tool_calls
    }

    pub(super) fn spend_reply(
        &mut self,
        reply: &ModelReply,
        run: Option<&RunId>,
        sink: &mut HistorySink<'_>,
    ) {
        let fold_state = &mut self.fold_state;
        fold_state.short_of_tool_calls = false;
        fold_state.spent += BudgetUsage {
            steps: u64::from(!mutant!("budget-not-counted")),
            tokens: reply.total_usage().total(),
            cost: reply.cost.unwrap_or_default(),
            ..BudgetUsage::default()
        };
        let kind = UsageKind::Tokens {
            model: reply.model.clone(),
            tokens: reply.total_usage(),
            cost: reply.cost,
            success: reply.error.is_none(),
            took_ms: reply.took_ms,
        };
        self.use_up(kind, false, run, sink);
    }

    /// Records a call's usage, before its result enters the step.
    pub(super) fn spend_call(
        &mut self,
        finish: &ToolFinish,
        run: Option<&RunId>,
        sink: &mut HistorySink<'_>,
    ) {
        if finish.attempts > 0 {
            self.fold_state.spent.tool_calls += 1;
        }
        let Some(step) = &self.fold_state.step else { return };
        let found = step.pairs().find(|(call, _)| call.id == finish.call);
        let Some((call, state)) = found else { return };
        let success = !matches!(finish.outcome, ToolOutcome::Error(_));
        if let (Some(used), Some(child)) = (&finish.child, &state.child) {
            let start = Arc::clone(&child.start);
            return self.spend_child(&start, used, success, run, sink);
        }
        if finish.attempts > 0 || state.waiting.is_some() {
            let kind = UsageKind::Tool {
                call: call.id.clone(),
                tool: Arc::clone(&call.name),
                success,
                took_ms: finish.took_ms,
                attempts: finish.attempts,
            };
            return self.use_up(kind, false, run, sink);
        }
        if let ToolOutcome::Error(error) = &finish.outcome {
            self.fold_state.short_of_tool_calls |= error.is(ErrorCode::BudgetExceeded);
        }
    }

    pub(super) fn spend_child(
        &mut self,
        start: &ChildStart,
        used: &Arc<UsageRollup>,
        success: bool,
        run: Option<&RunId>,
        sink: &mut HistorySink<'_>,
    ) {
        let spent = BudgetUsage::of_child(used);
        let mut before = BudgetUsage::default();
        if let Some(companion) = &start.companion
            && let Some(record) =
                Arc::make_mut(&mut self.fold_state.rare_mut().companions).get_mut(&companion.name)
        {
            // A companion reports its total usage each time, and an earlier report may arrive late.
            before = record.spent;
            record.spent = before.max(spent);
        }
        self.fold_state.spent += spent.since(&before);
        let kind = UsageKind::SubAgent {
            call: start.call.clone(),
            agent: Arc::clone(&start.agent),
            session: start.session.clone(),
            success,
            used: Arc::clone(used),
        };
        self.use_up(kind, start.companion.is_some(), run, sink);
    }

    /// Records usage. `stays` tells whether the child that caused it is a companion and may be
    /// called again.
    pub(super) fn use_up(
        &mut self,
        kind: UsageKind,
        stays: bool,
        run: Option<&RunId>,
        sink: &mut HistorySink<'_>,
    ) {
        self.fold_state.totals.add(&kind, stays);
        let step = self.fold_state.last_step;
        sink.add(|history| {
            history.usage_entries.push(UsageEntry { run: run.cloned(), step, at: None, kind });
        });
    }
}

impl FoldState {
    /// Adds the time since the last append to the wall time, if a run was in progress.
    pub(super) fn count_time(&mut self, at: Timestamp, running: bool) {
        if let Some(seen) = self.seen {
            let passed = millis(seen, at);
            self.spent.wall_time_ms = self.spent.wall_time_ms.saturating_add(passed);
        }
        self.seen = running.then(|| self.seen.map_or(at, |seen| seen.max(at)));
    }
}

fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.since(from).as_millis()).unwrap_or(u64::MAX)
}
