// `HttpAgent` of `@ag-ui/client` with the example `clerk`: broken connections and killed servers.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, afterEach, before, test } from "node:test";

import { call } from "./model.mjs";
import { Gate, within } from "./gate.mjs";
import { World, isDurable } from "./world.mjs";
import { agentOf, last, received, run, say, shown, texts, warnings } from "./ag-ui-client.mjs";

let world;

before(async () => {
  world = await World.open();
});
after(() => world.close());
afterEach(() => assert.deepEqual(warnings.splice(0), []));

/** Asserts that a run fails because its connection breaks. */
async function assertBreaks(running, breakOff) {
  // The client in Node leaves a rejection unhandled besides the one of its run.
  const listeners = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  const unhandled = [];
  process.on("unhandledRejection", (error) => unhandled.push(error));
  try {
    const broken = assert.rejects(running);
    await breakOff();
    await within(broken, "the client did not notice that the connection broke");
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.removeAllListeners("unhandledRejection");
    listeners.forEach((listener) => process.on("unhandledRejection", listener));
  }
}

test("a connection that breaks while the model answers", async () => {
  const gate = new Gate();
  const [user, talk, runId] = [world.user(), world.talk(["Hello ", gate, "Ann."]), randomUUID()];
  const agent = agentOf(world, user, talk);
  const arrived = received(agent, "TEXT_MESSAGE_CONTENT");
  await assertBreaks(say(agent, talk, "Hello!", { runId }), async () => {
    await within(arrived, "no text arrived");
    world.door.cut();
  });
  const back = run(agent, { runId });
  gate.open();
  assert.deepEqual(last(await back).outcome, { type: "success" });
  assert.deepEqual(texts(agent), ["Hello Ann."]);
  world.assertCalls(talk, 1);
  world.assertPosts(user, "/agui/clerk", 2);
});

test("a connection that breaks while a tool runs", async () => {
  const gate = new Gate();
  const [user, talk, runId] = [world.user(), world.talk(), randomUUID()];
  const poem = `${talk}-poem`;
  world.model.script(talk, [call("subagent__poet", { message: `${poem}: roses` })], ["Nice."]);
  world.model.script(poem, [gate, call("__finish__", { output: "Roses are red." })]);
  const agent = agentOf(world, user, talk);
  await assertBreaks(say(agent, talk, "A poem!", { runId }), async () => {
    await gate.reached;
    world.door.cut();
  });
  // Another client of the user sees the same.
  const other = agentOf(world, user, talk);
  const back = [run(agent, { runId }), run(other, { runId })];
  gate.open();
  await Promise.all(back);
  assert.deepEqual(texts(agent), ["Nice."]);
  assert.deepEqual(shown(other), shown(agent));
  world.assertCalls(talk, 2);
  world.assertCalls(poem, 1);
  world.assertPosts(user, "/agui/clerk", 3);
});

test("a server that is killed while the model answers", { skip: !isDurable }, async () => {
  const gate = new Gate();
  const [user, runId] = [world.user(), randomUUID()];
  const talk = world.talk(["Hello ", gate], ["Hello ", "Ann."]);
  const agent = agentOf(world, user, talk);
  const arrived = received(agent, "TEXT_MESSAGE_CONTENT");
  const second = await world.startClerk();
  await assertBreaks(say(agent, talk, "Hello!", { runId }), async () => {
    await within(arrived, "no text arrived");
    await world.clerk.kill();
  });
  [world.clerk, world.door.target] = [second, second.url];
  const events = await within(run(agent, { runId }), "the second server did not take the run over");
  gate.open();
  assert.deepEqual(last(events).outcome, { type: "success" });
  assert.deepEqual(texts(agent), ["Hello Ann."]);
  world.assertCalls(talk, 2);
  world.assertPosts(user, "/agui/clerk", 2);
  // The history is the same.
  const other = agentOf(world, user, talk);
  await run(other);
  assert.deepEqual(shown(other), shown(agent));
});
