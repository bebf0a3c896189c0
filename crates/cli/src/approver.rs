//! Interactive approvals: asks the user at the terminal about the pending calls of a suspended run.

mod keyboard;

use std::collections::HashSet;
use std::io::{self, IsTerminal as _};

use anyhow::Result;
use futures_util::FutureExt as _;
use helix_agents::error::ErrorCode;
use helix_agents::event::PendingKind;
use helix_agents::session::{PendingCallView, Submission};
use helix_agents::terminal::output::{self, Output};
use helix_agents::terminal::{Screen, notice};

use self::keyboard::{Reply, read_line};
use crate::edit::{self, Edited};
use crate::env;
use crate::follow_up;
use crate::location::Location;
use crate::pending_call::arguments;
use crate::place::Place;
use crate::signals::{Signal, Signals};
use crate::text::{one_line, shortened};

/// The maximum length of the arguments shown. A question says if they are cut off.
const MAX_CHARS: usize = 4000;

/// Returns `true` if there is an interactive user to ask.
pub(crate) fn is_possible(screen: &Screen, no_input: bool) -> bool {
    let is_there = io::stdin().is_terminal() && output::is_terminal(Output::Err);
    is_there && !no_input && !screen.is_json()
}

/// The user at the terminal.
#[derive(Debug, Default)]
pub(crate) struct Approver {
    /// The references of calls that the user postponed.
    postponed: HashSet<String>,
}

/// A parsed reply of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Choice {
    Yes,
    /// A denial, with the reason that follows it.
    No(Option<String>),
    Edit,
    Later,
}

/// The outcome of a question.
enum Outcome {
    /// The call is no longer pending.
    Settled,
    Later,
    /// No more questions are to be asked now.
    Stop,
}

impl Approver {
    /// Asks about the calls. Returns `true` if at least one of them is no longer pending, so that the
    /// run can continue.
    pub(crate) async fn ask_all(
        &mut self,
        place: &Place,
        waiting: &[PendingCallView],
        db: &Location,
        signals: &mut Signals,
    ) -> Result<bool> {
        let mut settled = false;
        for call in waiting {
            if !matches!(call.pending.kind, PendingKind::Approval { .. }) || call.expired {
                continue;
            }
            if self.postponed.contains(&call.reference().to_string()) {
                continue;
            }
            match ask(place, call, db, signals).await? {
                Outcome::Settled => settled = true,
                Outcome::Later => {
                    self.postponed.insert(call.reference().to_string());
                }
                Outcome::Stop => {
                    self.postponed.extend(waiting.iter().map(|call| call.reference().to_string()));
                    return Ok(settled);
                }
            }
        }
        Ok(settled)
    }
}

async fn ask(
    place: &Place,
    waiting: &PendingCallView,
    db: &Location,
    signals: &mut Signals,
) -> Result<Outcome> {
    let pending = &waiting.pending;
    let editable = pending.kind == PendingKind::Approval { editable: true };
    let question = question(waiting, editable, db);
    loop {
        let word = match read_line(&question, signals).await? {
            Reply::Line(line) => Choice::of(&line, editable),
            Reply::Nothing => return Ok(Outcome::Stop),
        };
        let call = waiting.reference();
        let answer = match word {
            None => {
                let edit = if editable { ", e (edit)" } else { "" };
                notice(&format!("answer y (approve), n [REASON] (deny){edit} or l (later)"));
                continue;
            }
            Some(Choice::Later) => return Ok(Outcome::Later),
            Some(Choice::Yes) => (Submission::approve(call), None),
            Some(Choice::No(reason)) => (Submission::deny(call, reason), None),
            Some(Choice::Edit) => {
                let edited = edit::json(&waiting.arguments.to_value()).await;
                // A Ctrl-C was meant for the editor.
                while let Some(Signal::Interrupt) = signals.next().now_or_never() {}
                match edited {
                    Ok(Edited::Changed(edited)) => {
                        (Submission::approve_edited(call, &edited.value)?, Some(edited))
                    }
                    Ok(Edited::Unchanged) => {
                        notice("the arguments are unchanged");
                        continue;
                    }
                    Err(error) => {
                        notice(&format!("{error:#}"));
                        continue;
                    }
                }
            }
        };
        let (answer, edited) = answer;
        // The digest ensures that the answered arguments are the ones shown.
        let mut answer = answer.digest(pending.digest.clone());
        if let Some(user) = env::USER.text() {
            answer = answer.by(user);
        }
        let Err(error) = place.submit(&waiting.root, answer).await else {
            return Ok(Outcome::Settled);
        };
        match error.code() {
            ErrorCode::AnswerInvalid => {
                notice(error.message());
                if let Some(edited) = edited {
                    notice(&format!("your edit was saved to {}", edited.keep()?.display()));
                }
            }
            // Another answer came first, or the deadline passed: the run can continue with that.
            ErrorCode::AlreadyAnswered
            | ErrorCode::AnswerExpired
            | ErrorCode::AnswerToAborted
            | ErrorCode::CallNotFound => {
                notice(error.message());
                return Ok(Outcome::Settled);
            }
            _ => return Err(error.into()),
        }
    }
}

fn question(waiting: &PendingCallView, editable: bool, db: &Location) -> String {
    let (pending, arguments) = (&waiting.pending, arguments(waiting));
    let (tool, seen) = (shortened(&pending.tool, 100), one_line(&arguments));
    let length = seen.chars().count();
    let seen = if length > MAX_CHARS {
        let show = follow_up::answer("show", &waiting.reference(), db);
        format!("{} ({length} characters; in full: {show})", shortened(&seen, MAX_CHARS))
    } else {
        seen.into_owned()
    };
    let until = pending.deadline.map_or_else(String::new, |at| format!(" (until {at})"));
    let edit = if editable { "[e]dit, " } else { "" };
    format!("approve {tool} {seen}{until}? [y]es, [n]o, {edit}[l]ater: ")
}

impl Choice {
    /// Parses a reply. Only `y` and `yes` approve.
    fn of(typed: &str, editable: bool) -> Option<Self> {
        let typed = typed.trim();
        let (word, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        let rest = rest.trim();
        match (&*word.to_lowercase(), rest) {
            ("y" | "yes", "") => Some(Self::Yes),
            ("n" | "no", rest) => Some(Self::No((!rest.is_empty()).then(|| rest.to_owned()))),
            ("e" | "edit", "") if editable => Some(Self::Edit),
            ("l" | "later", "") => Some(Self::Later),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
