//! A random walk of the state machine: moves that are legal where they are made.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::agent::AnyAgent;
use crate::budget::Budget;
use crate::error::{ErrorCode, ErrorRecord};
use crate::event::{
    Answer, Event, FinishOutput, MERGED_BY, ModelReply, PendingKind, RunOutcome, ToolFinish,
    ToolOutcome, Trigger,
};
use crate::id::{CallId, RunId};
use crate::llm::LlmResponse;
use crate::message::Arguments;
use crate::state::Patch;
use crate::step::pending_calls::wait_usage;
use crate::step::{Action, ParsedToolCall, StepResult, StopReason};
use crate::testing::{
    Hand, builder, built, echo, error_step, output, result_schema, stopped, text,
};
use crate::tool::{EffectClass, NoInput, Tool};
use crate::usage::Usage;

/// The kinds of agents in the random walk.
#[derive(Debug, Clone, Copy)]
pub(super) enum Agents {
    Text,
    Finish,
    FinishTools,
    Native,
    Limited,
}

impl Arbitrary for Agents {
    type Parameters = ();
    type Strategy = prop::sample::Select<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        prop::sample::select(vec![
            Self::Text,
            Self::Finish,
            Self::FinishTools,
            Self::Native,
            Self::Limited,
        ])
    }
}

pub(super) fn agent(kind: Agents) -> AnyAgent {
    let pay = echo("pay").effect(EffectClass::AtMostOnce);
    let ask = Tool::client::<NoInput>("ask", "Asks.").deadline(Duration::from_secs(60));
    let guarded = echo("guarded").requires_approval().editable();
    let people = builder().tool(ask).tool(guarded);
    let plain = people.max_steps(6).tool(echo("search")).tool(pay);
    match kind {
        Agents::Text => built(plain.stop_when(|step| matches!(step, StepResult::Text { .. }))),
        Agents::Finish => built(plain.output_schema(result_schema())),
        Agents::FinishTools => {
            let submit = echo("submit").finish_with();
            let close = echo("close").finish_with().effect(EffectClass::AtMostOnce);
            built(plain.tool(submit).tool(close).output_schema(json!({"type": "object"})))
        }
        Agents::Limited => {
            let time = Duration::from_secs(90);
            built(plain.budget(Budget::new().tokens(70).tool_calls(5).wall_time(time)))
        }
        Agents::Native => built(plain.output_schema(result_schema()).native_output()),
    }
}

/// A move of the random walk.
#[derive(Debug, Clone)]
pub(super) enum Move {
    /// Executes the next action: with this reply if it is a model call, otherwise controlled by the
    /// bits.
    Next(Box<StepResult>, u8),
    /// Another run takes over.
    TakeOver,
    /// An interrupt request.
    Interrupt,
    /// An abort request.
    Abort,
    /// A result of an earlier run arrives late.
    Late(u8),
    /// A hook changes the state.
    Hook(u8),
    /// A tool reports usage.
    Used(f64),
    /// A pending call is answered.
    Answer(u8),
    /// A message is queued.
    Queue,
    /// The session is rewound to a checkpoint.
    Rewind(u8),
    /// This many seconds pass.
    Time(u8),
}

impl Move {
    pub(super) fn text() -> Self {
        Self::Next(Box::new(text("That is all.")), 0)
    }
}

pub(super) fn moves() -> impl Strategy<Value = Vec<Move>> {
    let next =
        (answer(), any::<u8>()).prop_map(|(answer, bits)| Move::Next(Box::new(answer), bits));
    let one = prop_oneof![
        24 => next,
        2 => Just(Move::TakeOver),
        1 => Just(Move::Interrupt),
        1 => Just(Move::Abort),
        2 => any::<u8>().prop_map(Move::Late),
        1 => any::<u8>().prop_map(Move::Hook),
        1 => (-1e9..1e9).prop_map(Move::Used),
        2 => any::<u8>().prop_map(Move::Answer),
        1 => Just(Move::Queue),
        1 => any::<u8>().prop_map(Move::Rewind),
        1 => any::<u8>().prop_map(Move::Time),
    ];
    vec(one, 1..48)
}

fn answer() -> impl Strategy<Value = StepResult> {
    let reasons = prop::sample::select(vec![
        StopReason::MaxTokens,
        StopReason::MaxTokens,
        StopReason::ContentFilter,
        StopReason::Unknown,
        StopReason::StopSequence,
        StopReason::Pause,
    ]);
    let plain = prop_oneof![
        2 => any::<bool>().prop_map(|should_stop| StepResult::Text {
            content: "Hm.".to_owned(),
            thinking: None,
            should_stop,
            stop_reason: Some(StopReason::EndTurn),
        }),
        6 => vec(call(), 1..5).prop_map(|tool_calls| StepResult::ToolCalls {
            content: None,
            tool_calls,
            sub_agent_calls: Vec::new(),
            thinking: None,
            stop_reason: Some(StopReason::ToolUse),
        }),
        1 => any::<bool>().prop_map(|good| output(if good { json!({"result": "x"}) } else { json!(1) })),
        1 => any::<bool>().prop_map(|stop| error_step(ErrorCode::ProviderStreamCut, stop)),
    ];
    prop_oneof![
        5 => plain.clone(),
        1 => (plain, reasons).prop_map(|(answer, reason)| stopped(answer, reason)),
    ]
}

fn call() -> impl Strategy<Value = ParsedToolCall> {
    let names =
        ["search", "search", "pay", "submit", "close", "__finish__", "no_such", "ask", "guarded"];
    let arguments = prop_oneof![
        4 => Just(Arguments::from(json!({}))),
        2 => Just(Arguments::from(json!({"result": "done"}))),
        1 => Just(Arguments::Malformed("{".to_owned())),
    ];
    (prop::sample::select(names.to_vec()), arguments)
        .prop_map(|(name, arguments)| ParsedToolCall::new("p", name, arguments))
}

/// Plays the moves; `after` inspects every state on the way.
pub(super) fn play(agent: &AnyAgent, moves: &[Move], mut after: impl FnMut(&Hand)) -> Hand {
    let mut hand = Hand::new(agent);
    after(&hand);
    for one in moves {
        make_move(&mut hand, one);
        after(&hand);
    }
    hand
}

/// Makes one move, if it is legal here.
pub(super) fn make_move(hand: &mut Hand, one: &Move) {
    let current = hand.session().current_run().map(|run| run.id.clone());
    match (one, current) {
        (Move::Next(answer, bits), _) => next(hand, answer, *bits),
        (Move::Answer(bits), _) => answer_one(hand, *bits),
        (Move::Queue, _) => hand.queue("one more thing"),
        (Move::Rewind(bits), _) => {
            let all = hand.session().checkpoints();
            let Some(to) = all.get(usize::from(*bits) % all.len().max(1)) else { return };
            let to = to.version;
            hand.go_back(to).unwrap();
        }
        (Move::Time(seconds), _) => {
            let now = hand.session().clock();
            hand.clock(now.after(Duration::from_secs(u64::from(*seconds))).0);
        }
        (_, None) => {}
        (Move::TakeOver, Some(_)) => hand.start(Trigger::Recover).unwrap(),
        (Move::Interrupt, Some(_)) => hand.interrupt(),
        (Move::Abort, Some(_)) => hand.abort(),
        (Move::Late(bits), Some(current)) => late(hand, &current, *bits),
        (Move::Hook(bits), Some(_)) => {
            let before = hand.session().step_state();
            let patch = Patch::between(&before, &json!({"hook": bits, "notes": [bits]}));
            hand.put(Event::StateChanged { patch, by: "hook".to_owned() }).unwrap();
        }
        (Move::Used(amount), Some(_)) => {
            let (source_type, source_name) = ("tool".to_owned(), "web".to_owned());
            hand.put(Event::UsageRecorded {
                source_type,
                source_name,
                amount: *amount,
                call: None,
                success: true,
            })
            .unwrap();
        }
    }
}

fn next(hand: &mut Hand, answer: &StepResult, bits: u8) {
    let step = hand.session().open_step().map_or(0, |step| step.reply.step);
    match hand.next() {
        Action::Idle => start_run(hand, bits),
        Action::CallModel { step, .. } => {
            let response = LlmResponse::new(answer.clone(), Usage::new(1, 0));
            hand.put(Event::from(ModelReply::from_response(step, response, 0))).unwrap();
        }
        Action::RunTools { calls: tasks, .. } => {
            let task = &tasks[usize::from(bits) % tasks.len()];
            hand.start_tools(std::slice::from_ref(task));
            hand.put(Event::from(result(&task.call, bits, task.attempt, false))).unwrap();
        }
        Action::RunFinishTool(task) => {
            hand.start_tools(std::slice::from_ref(&task));
            hand.put(Event::from(result(&task.call, bits, task.attempt, true))).unwrap();
        }
        // Not all decisions are made at once, so that other events can come in between.
        Action::RecordResults(results) => {
            let first = results.into_iter().next().unwrap();
            hand.put(Event::from(first)).unwrap();
        }
        Action::Correct(message) => hand.put(Event::CorrectionSent { step, message }).unwrap(),
        Action::RepairState(patch) => {
            hand.put(Event::StateChanged { patch, by: MERGED_BY.to_owned() }).unwrap();
        }
        Action::CloseStep(step) => hand.put(Event::StepClosed { step }).unwrap(),
        Action::End(outcome) => {
            let interrupted = matches!(outcome, RunOutcome::Interrupted { .. });
            assert!(!interrupted || hand.session().interrupt_request().is_some());
            hand.put(Event::RunEnded { outcome }).unwrap();
        }
        Action::RecordWaits(calls) => {
            for event in wait_usage(hand.session(), &calls) {
                hand.put(event).unwrap();
            }
        }
        Action::TakeMessages(requests) => hand.put(Event::MessagesTaken { requests }).unwrap(),
        Action::StartChildren(_) | Action::RunCompanions(_) | Action::Heal(_) => {
            panic!(
                "no agent of this walk has children, and the framework's own logs need no healing"
            )
        }
    }
}

/// Answers the first pending call, if there is one.
fn answer_one(hand: &mut Hand, bits: u8) {
    let Some(pending) = hand.session().pending_calls().next().cloned() else { return };
    let answer = match pending.kind {
        PendingKind::Client if bits.is_multiple_of(4) => Answer::Error("no".to_owned()),
        PendingKind::Client => Answer::Returned(json!(bits).into()),
        PendingKind::Approval { .. } if bits.is_multiple_of(4) => Answer::Denied { reason: None },
        PendingKind::Approval { .. } => {
            let edited = bits.is_multiple_of(3).then(|| json!({"edited": bits}).into());
            Answer::Approved { edited }
        }
    };
    hand.answer(pending.call.as_str(), answer).unwrap();
}

fn start_run(hand: &mut Hand, bits: u8) {
    if hand.session().last_run().is_some_and(|run| run.status.is_suspended()) {
        if hand.session().can_continue_step() {
            hand.start(Trigger::Resume).unwrap();
        } else if bits.is_multiple_of(4) {
            hand.start(Trigger::Abort).unwrap();
            hand.abort();
        } else {
            hand.start(Trigger::Resume).unwrap_err();
            answer_one(hand, bits);
        }
        return;
    }
    if bits.is_multiple_of(2) && hand.start(Trigger::Resume).is_ok() {
        return;
    }
    if hand.session().open_step().is_some() {
        hand.start(Trigger::Continue).unwrap_err();
        hand.start(Trigger::Resume).unwrap();
        return;
    }
    hand.start(Trigger::Continue).unwrap();
    hand.say("and then?");
}

fn late(hand: &mut Hand, current: &RunId, bits: u8) {
    let open: Vec<CallId> = hand.session().open_step().map_or_else(Vec::new, |step| {
        let open = step.pairs().filter(|(_, state)| state.finish.is_none());
        open.map(|(call, _)| call.id.clone()).collect()
    });
    let older: Vec<RunId> =
        hand.session().runs().map(|run| run.id.clone()).filter(|run| run != current).collect();
    if let (Some(call), Some(run)) = (open.first(), older.last()) {
        let event = Event::from(result(call, bits, 1, false));
        hand.put_as(Some(run), event).unwrap();
    }
}

fn result(call: &CallId, bits: u8, attempts: u32, finish: bool) -> ToolFinish {
    let failed = ErrorRecord::new(ErrorCode::ToolFailed, "no");
    let outcome = match bits % 3 {
        0 => ToolOutcome::Error(failed.clone()),
        _ => ToolOutcome::Success(json!(bits).into()),
    };
    let output = match bits % 5 {
        0 => FinishOutput::Invalid(failed),
        _ => FinishOutput::Output(json!(bits).into()),
    };
    let before: Value = json!({"notes": []});
    ToolFinish {
        finish: (finish && !bits.is_multiple_of(3)).then_some(output),
        state_patch: Patch::between(&before, &json!({"notes": [bits], "last": bits})),
        attempts,
        ..ToolFinish::without_run(call.clone(), outcome)
    }
}
