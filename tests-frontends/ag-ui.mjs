// The client of AG-UI, with its own transport, verification and application of events.

import { createServer } from "node:http";
import { once } from "node:events";

import { HttpAgent } from "@ag-ui/client";
import { EventSchema } from "@ag-ui/core/schemas";

import { difference } from "./difference.mjs";

let body = "";
const server = createServer((request, response) => {
  request.resume();
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(body);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
server.unref();
const url = `http://127.0.0.1:${server.address().port}/`;

// Events that do not fit are only reported on the console.
const warnings = [];
console.warn = (...texts) => warnings.push(texts.join(" "));

/** Returns the problems of frames that the schemas of the protocol do not accept. */
function validate(frames) {
  const problems = [];
  for (const line of frames.split("\n").filter((line) => line.startsWith("data: "))) {
    const { success, error } = EventSchema.safeParse(JSON.parse(line.slice(6)));
    if (!success) problems.push(`${line.slice(0, 300)}: ${error.message}`);
  }
  return problems;
}

/** Plays the responses to one client. Returns the problems. */
export async function play({ responses }) {
  const problems = [];
  let [initialMessages, initialState] = [[], {}];
  for (const [index, response] of responses.entries()) {
    body = response.body;
    warnings.length = 0;
    problems.push(...validate(body).map((problem) => `response ${index}: ${problem}`));
    // A new agent does not know the open interrupts of the last run, and does not ask for answers.
    const agent = new HttpAgent({ url, threadId: "root", initialMessages, initialState });
    try {
      await agent.runAgent({ runId: `run-${index}` });
    } catch (error) {
      const expected = body.includes('"type":"RUN_ERROR"');
      if (!expected) problems.push(`response ${index}: ${error.message}`);
    }
    const found =
      difference(agent.messages, response.messages, "/messages") ??
      difference(agent.state, response.state, "/state") ??
      difference(warnings, [], "/warnings");
    if (found) problems.push(`response ${index}: ${found}`);
    [initialMessages, initialState] = [response.messages, response.state];
  }
  return problems;
}
