// `useChat` in the page of `examples/web-chat`, with the example `clerk`: reloads, broken connections, killed servers and
// several tabs.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { call } from "./model.mjs";
import { Browser } from "./browser.mjs";
import { payment, question } from "./clerk.mjs";
import { Gate } from "./gate.mjs";
import { World, isDurable } from "./world.mjs";

let world;
let browser;

before(async () => {
  world = await World.open();
  browser = await Browser.launch(world);
});
after(async () => {
  await browser?.close();
  await world.close();
});

test("a reload while the model answers", async () => {
  const gate = new Gate();
  const tab = await browser.start(["Hello ", gate, "Ann."]);
  await tab.say("Hello!");
  await tab.shows(/^Hello\s*$/);
  await tab.reload();
  await tab.shows(/^Hello\s*$/);
  gate.open();
  await tab.shows("Hello Ann.");
  await tab.assertRequests({ calls: 1, posts: 1 });
  assert.deepEqual(await tab.texts(), ["Hello Ann."]);
});

test("a reload while answers are pending", async () => {
  const tab = await browser.start([question, payment], ["Both are done."]);
  await tab.say("Paint and pay!");
  await tab.parts("tool-pay").getByRole("button", { name: "Yes" }).waitFor();
  await tab.settles();
  await tab.reload();
  await tab.click("green");
  await tab.click("Yes");
  await tab.shows("Both are done.");
  await tab.assertRequests({ calls: 2, posts: 2 });
  assert.equal(await tab.parts("tool-pay").count(), 1);
});

test("a reload after the turn", async () => {
  const tab = await browser.start([call("get_weather", { city: "Oslo" })], ["It rains."]);
  await tab.say("The weather?");
  await tab.shows("It rains.");
  await tab.settles();
  const before = await tab.page.locator("article").allInnerTexts();
  await tab.reload();
  await tab.assertRequests({ calls: 2, posts: 1 });
  assert.deepEqual(await tab.page.locator("article").allInnerTexts(), before);
});

/** Starts a reply that waits at a gate, and cuts the page's connection. */
async function cutReply() {
  const gate = new Gate();
  const tab = await browser.start(["Hello ", gate, "Ann."]);
  await tab.say("Hello!");
  await tab.shows(/^Hello\s*$/);
  world.door.cut();
  await tab.settles("error");
  return { tab, gate };
}

test("a connection that breaks while the model answers", async () => {
  const { tab, gate } = await cutReply();
  await tab.click("Reconnect");
  gate.open();
  await tab.shows("Hello Ann.");
  await tab.assertRequests({ calls: 1, posts: 1 });
  assert.deepEqual(await tab.texts(), ["Hello Ann."]);
});

test("a connection that breaks, and a reply that ends before the page reconnects", async () => {
  const { tab, gate } = await cutReply();
  gate.open();
  await tab.ends();
  await tab.click("Reconnect");
  await tab.shows("Hello Ann.");
  await tab.assertRequests({ calls: 1, posts: 1 });
  assert.deepEqual(await tab.texts(), ["Hello Ann."]);
});

test("a connection that breaks while a tool runs", async () => {
  const gate = new Gate();
  const tab = await browser.start();
  const poem = `${tab.talk}-poem`;
  world.model.script(tab.talk, ["Wait. ", call("subagent__poet", { message: `${poem}: roses` })], ["Nice."]);
  world.model.script(poem, [gate, call("__finish__", { output: "Roses are red." })]);
  await tab.say("A poem!");
  await gate.reached;
  await tab.parts("tool-subagent__poet").waitFor();
  world.door.cut();
  await tab.settles("error");
  await tab.click("Reconnect");
  gate.open();
  await tab.shows("Nice.");
  await tab.assertRequests({ calls: 2, posts: 1 });
  world.assertCalls(poem, 1);
  assert.deepEqual((await tab.texts()).map((text) => text.trim()), ["Wait.", "Nice."]);
  assert.equal(await tab.parts("tool-subagent__poet").count(), 1);
});

test("two tabs answer one call", async () => {
  const tab = await browser.start([question], ["So be it."]);
  await tab.say("Paint!");
  await tab.parts("tool-ask_colour").getByRole("button", { name: "red" }).waitFor();
  await tab.settles();
  const second = await browser.openBeside(tab);
  await Promise.all([tab.click("red"), second.click("blue")]);
  await Promise.all([tab.shows("So be it."), second.shows("So be it.")]);
  await second.settles();
  await tab.assertRequests({ calls: 2, posts: 3 });
  // Both show the answer that counts.
  const shown = await tab.page.locator("article").allInnerTexts();
  assert.deepEqual(await second.page.locator("article").allInnerTexts(), shown);
  const sent = JSON.stringify(world.model.requests(tab.talk)[1].messages);
  const chosen = ["red", "blue"].filter((colour) => sent.includes(colour));
  assert.equal(chosen.length, 1, sent);
  assert.match(shown.at(-1), new RegExp(chosen[0]));
});

test("a server that is killed while the model answers", { skip: !isDurable }, async () => {
  const gate = new Gate();
  const tab = await browser.start(["Hello ", gate], ["Hello ", "Ann."]);
  await tab.say("Hello!");
  await tab.shows(/^Hello\s*$/);
  const second = await world.startClerk();
  await world.clerk.kill();
  [world.clerk, world.door.target] = [second, second.url];
  await tab.settles("error");
  gate.open();
  await tab.click("Reconnect");
  await tab.shows("Hello Ann.");
  await tab.assertRequests({ calls: 2, posts: 1 });
  assert.deepEqual(await tab.texts(), ["Hello Ann."]);
  await tab.reload();
  await tab.settles();
  assert.deepEqual(await tab.texts(), ["Hello Ann."]);
});
