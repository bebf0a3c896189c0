//! A client of AG-UI that watches random trees of agents.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents_conformance::rng::Rng;
use helix_agents_core::id::RunId;
use helix_agents_protocols::ag_ui::{
    Assembler, Event, Message, Options, Progress, Translator, history,
};
use helix_agents_protocols::sse;
use helix_agents_runtime::Sessions;
use serde::Serialize;
use serde_json::{Value, json};

use crate::frames;
use crate::stories::{self, Recorded, View};

/// The number of stories in the deep tier.
const STORIES: u64 = 1_500;

#[test]
fn a_client_that_watches_a_tree_has_the_messages_and_the_state_of_the_log() {
    for seed in stories::seeds(STORIES) {
        let client = Rc::new(RefCell::new(Client::new(seed)));
        let (watching, finishing) = (Rc::clone(&client), client);
        stories::run(
            seed,
            |sessions| watch(sessions, watching),
            |sessions| async move {
                let mut client = finishing.replace(Client::new(seed));
                client.settle(&sessions).await;
                client.record();
            },
        );
    }
}

/// A client of the root session.
struct Client {
    seed: u64,
    rng: Rng,
    assembler: Assembler,
    /// The turn of the last response.
    turn: u32,
    /// The last run whose end the client has received.
    ended: Option<RunId>,
    responses: Vec<Response>,
}

/// One response, for the real client.
#[derive(Serialize)]
struct Response {
    body: String,
    /// The messages and the state afterwards.
    messages: Vec<Message>,
    state: Value,
    /// Whether the connection was cut.
    is_cut: bool,
}

async fn watch(sessions: Sessions, client: Rc<RefCell<Client>>) {
    loop {
        let wait = Duration::from_millis(1 + client.borrow_mut().rng.roll() % 20);
        tokio::time::sleep(wait).await;
        let seed = client.borrow().seed;
        let mut present = client.replace(Client::new(seed));
        if present.respond(&sessions, true).await {
            present.compare(&sessions).await;
        }
        *client.borrow_mut() = present;
    }
}

impl Client {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            rng: Rng::of((seed, "client")),
            assembler: Assembler::with_messages(Vec::new()),
            turn: 0,
            ended: None,
            responses: Vec::new(),
        }
    }

    /// Reads one response. Returns `true` if it is complete.
    async fn respond(&mut self, sessions: &Sessions, may_cut: bool) -> bool {
        let Some(mut view) = View::read(sessions).await else { return false };
        let Some(run) = view.page.session.last_run() else { return false };
        if self.ended.as_ref() == Some(&run.id) {
            return false;
        }
        self.turn = run.turn;
        let id = format!("run-{}", self.responses.len());
        let reasoning = self.assembler.messages().iter().filter_map(|message| match message {
            Message::Reasoning { id, .. } => Some(id.clone()),
            _ => None,
        });
        let mut translator =
            Translator::new(&view.folds(), id, Options::default()).with_client_reasoning(reasoning);
        let (mut out, mut body) = (Vec::new(), Vec::new());
        let mut left = if may_cut && self.rng.once_in(3) { self.rng.below(60) } else { usize::MAX };
        let mut progress = translator.begin(&view.folds(), &mut out);
        let mut run = RunId::from("");
        'pages: loop {
            if let Some(last) = view.page.session.last_run() {
                run = last.id.clone();
            }
            for stored in &view.page.live {
                if progress == Progress::Open {
                    progress = translator.push(stored, &mut out);
                }
            }
            let root = view.page.session.id().clone();
            let mut chunks = sessions.follow(&root, view.page.next_seq).await.unwrap();
            while progress == Progress::Open && left > 0 {
                let stored = chunks.next().await.unwrap().unwrap();
                progress = translator.push(&stored, &mut out);
                if stored.chunk.session == root && !stored.chunk.run.as_str().is_empty() {
                    run = stored.chunk.run.clone();
                }
                self.read(&mut out, &mut body, Some(stored.seq));
                left -= 1;
            }
            self.read(&mut out, &mut body, None);
            if progress != Progress::Reload || left == 0 {
                break 'pages;
            }
            view = View::read(sessions).await.unwrap();
            self.turn = view.page.session.turn();
            progress = translator.reload(&view.folds(), &mut out);
        }
        let is_complete = progress == Progress::Done;
        self.ended = is_complete.then_some(run);
        let body = String::from_utf8(body).unwrap();
        let (messages, state) =
            (self.assembler.messages().to_vec(), self.assembler.state().clone());
        self.responses.push(Response { body, messages, state, is_cut: !is_complete });
        is_complete
    }

    fn read(&mut self, out: &mut Vec<Event>, body: &mut Vec<u8>, seq: Option<u64>) {
        body.extend(sse::frames(&*out, seq).unwrap());
        out.drain(..).for_each(|event| self.assembler.apply(&event));
    }

    /// Compares the messages and the state with those of the log, unless the tree has moved on.
    async fn compare(&self, sessions: &Sessions) {
        let recorded = Recorded::read(sessions).await;
        let run = recorded.root.last_run().unwrap();
        if self.ended.as_ref() != Some(&run.id) {
            return;
        }
        // A run that takes over with a message starts the next turn. The next snapshot shows the message.
        if run.turn != self.turn {
            return;
        }
        let with_children = stories::ends_after_children(run);
        let history = history(&recorded.folds(), Options::default());
        let (live, recorded_calls) =
            (calls_of_children(self.assembler.messages()), calls_of_children(&history));
        assert!(live.is_subset(&recorded_calls), "HELIX_SEED={}: {recorded_calls:?}", self.seed);
        let live = normalised(self.assembler.messages(), with_children);
        let history = normalised(&history, with_children);
        let text = |value: &Value| serde_json::to_string_pretty(value).unwrap();
        assert!(
            live == history,
            "HELIX_SEED={}\nlive: {}\nhistory: {}",
            self.seed,
            text(&live),
            text(&history)
        );
        let state = &**recorded.root.state();
        assert_eq!(self.assembler.state(), state, "HELIX_SEED={}", self.seed);
    }

    /// Reads responses until the end of the story is received.
    async fn settle(&mut self, sessions: &Sessions) {
        let recorded = Recorded::read(sessions).await;
        let run = recorded.root.last_run().unwrap().id.clone();
        for _ in 0..3 {
            if self.ended.as_ref() == Some(&run) {
                break;
            }
            self.respond(sessions, false).await;
        }
        assert_eq!(self.ended.as_ref(), Some(&run), "HELIX_SEED={}", self.seed);
        self.compare(sessions).await;
    }

    fn record(&self) {
        let Self { seed, responses, .. } = self;
        frames::record("ag_ui", &json!({ "seed": seed, "responses": responses }));
    }
}

/// Returns the ids of the calls of sub-agents, without those of companions.
fn calls_of_children(messages: &[Message]) -> BTreeSet<String> {
    let messages = messages.iter().map(|message| serde_json::to_value(message).unwrap());
    let calls = messages.flat_map(|message| message["toolCalls"].as_array().cloned());
    let ids = calls.flatten().map(|call| call["id"].as_str().unwrap().to_owned());
    ids.filter(|id| id.contains('#') && !id.contains("-agent-")).collect()
}

/// Returns messages without what differs between a client and the log by design.
fn normalised(messages: &[Message], with_children: bool) -> Value {
    let lasting = messages.iter().filter_map(|message| {
        let mut message = serde_json::to_value(message).unwrap();
        // The text of a failed model call is not recorded, and reasoning that was taken back is empty.
        if message["content"] == "So I " {
            message.as_object_mut().unwrap().remove("content");
        }
        let is_empty = message["content"].as_str().is_none_or(str::is_empty);
        // Companions are not part of the turn.
        let is_omitted = |id: &Value| {
            let is_omitted =
                |id: &str| id.contains("-agent-") || (!with_children && id.contains('#'));
            id.as_str().is_some_and(is_omitted)
        };
        if is_omitted(&message["toolCallId"]) {
            return None;
        }
        if let Some(Value::Array(calls)) = message.get_mut("toolCalls") {
            calls.retain(|call| !is_omitted(&call["id"]));
            // Sub-agents work concurrently, so only the root's own calls have an order.
            calls.sort_by_cached_key(|call| call["id"].to_string());
            if calls.is_empty() {
                message.as_object_mut().unwrap().remove("toolCalls");
            }
        }
        // An edit is shown with the start of its call. A process that stopped before that has not shown it.
        if message["metadata"]["code"] == "tool_outcome_unknown" {
            message["metadata"].as_object_mut().unwrap().remove("arguments");
        }
        let has_calls = message["toolCalls"].is_array();
        (has_calls || !is_empty).then_some(message)
    });
    // A message of a user that is queued during the turn is only shown with the next snapshot.
    let (mut of_users, messages): (Vec<Value>, Vec<Value>) =
        lasting.partition(|message| message["role"] == "user");
    of_users.retain(|message| message["id"].as_str().unwrap().ends_with("-user-1"));
    // The results of sub-agents' calls may arrive after later messages.
    let (mut of_children, mut messages): (Vec<_>, Vec<_>) = messages
        .into_iter()
        .partition(|message| message["toolCallId"].as_str().is_some_and(|id| id.contains('#')));
    of_children.sort_by_cached_key(|result| result["id"].to_string());
    // The results of a step arrive in the order in which the calls end.
    let chunks = messages.chunk_by_mut(|a, b| a["role"] == "tool" && b["role"] == "tool");
    chunks.for_each(|results| results.sort_by_cached_key(|result| result["id"].to_string()));
    json!({ "users": of_users, "agent": messages, "children": of_children })
}
