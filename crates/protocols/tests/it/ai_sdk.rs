//! A page with `useChat` that watches random trees of agents.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents_conformance::rng::Rng;
use helix_agents_core::id::RunId;
use helix_agents_core::stream::StoredChunk;
use helix_agents_protocols::ai_sdk::{
    Assembler, Major, Options, Progress, Seen, Translator, UiChunk, UiMessage, UiPart,
    history_of_turn, message_id,
};
use helix_agents_protocols::sse;
use helix_agents_runtime::Sessions;
use serde::Serialize;
use serde_json::{Value, json};

use crate::frames;
use crate::stories::{self, ROOT, Recorded, View};

/// The number of stories in the deep tier.
const STORIES: u64 = 1_500;

#[test]
fn a_page_that_watches_a_tree_has_the_message_of_the_history() {
    for seed in stories::seeds(STORIES) {
        let page = Rc::new(RefCell::new(Page::new(seed, Major::Seven)));
        let (watching, finishing) = (Rc::clone(&page), page);
        stories::run(
            seed,
            |sessions| watch(sessions, watching),
            |sessions| async move {
                let mut page = finishing.replace(Page::new(seed, Major::Seven));
                page.settle(&sessions).await;
            },
        );
    }
}

/// Version 6 cannot take back discarded text, so only the rules of the protocol are checked.
#[test]
fn a_page_of_version_six_gets_no_chunk_that_it_does_not_know() {
    for seed in stories::seeds(STORIES / 3) {
        let page = Rc::new(RefCell::new(Page::new(seed, Major::Six)));
        stories::run(seed, |sessions| watch(sessions, page), |_| async {});
    }
}

/// A page that shows the root session.
struct Page {
    seed: u64,
    options: Options,
    rng: Rng,
    turn: u32,
    /// The message of the present turn.
    message: Option<UiMessage>,
    /// Whether a response ended with an empty step while the turn waited.
    has_moved_on: bool,
    /// The last run whose end the page has shown, and whether the response ended with pending calls.
    ended: Option<(RunId, bool)>,
    responses: Vec<Response>,
}

/// One response, for the real client.
#[derive(Serialize)]
struct Response {
    /// The message that the page continues with the response; `None` if it starts without one.
    before: Option<UiMessage>,
    body: String,
    /// The message afterwards.
    after: UiMessage,
    /// Whether the connection was cut.
    is_cut: bool,
}

/// The responses of one turn.
#[derive(Serialize)]
struct Recording<'r> {
    seed: u64,
    major: u32,
    responses: &'r [Response],
    history: Value,
}

async fn watch(sessions: Sessions, page: Rc<RefCell<Page>>) {
    loop {
        let wait = Duration::from_millis(1 + page.borrow_mut().rng.roll() % 20);
        tokio::time::sleep(wait).await;
        let mut present = page.borrow_mut().take();
        let is_new = present.respond(&sessions, true).await;
        if is_new {
            present.compare(&sessions).await;
        }
        *page.borrow_mut() = present;
    }
}

impl Page {
    fn new(seed: u64, major: Major) -> Self {
        Self {
            seed,
            options: Options::default().major(major),
            rng: Rng::of((seed, "page")),
            turn: 0,
            message: None,
            has_moved_on: false,
            ended: None,
            responses: Vec::new(),
        }
    }

    fn take(&mut self) -> Self {
        let empty = Self::new(self.seed, self.options.major);
        std::mem::replace(self, empty)
    }

    /// Reads one response. Returns `true` if it is complete.
    async fn respond(&mut self, sessions: &Sessions, may_cut: bool) -> bool {
        let Some(view) = View::read(sessions).await else { return false };
        let session = &view.page.session;
        let Some(run) = session.last_run() else { return false };
        if self.ended.as_ref().is_some_and(|(ended, _)| *ended == run.id) {
            return false;
        }
        if self.turn != session.turn() {
            (self.turn, self.message) = (session.turn(), None);
            self.responses.clear();
        }
        let mut translator = Translator::new(&view.folds(), self.options);
        let waits = self.ended.as_ref().is_some_and(|(_, waits)| *waits);
        let mut before = self.message.clone().filter(|_| waits && self.rng.once_in(2));
        if let Some(message) = &mut before {
            self.answer(message, &view.pending());
            translator = translator.continuing(Seen::of(message));
        }
        let id = message_id(session.id(), self.turn);
        let assembler = before.clone().map_or_else(|| Assembler::new(id), Assembler::continuing);
        let mut client = Client { assembler, body: Vec::new(), seed: self.seed, last: None };
        let mut out = Vec::new();
        let mut progress = translator.begin(&view.folds(), &mut out);
        client.read(&mut out, None);
        for stored in &view.page.live {
            progress = translator.push(stored, &mut out);
            client.read(&mut out, Some(stored));
        }
        let mut left = if may_cut && self.rng.once_in(3) { self.rng.below(60) } else { usize::MAX };
        let mut chunks = sessions.follow(session.id(), view.page.next_seq).await.unwrap();
        while progress == Progress::Open && left > 0 {
            let stored = chunks.next().await.unwrap().unwrap();
            progress = translator.push(&stored, &mut out);
            client.read(&mut out, Some(&stored));
            left -= 1;
        }
        let is_complete = progress == Progress::Done;
        if is_complete {
            client.body.extend_from_slice(sse::DONE);
            let waits = matches!(&client.last, Some(UiChunk::Finish { finish_reason, .. })
                if *finish_reason == Some(helix_agents_protocols::ai_sdk::FinishReason::ToolCalls));
            // A takeover may have replaced the run of the page.
            let shown = client.assembler.message().metadata.as_ref().unwrap()["run"].clone();
            self.ended = Some((RunId::from(shown.as_str().unwrap()), waits));
        } else {
            self.ended = None;
        }
        let after = client.assembler.message().clone();
        if before.is_none() {
            self.has_moved_on = false;
        }
        self.has_moved_on |= is_complete && after.parts.last() == Some(&UiPart::StepStart);
        self.message = Some(after.clone());
        let body = String::from_utf8(client.body).unwrap();
        self.responses.push(Response { before, body, after, is_cut: !is_complete });
        is_complete
    }

    /// Answers some calls in the page. The log has their answers already, which may be those of others.
    fn answer(&mut self, message: &mut UiMessage, pending: &[String]) {
        for part in &mut message.parts {
            let UiPart::Tool(call) = part else { continue };
            if pending.contains(&call.tool_call_id) {
                continue;
            }
            let is_client = call.provider_executed.is_none() && call.approval.is_none();
            if call.state == "input-available" && is_client && self.rng.once_in(2) {
                call.state = "output-available".to_owned();
                call.output = Some(json!("an answer of this page"));
            }
            if let ("approval-requested", Some(approval)) = (&*call.state, &mut call.approval) {
                call.state = "approval-responded".to_owned();
                approval.approved = Some(self.rng.once_in(2));
            }
        }
    }

    /// Compares the message with that of the history, unless the tree has moved on.
    async fn compare(&self, sessions: &Sessions) {
        let recorded = Recorded::read(sessions).await;
        let run = recorded.root.last_run().unwrap();
        if self.ended.as_ref().is_none_or(|(ended, _)| *ended != run.id) {
            return;
        }
        // A run that takes over with a message starts the next turn, and the response continues.
        if run.turn != self.turn {
            return;
        }
        let history = history_of_turn(&recorded.folds(), self.turn, &[], self.options);
        if self.options.major == Major::Seven {
            let mut live = self.message.clone().unwrap();
            remove_unrecorded(&mut live, &history);
            let live = &live;
            let with_children = stories::ends_after_children(run);
            let shown = child_ids(&history);
            assert!(child_ids(live).is_subset(&shown), "HELIX_SEED={}: {shown:?}", self.seed);
            let (mut live, mut history) =
                (normalised(live, with_children), normalised(&history, with_children));
            if self.has_moved_on {
                // No chunk changes the arguments of a call in an earlier step, which an approver may edit.
                forget_edited(&mut live);
                forget_edited(&mut history);
                // Nor does a chunk add a part to an earlier step.
                move_late_parts(&mut live, &history);
            }
            let text = |value: &Value| serde_json::to_string_pretty(value).unwrap();
            assert!(
                live == history,
                "HELIX_SEED={}\nlive: {}\nhistory: {}",
                self.seed,
                text(&live),
                text(&history)
            );
        }
        let major = if self.options.major == Major::Seven { 7 } else { 6 };
        let history = serde_json::to_value(&history).unwrap();
        let responses = &self.responses;
        frames::record("ai_sdk", &Recording { seed: self.seed, major, responses, history });
    }

    /// Reads responses until the end of the story is shown.
    async fn settle(&mut self, sessions: &Sessions) {
        let recorded = Recorded::read(sessions).await;
        let run = recorded.root.last_run().unwrap().id.clone();
        assert!(recorded.root.current_run().is_none(), "the story has ended");
        for _ in 0..3 {
            if self.ended.as_ref().is_some_and(|(ended, _)| *ended == run) {
                break;
            }
            self.respond(sessions, false).await;
        }
        assert_eq!(self.ended.as_ref().map(|(run, _)| run), Some(&run), "seed {}", self.seed);
        self.compare(sessions).await;
    }
}

/// The client of one response.
struct Client {
    assembler: Assembler,
    body: Vec<u8>,
    seed: u64,
    last: Option<UiChunk>,
}

impl Client {
    fn read(&mut self, out: &mut Vec<UiChunk>, stored: Option<&StoredChunk>) {
        let seq = stored.map(|stored| stored.seq);
        self.body.extend(sse::frames(&*out, seq).unwrap());
        for chunk in out.drain(..) {
            if let Err(violation) = self.assembler.add(&chunk) {
                let body = String::from_utf8_lossy(&self.body);
                panic!("HELIX_SEED={}: {violation} in {chunk:?}\n{body}", self.seed);
            }
            self.last = Some(chunk);
        }
    }
}

/// Returns a message without what differs between a page and the history by design.
fn normalised(message: &UiMessage, with_children: bool) -> Value {
    let mut steps: Vec<Vec<Value>> = vec![Vec::new()];
    for part in &message.parts {
        match part {
            UiPart::StepStart => steps.push(Vec::new()),
            part if is_lasting(part, with_children) => {
                steps.last_mut().unwrap().push(lasting(part))
            }
            _ => {}
        }
    }
    // A step without parts was discarded, or is an end of the page's answers.
    steps.retain(|step| !step.is_empty());
    steps.iter_mut().for_each(|step| sort(step));
    let mut metadata = message.metadata.clone().unwrap_or_default();
    // A page keeps the error of a run that was resumed.
    metadata.as_object_mut().unwrap().remove("error");
    json!({ "id": message.id, "metadata": metadata, "steps": steps })
}

/// Sorts the parts of a step. Sub-agents work concurrently, so only texts and the root's own calls have an order.
fn sort(step: &mut [Value]) {
    step.sort_by_cached_key(|part| {
        let id = part["toolCallId"].as_str().or(part["id"].as_str()).unwrap_or_default();
        let is_own = part["data"].is_null()
            && !id.contains('#')
            && !part["type"].as_str().unwrap().starts_with("tool-subagent__");
        if is_own { String::new() } else { format!("{}{id}", part["type"]) }
    });
}

/// Moves calls and data of a page to their steps in the history, if those are earlier.
fn move_late_parts(live: &mut Value, history: &Value) {
    let steps = |message: &Value| -> Vec<Vec<Value>> {
        serde_json::from_value(message["steps"].clone()).unwrap()
    };
    let id = |part: &Value| part["toolCallId"].as_str().or(part["id"].as_str()).map(str::to_owned);
    let recorded = steps(history);
    let step_of = |sought: &str| {
        recorded.iter().position(|step| step.iter().any(|part| id(part).as_deref() == Some(sought)))
    };
    let mut shown = steps(live);
    for at in 0..shown.len() {
        let parts = std::mem::take(&mut shown[at]);
        for part in parts {
            let target = id(&part).and_then(|id| step_of(&id)).filter(|step| *step < at);
            shown[target.unwrap_or(at)].push(part);
        }
    }
    shown.retain(|step| !step.is_empty());
    shown.iter_mut().for_each(|step| sort(step));
    live["steps"] = serde_json::to_value(shown).unwrap();
}

/// Removes the arguments of calls that were approved.
fn forget_edited(message: &mut Value) {
    for part in message["steps"].as_array_mut().unwrap().iter_mut() {
        for call in part.as_array_mut().unwrap() {
            if call["approval"]["approved"] == true {
                call.as_object_mut().unwrap().remove("input");
            }
        }
    }
}

/// Removes sub-agents whose starts are not recorded, because the process crashed and the run was aborted. The page
/// shows them as failed.
fn remove_unrecorded(live: &mut UiMessage, history: &UiMessage) {
    let recorded = child_ids(history);
    live.parts.retain(|part| match part {
        UiPart::Data(data) if data.kind == "data-subagent" => {
            let is_recorded = data.id.as_ref().is_none_or(|id| recorded.contains(id));
            is_recorded || data.data["status"] != "failed"
        }
        _ => true,
    });
}

/// Returns the ids of sub-agents and of their calls.
fn child_ids(message: &UiMessage) -> BTreeSet<String> {
    let ids =
        message.parts.iter().filter(|part| is_lasting(part, true) && !is_lasting(part, false));
    let ids = ids.filter_map(|part| match part {
        UiPart::Data(data) => data.id.clone(),
        UiPart::Tool(call) => Some(call.tool_call_id.clone()),
        _ => None,
    });
    ids.collect()
}

/// Returns `true` if the log determines the part. That of a companion is not part of the turn, and a broken-off reply
/// is not recorded.
fn is_lasting(part: &UiPart, with_children: bool) -> bool {
    match part {
        UiPart::Text(text) => text.text != "So I ",
        UiPart::Data(data) => {
            let id = data.id.as_deref().unwrap_or_default();
            let is_child = data.kind == "data-subagent" && with_children;
            (data.kind == "data-output" || is_child) && !id.contains("-agent-")
        }
        UiPart::Tool(call) => {
            let is_child = call.tool_call_id.contains('#');
            (with_children || !is_child) && !call.tool_call_id.contains("-agent-")
        }
        _ => true,
    }
}

fn lasting(part: &UiPart) -> Value {
    let mut part = serde_json::to_value(part).unwrap();
    // Whether a call that did not end was approved before is not shown live.
    // The answer may also be recorded after the response.
    if part["state"] == "approval-responded" {
        part["state"] = json!("approval-requested");
    }
    if part["state"] == "approval-requested" {
        part["approval"].as_object_mut().unwrap().remove("approved");
    }
    if part["state"] == "output-error" {
        part.as_object_mut().unwrap().remove("approval");
    }
    // An edit is shown with the start of its call. A process that stopped before that has not shown it.
    if part["errorText"].as_str().is_some_and(|text| text.starts_with("the process stopped during"))
    {
        part.as_object_mut().unwrap().remove("input");
    }
    part
}

#[test]
fn the_messages_of_a_session_keep_their_ids() {
    assert_eq!(message_id(&ROOT.into(), 3), "root-turn-3");
}
