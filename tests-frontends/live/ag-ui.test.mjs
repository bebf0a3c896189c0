// `HttpAgent` of `@ag-ui/client` with the example `clerk`: what a turn contains, and the answers of the client.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";

import { call, reasoning, refusal } from "./model.mjs";
import { payment, question } from "./clerk.mjs";
import { Gate } from "./gate.mjs";
import { World } from "./world.mjs";
import { agentOf, last, ofType, received, resume, run, say, shown, texts, warnings } from "./ag-ui-client.mjs";

const ROUTE = "/agui/clerk";
let world;

before(async () => {
  world = await World.open();
});
after(() => world.close());
afterEach(() => assert.deepEqual(warnings.splice(0), []));

/** Starts a talk with a new user. */
function start(...replies) {
  const user = world.user();
  const talk = world.talk(...replies);
  return { user, talk, agent: agentOf(world, user, talk) };
}

/** Asserts the numbers of requests to the model and to the server. */
function assertRequests({ user, talk }, { calls, posts }) {
  world.assertCalls(talk, calls);
  world.assertPosts(user, ROUTE, posts);
}

/** Returns the message with which a client answers a call. */
const colour = (toolCallId, colour) => ({
  id: `answer-${colour}`,
  role: "tool",
  toolCallId,
  content: JSON.stringify({ colour }),
});

test("a text", async () => {
  const talk = start(["Hello ", "Ann."]);
  const events = await say(talk.agent, talk.talk, "Hello!");
  assert.deepEqual(last(events).outcome, { type: "success" });
  assert.deepEqual(texts(talk.agent), ["Hello Ann."]);
  assertRequests(talk, { calls: 1, posts: 1 });
});

test("reasoning", async () => {
  const talk = start([reasoning("Let me "), reasoning("think."), "Yes."]);
  await say(talk.agent, talk.talk, "Is it?");
  const found = talk.agent.messages.filter((message) => message.role === "reasoning");
  assert.deepEqual(found.map((message) => message.content), ["Let me think."]);
  assert.deepEqual(texts(talk.agent), ["Yes."]);
  assertRequests(talk, { calls: 1, posts: 1 });
});

test("a tool of the server", async () => {
  // Progress is only live: the client follows the run before the tool is called.
  const gate = new Gate();
  const talk = start([gate, call("get_weather", { city: "Oslo" })], ["It rains."]);
  const isFollowing = received(talk.agent, "RUN_STARTED");
  const answer = say(talk.agent, talk.talk, "The weather?");
  await isFollowing;
  gate.open();
  const events = await answer;
  const [progress] = ofType(events, "CUSTOM").filter((event) => event.name === "tool_progress");
  assert.equal(progress.value.message, "asking the station");
  const results = talk.agent.messages.filter((message) => message.role === "tool");
  assert.deepEqual(results.map((message) => JSON.parse(message.content)), [{ city: "Oslo", weather: "rain" }]);
  assert.deepEqual(texts(talk.agent), ["It rains."]);
  assertRequests(talk, { calls: 2, posts: 1 });
});

test("a client tool that the client answers", async () => {
  const talk = start([question], ["Blue it is."]);
  const events = await say(talk.agent, talk.talk, "Paint!");
  const [pending, ...others] = last(events).outcome.pendingToolCallIds;
  assert.deepEqual(others, []);
  talk.agent.addMessage(colour(pending, "blue"));
  await run(talk.agent);
  assert.deepEqual(texts(talk.agent), ["Blue it is."]);
  const ids = talk.agent.messages.map((message) => message.id);
  assert.equal(new Set(ids).size, ids.length, `a message is there twice: ${ids}`);
  assert.match(JSON.stringify(world.model.requests(talk.talk)[1].messages), /blue/);
  assertRequests(talk, { calls: 2, posts: 2 });
});

for (const [name, payload, seen] of [
  ["approved", { approved: true }, /paid 900 cents to Bob/],
  ["approved with other arguments", { approved: true, arguments: { to: "Cy", cents: 5 } }, /paid 5 cents to Cy/],
  ["denied", { approved: false, reason: "too much" }, /too much/],
]) {
  test(`a call that is ${name}`, async () => {
    const talk = start([payment], ["Settled."]);
    const events = await say(talk.agent, talk.talk, "Pay Bob!");
    const { type, interrupts } = last(events).outcome;
    assert.deepEqual([type, interrupts.length, interrupts[0].reason], ["interrupt", 1, "tool_call"]);
    await run(talk.agent, resume(interrupts, payload));
    assert.deepEqual(texts(talk.agent), ["Settled."]);
    const sent = JSON.stringify(world.model.requests(talk.talk)[1].messages);
    assert.match(sent, seen);
    if (!payload.approved) assert.doesNotMatch(sent, /paid/);
    assertRequests(talk, { calls: 2, posts: 2 });
  });
}

test("a client tool and an approval in one step", async () => {
  const talk = start([question, payment], ["Both are done."]);
  const events = await say(talk.agent, talk.talk, "Paint and pay!");
  const { type, interrupts } = last(events).outcome;
  assert.equal(type, "interrupt");
  const [asked, approval] = ["ask_colour", "pay"].map((tool) => {
    const calls = talk.agent.messages.flatMap((message) => message.toolCalls ?? []);
    const { id } = calls.find((call) => call.function.name === tool);
    return interrupts.find((interrupt) => interrupt.toolCallId === id);
  });
  await run(talk.agent, {
    resume: [
      { interruptId: asked.id, status: "resolved", payload: { colour: "red" } },
      { interruptId: approval.id, status: "resolved", payload: { approved: true } },
    ],
  });
  assert.deepEqual(texts(talk.agent), ["Both are done."]);
  assert.match(JSON.stringify(world.model.requests(talk.talk)[1].messages), /red.*paid 900/);
  assertRequests(talk, { calls: 2, posts: 2 });
});

test("a sub-agent", async () => {
  const talk = start();
  const poem = `${talk.talk}-poem`;
  world.model.script(talk.talk, [call("subagent__poet", { message: `${poem}: roses` })], ["Nice."]);
  world.model.script(poem, [call("__finish__", { output: "Roses are red." })]);
  const events = await say(talk.agent, talk.talk, "A poem!");
  assert.deepEqual(ofType(events, "SUBAGENT_STARTED").map((event) => event.name), ["poet"]);
  assert.deepEqual(ofType(events, "SUBAGENT_FINISHED").map((event) => event.outcome.type), ["success"]);
  assert.match(JSON.stringify(talk.agent.messages), /Roses are red\./);
  assert.deepEqual(texts(talk.agent), ["Nice."]);
  world.assertCalls(poem, 1);
  assertRequests(talk, { calls: 2, posts: 1 });
});

test("custom data and state", async () => {
  const notes = ["milk", "tea"].map((text) => call("take_note", { text }));
  const talk = start(notes, ["Noted."]);
  const events = await say(talk.agent, talk.talk, "Milk and tea!");
  const data = ofType(events, "CUSTOM").filter((event) => event.name === "note");
  assert.deepEqual(data.map((event) => event.value.text).sort(), ["milk", "tea"]);
  assert.deepEqual(talk.agent.state, { notes: ["milk", "tea"] });
  assertRequests(talk, { calls: 2, posts: 1 });
});

test("a tool that ends the turn", async () => {
  const talk = start([call("hand_in", { text: "My essay." })]);
  const events = await say(talk.agent, talk.talk, "Write!");
  assert.deepEqual(last(events).outcome, { type: "success" });
  assert.deepEqual(last(events).result, { text: "My essay." });
  assertRequests(talk, { calls: 1, posts: 1 });
});

test("an error of the provider", async () => {
  const talk = start([refusal(400, "no such model")], ["Now it works."]);
  const { type, code } = last(await say(talk.agent, talk.talk, "Hello!"));
  assert.deepEqual([type, code], ["RUN_ERROR", "provider_rejected"]);
  assertRequests(talk, { calls: 1, posts: 1 });
  await say(talk.agent, talk.talk, "Again!");
  assert.deepEqual(texts(talk.agent), ["Now it works."]);
  assertRequests(talk, { calls: 2, posts: 2 });
});

test("a run that is stopped", async () => {
  const gate = new Gate();
  const talk = start(["Once upon ", gate, "a time"], ["Yes?"]);
  const story = say(talk.agent, talk.talk, "A story!");
  await gate.reached;
  const response = await fetch(`${world.door.url}/api/abort`, {
    method: "POST",
    headers: { authorization: `Bearer ${talk.user}`, "content-type": "application/json" },
    body: JSON.stringify({ sessionId: talk.talk }),
  });
  assert.equal(response.status, 202);
  assert.deepEqual(last(await story).outcome, { type: "cancelled" });
  gate.open();
  assertRequests(talk, { calls: 1, posts: 1 });
  await say(talk.agent, talk.talk, "Wait!");
  assert.deepEqual(texts(talk.agent).at(-1), "Yes?");
  assertRequests(talk, { calls: 2, posts: 2 });
});

test("forged, repeated, late and foreign answers", async () => {
  const talk = start([payment], ["Settled."]);
  const { interrupts } = last(await say(talk.agent, talk.talk, "Pay Bob!")).outcome;
  const forged = [{ ...interrupts[0], id: `${interrupts[0].id.split("~")[0]}~${"0".repeat(64)}` }];
  // A new agent does not know the open interrupts, and sends any answer.
  const stranger = () => agentOf(world, world.user(), talk.talk);
  const other = () => agentOf(world, talk.user, talk.talk);
  const approved = { approved: true };
  await assert.rejects(run(other(), resume(forged, approved)), /arguments_changed/);
  await assert.rejects(run(stranger(), resume(interrupts, approved)), /session_not_found/);
  assertRequests(talk, { calls: 1, posts: 2 });

  await run(other(), resume(interrupts, { approved: false }));
  for (const answer of [{ approved: false }, approved]) {
    const late = other();
    await run(late, resume(interrupts, answer));
    assert.deepEqual(texts(late), ["Settled."]);
  }
  assert.doesNotMatch(JSON.stringify(world.model.requests(talk.talk)[1].messages), /paid/);
  assertRequests(talk, { calls: 2, posts: 5 });
});

test("two clients answer one call", async () => {
  const talk = start([question], ["So be it."]);
  const events = await say(talk.agent, talk.talk, "Paint!");
  const [pending] = last(events).outcome.pendingToolCallIds;
  const second = agentOf(world, talk.user, talk.talk);
  await run(second);
  assert.deepEqual(shown(second), shown(talk.agent));
  talk.agent.addMessage(colour(pending, "blue"));
  second.addMessage(colour(pending, "red"));
  await Promise.all([run(talk.agent), run(second)]);
  assert.deepEqual(texts(talk.agent), ["So be it."]);
  assert.deepEqual(shown(second), shown(talk.agent));
  assertRequests(talk, { calls: 2, posts: 4 });
});
