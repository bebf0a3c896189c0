//! Invariants of all possible sequences: random agents, answers, results, requests and takeovers,
//! run through the state machine.

mod game;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::clock::Timestamp;
use crate::event::{Event, RecordedEvent, SCHEMA, decode, encode};
use crate::id::{AppendId, SessionId};
use crate::message::Message;
use crate::session::{FoldOutcome, Session, SessionOverview, StepRecord};
use crate::state::Patch;
use crate::step::{Action, StepIterator, heal};
use crate::store::StoredAppend;
use crate::testing::{Entry, Hand};
use crate::usage::Usage;
use game::{Agents, Move, agent, moves, play};

fn config() -> ProptestConfig {
    ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() }
}

/// Everything of a session except its time.
fn view(session: &Session) -> String {
    let mut session = session.clone();
    session.observe(Timestamp(i64::MAX));
    format!("{session:?}")
}

/// Checks that every call of a closed step has exactly one result, in call order, right after its
/// message.
fn unpaired(session: &Session) -> Option<String> {
    let mut messages = session.transcript().iter().peekable();
    let open: Vec<_> = session.open_step().map_or(&[][..], |step| step.tool_calls()).to_vec();
    while let Some(message) = messages.next() {
        match &**message {
            Message::Tool(tool) => return Some(format!("a result without a call: {tool:?}")),
            Message::Assistant(assistant) if assistant.tool_calls != open || open.is_empty() => {
                for call in &assistant.tool_calls {
                    let answer = messages.next().map(|message| (**message).clone());
                    match answer {
                        Some(Message::Tool(tool)) if tool.tool_call_id == call.id => {}
                        other => return Some(format!("{call:?} is answered by {other:?}")),
                    }
                }
            }
            _ => {}
        }
    }
    None
}

/// Splits the log into appends of these sizes, repeated.
fn appends(hand: &Hand, sizes: &[usize]) -> Vec<StoredAppend> {
    let mut appends = Vec::new();
    let (mut rest, mut first, mut sizes) = (&*hand.log, 1, sizes.iter().cycle());
    while !rest.is_empty() {
        // An append belongs to one run and has one time.
        let run = &rest[0].0;
        let times = &hand.times[hand.log.len() - rest.len()..];
        let same =
            rest.iter().zip(times).take_while(|((other, _), at)| other == run && **at == times[0]);
        // The start of a call is recorded before the call runs, so an append ends with it.
        let started = |(_, event): &Entry| matches!(event, Event::ToolStarted { .. });
        let to_start = rest.iter().position(started).map_or(rest.len(), |index| index + 1);
        let same = same.count().min(to_start);
        let (now, later) = rest.split_at(same.min(*sizes.next().unwrap()));
        let events: Vec<_> = now.iter().map(|(_, event)| event.clone()).collect();
        appends.push(StoredAppend {
            first,
            count: u32::try_from(now.len()).unwrap(),
            id: AppendId::from(format!("up to {}", first + now.len() as u64 - 1)),
            run: run.clone(),
            schema: SCHEMA,
            at: times[0],
            body: encode(&events).unwrap(),
        });
        first += now.len() as u64;
        rest = later;
    }
    appends
}

fn folded(appends: &[StoredAppend]) -> Session {
    let mut session = Session::new(SessionId::from("s"));
    for append in appends {
        session.apply_append(append).unwrap();
    }
    session
}

fn imported(log: &[(Entry, Timestamp)]) -> Session {
    let mut session = Session::new(SessionId::from("s"));
    for (((run, event), at), seq) in log.iter().zip(1..) {
        let (at, run, event) = (*at, run.clone(), event.clone());
        session.apply_recorded(&RecordedEvent { seq, at, run, schema: 0, event }).unwrap();
    }
    session
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn calls_of_closed_steps_are_paired_at_all_times(kind: Agents, moves in moves()) {
        let mut seen = 0;
        play(&agent(kind), &moves, |hand| {
            seen += 1;
            assert_eq!(unpaired(hand.session()), None, "{}", hand.story());
            assert_eq!(hand.session().position().version, hand.log.len() as u64);
        });
        prop_assert!(seen > 0);
    }

    #[test]
    fn the_next_action_is_a_function_of_the_events(kind: Agents, moves in moves()) {
        let agent = agent(kind);
        play(&agent, &moves, |hand| {
            let mut again = Hand::refolded_at(&agent, &hand.log, &hand.times);
            again.clock(hand.session().clock().0);
            assert_eq!(again.next(), hand.next(), "{}", hand.story());
            assert_eq!(view(again.session()), view(hand.session()));
        });
    }

    #[test]
    fn folds_do_not_depend_on_append_boundaries(
        kind: Agents,
        moves in moves(),
        sizes in vec(1..9_usize, 1..5),
    ) {
        let mut hand = play(&agent(kind), &moves, |_| {});
        // A session knows where its last append started, so that append is the same.
        hand.clock(hand.session().clock().0 + 1);
        hand.queue("more");
        let one_by_one = appends(&hand, &[1]);
        let session = folded(&appends(&hand, &sizes));
        prop_assert_eq!(view(&session), view(&folded(&one_by_one)));
        prop_assert_eq!(session.position(), &one_by_one.last().unwrap().position());
    }

    #[test]
    fn a_writer_and_a_reader_fold_a_log_to_the_same(
        kind: Agents,
        moves in moves(),
        sizes in vec(1..9_usize, 1..5),
    ) {
        let hand = play(&agent(kind), &moves, |_| {});
        let (mut writer, mut reader) = (folded(&[]), folded(&[]));
        for append in appends(&hand, &sizes) {
            for recorded in decode(&"s".into(), &append).unwrap() {
                // Deadlines that passed are not in the log, but its writer saw them.
                writer.observe(append.at);
                writer.apply(&recorded.event, append.run.as_ref()).unwrap();
            }
            writer.acknowledge(append.id.clone(), append.at);
            reader.apply_append(&append).unwrap();
            prop_assert_eq!(view(&writer), view(&reader));
        }
    }

    #[test]
    fn a_snapshot_and_the_events_after_it_equal_the_whole_log(
        kind: Agents,
        moves in moves(),
        sizes in vec(1..9_usize, 1..5),
    ) {
        let hand = play(&agent(kind), &moves, |_| {});
        let (mut whole, mut overview) = (folded(&[]), folded(&[]).into_overview());
        for append in appends(&hand, &sizes) {
            // Each overview comes from a snapshot, so there is one for each version and any number
            // of appends.
            let id = whole.id().clone();
            let snapshot = overview.to_snapshot().unwrap();
            let back = SessionOverview::from_snapshot(&id, &snapshot).unwrap();
            prop_assert_eq!(&back, &overview);
            overview = back;
            whole.apply_append(&append).unwrap();
            let mut events = decode(&id, &append).unwrap().into_iter();
            let goes_back = events.any(|entry| matches!(entry.event, Event::Rewound { .. }));
            match overview.apply_append(&append).unwrap() {
                FoldOutcome::Done => prop_assert!(!goes_back),
                FoldOutcome::NeedsHistory => {
                    prop_assert!(goes_back);
                    overview = whole.overview().clone();
                }
            }
            prop_assert_eq!(&overview, whole.overview());
        }
    }

    #[test]
    fn budget_usage_never_decreases(kind: Agents, moves in moves()) {
        let hand = play(&agent(kind), &moves, |_| {});
        let mut session = Session::new(SessionId::from("s"));
        let mut before = session.spent();
        for append in appends(&hand, &[1]) {
            session.apply_append(&append).unwrap();
            let now = session.spent();
            prop_assert!(
                now.steps >= before.steps
                    && now.tokens >= before.tokens
                    && now.tool_calls >= before.tool_calls
                    && now.wall_time_ms >= before.wall_time_ms,
                "{before:?} became {now:?}"
            );
            before = now;
        }
        let used = session.tree_usage();
        prop_assert_eq!(
            (used.steps, used.tokens.total(), used.tool_calls),
            (before.steps, before.tokens, before.tool_calls)
        );
        let own = session.usage();
        prop_assert_eq!((own.tokens, own.tool_calls), (used.tokens, used.tool_calls));
    }

    #[test]
    fn a_limit_of_tool_calls_is_enforced(moves in moves()) {
        let taken_over = moves.iter().any(|made| matches!(made, Move::TakeOver | Move::Rewind(_)));
        let hand = play(&agent(Agents::Limited), &moves, |_| {});
        prop_assert!(taken_over || hand.session().usage().tool_calls <= 5, "{}", hand.story());
    }

    #[test]
    fn a_rewind_restores_the_earlier_state(kind: Agents, moves in moves(), at: prop::sample::Index) {
        let agent = agent(kind);
        let Hand { log, times, .. } = play(&agent, &moves, |_| {});
        let at = at.index(log.len() + 1);
        let (before, after) = log.split_at(at);
        let (past, future) = times.split_at(at);
        let mut session = Hand::refolded_at(&agent, before, past).session().clone();
        let earlier = view(&session);
        let savepoint = session.savepoint();
        for ((run, event), at) in after.iter().zip(future) {
            session.observe(*at);
            session.apply(event, run.as_ref()).unwrap();
        }
        session.rollback(savepoint);
        prop_assert_eq!(view(&session), earlier);
    }

    #[test]
    fn a_log_with_gaps_heals_once_and_for_good(
        kind: Agents,
        moves in moves(),
        lost in vec(any::<bool>(), 16),
    ) {
        let agent = agent(kind);
        let mut losing = lost.iter().cycle();
        let Hand { log, times, .. } = play(&agent, &moves, |_| {});
        let mut log: Vec<_> = log.into_iter().zip(times).collect();
        // Logs of other origin are not rewound.
        let back = log.iter().position(|((_, it), _)| matches!(it, Event::Rewound { .. }));
        log.truncate(back.unwrap_or(log.len()));
        log.retain(|((_, event), _)| {
            !matches!(event, Event::ToolFinished(_)) || !losing.next().unwrap()
        });
        let mut session = imported(&log);
        if session.needs_heal() {
            let (before, savepoint) = (view(&session), session.savepoint());
            let healed = Event::HistoryHealed { results: heal(&session) };
            session.apply(&healed, None).unwrap();
            let mut back = session.clone();
            back.rollback(savepoint);
            prop_assert_eq!(view(&back), before);
            prop_assert!(session.apply(&healed, None).is_err(), "healing twice");
        }
        prop_assert_eq!(heal(&session), Vec::new());
        let answered = |call| session.transcript().iter().filter(|message| {
            matches!(&***message, Message::Tool(tool) if tool.tool_call_id == call)
        }).count();
        let open = session.open_step().map(|step| step.reply.step);
        for message in session.transcript() {
            let Message::Assistant(assistant) = &**message else { continue };
            for call in assistant.tool_calls.iter().filter(|call| call.id.step() != open) {
                prop_assert_eq!(answered(call.id.clone()), 1);
            }
        }
        let next = StepIterator::new(agent, session).next();
        prop_assert!(!matches!(next, Action::Heal(_)));
    }

    #[test]
    fn a_rewind_to_a_checkpoint_restores_its_state(kind: Agents, moves in moves()) {
        let mut known = std::collections::BTreeMap::new();
        let (mut steps, mut spent) = (0, Usage::default());
        let view_at = |session: &Session| {
            let (step, state) = (session.closed_step(), session.state());
            let closed = step.filter(|step| step.reply.error.is_none());
            format!("{:?} {state} {} {closed:?}", session.transcript(), session.turn_steps())
        };
        play(&agent(kind), &moves, |hand| {
            let session = hand.session();
            if let Some((_, Event::StepClosed { .. })) = hand.log.last() {
                known.insert(hand.log.len() as u64, view_at(session));
            }
            if let [.., (_, Event::Rewound { to }), _] = &*hand.log {
                let failed = |step: &StepRecord| step.reply.error.is_some();
                let step = session.checkpoint(*to).unwrap().step;
                let reply = hand.log.iter().find_map(|(_, event)| match event {
                    Event::ModelReplied(reply) if reply.step == step => Some(reply),
                    _ => None,
                });
                assert!(!session.closed_step().is_some_and(failed));
                if reply.unwrap().error.is_none() {
                    assert_eq!(view_at(session), known[to], "{}", hand.story());
                }
            }
            // Numbers are never reused, and used-up budget is not returned.
            if let Some((_, Event::ModelReplied(reply))) = hand.log.last()
                && reply.step == session.last_step()
            {
                assert!(reply.step >= steps, "{}", hand.story());
                steps = reply.step;
            }
            assert!(session.usage().tokens.input_tokens >= spent.input_tokens);
            spent = session.usage().tokens;
            let calls = session.transcript().iter().filter_map(|message| match &**message {
                Message::Assistant(message) => Some(&message.tool_calls),
                _ => None,
            });
            let calls: Vec<_> = calls.flatten().map(|call| &call.id).collect();
            let different: std::collections::BTreeSet<_> = calls.iter().collect();
            assert_eq!(different.len(), calls.len());
        });
    }

    #[test]
    fn every_event_reads_back_as_it_was_written(kind: Agents, moves in moves()) {
        let hand = play(&agent(kind), &moves, |_| {});
        let log = &hand.log;
        for append in appends(&hand, &[7]) {
            let decoded = decode(&"s".into(), &append).unwrap();
            let start = usize::try_from(append.first).unwrap() - 1;
            for (recorded, (_, event)) in decoded.iter().zip(&log[start..]) {
                prop_assert_eq!(&recorded.event, event);
            }
        }
    }

    #[test]
    fn numbers_read_back_to_the_last_bit(number in any::<f64>().prop_filter("finite", |n| n.is_finite())) {
        let patch = Patch::between(&serde_json::json!({}), &serde_json::json!({"n": number}));
        let (source_type, source_name) = ("t".to_owned(), "n".to_owned());
        let events = [
            Event::StateChanged { patch, by: "h".to_owned() },
            Event::UsageRecorded { source_type, source_name, amount: number, call: None, success: true },
        ];
        let body = encode(&events).unwrap();
        let back: Vec<Event> = serde_json::from_slice(&body).unwrap();
        prop_assert_eq!(back.as_slice(), events.as_slice());
    }

    #[test]
    fn an_undisturbed_run_ends(kind: Agents, moves in moves()) {
        let mut hand = play(&agent(kind), &moves, |_| {});
        for _ in 0..400 {
            match hand.next() {
                Action::Idle => return Ok(()),
                _ => game::make_move(&mut hand, &Move::text()),
            }
        }
        prop_assert!(false, "the run does not end: {}", hand.story());
    }
}
