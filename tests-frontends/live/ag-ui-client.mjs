// Clients of AG-UI, and what they have seen.

import { randomUUID } from "node:crypto";

import { HttpAgent } from "@ag-ui/client";

import { within } from "./gate.mjs";

/** Events that do not fit what the client has. It only reports them on the console. */
export const warnings = [];
console.warn = (...texts) => warnings.push(texts.join(" "));
console.error = (...texts) => {
  // A run that fails is reported to the test as well.
  if (!texts[0].startsWith("Agent execution failed")) warnings.push(texts.join(" "));
};

/** Returns a client of a user that knows nothing of the thread yet. */
export function agentOf(world, user, threadId) {
  const url = `${world.door.url}/api/agui/clerk`;
  return new HttpAgent({ url, threadId, headers: { authorization: `Bearer ${user}` } });
}

/** Runs an agent. Returns the events of the response. */
export async function run(agent, parameters = {}) {
  const events = [];
  const onEvent = ({ event }) => {
    events.push(event);
  };
  const running = agent.runAgent({ runId: randomUUID(), ...parameters }, { onEvent });
  await within(running, "the run did not end");
  return events;
}

/** Says something in a talk, and runs the agent. */
export function say(agent, talk, text, parameters) {
  agent.addMessage({ id: randomUUID(), role: "user", content: `${talk}: ${text}` });
  return run(agent, parameters);
}

/** Returns the parameters that answer all interrupts alike. */
export function resume(interrupts, payload) {
  return { resume: interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload })) };
}

/** Resolves once an agent has received an event of a type. */
export function received(agent, type) {
  return new Promise((resolve) => {
    const { unsubscribe } = agent.subscribe({
      onEvent: ({ event }) => {
        if (event.type !== type) return;
        unsubscribe();
        resolve();
      },
    });
  });
}

export const ofType = (events, type) => events.filter((event) => event.type === type);

/** Returns the last event, which ends the run. */
export const last = (events) => events.at(-1);

/** Returns the messages that have content. A snapshot has empty reasoning, which takes back what a client may have. */
export function shown(agent) {
  return agent.messages.filter(({ role, content }) => role !== "reasoning" || content);
}

/** Returns the texts of the agent. */
export function texts(agent) {
  const replies = agent.messages.filter((message) => message.role === "assistant");
  return replies.map((message) => message.content).filter((content) => content);
}
