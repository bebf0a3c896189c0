// The clients of the AI SDK, major versions 7 and 6.

import * as seven from "ai";
import * as six from "ai6";

import { difference } from "./difference.mjs";

/** Returns the chunks of a response, as the transport of `useChat` reads and validates them. */
function chunks({ DefaultChatTransport }, body) {
  const fetch = async () => new Response(body, { headers: { "content-type": "text/event-stream" } });
  const transport = new DefaultChatTransport({ api: "http://localhost/", fetch });
  return transport.sendMessages({
    chatId: "root",
    messages: [],
    trigger: "submit-message",
    abortSignal: undefined,
  });
}

/** Returns the message that the client builds from a response, and its errors. */
async function read(client, { before, body }) {
  const errors = [];
  let message = before ?? undefined;
  const onError = (error) => errors.push(error instanceof Error ? error.message : String(error));
  try {
    const stream = await chunks(client, body);
    const messages = client.readUIMessageStream({ message: structuredClone(message), stream, onError });
    for await (const next of messages) message = next;
  } catch (error) {
    onError(error);
  }
  return { message, errors };
}

/** Removes the arguments of calls that the model has not completed: the client parses them partially. */
function withoutDrafts(message) {
  const parts = message.parts.map((part) =>
    part.state === "input-streaming" ? { ...part, input: undefined, rawInput: undefined } : part,
  );
  return { ...message, parts };
}

/** The texts of errors that a response contains on purpose. */
function expectedErrors(body) {
  const frames = body.split("\n").filter((line) => line.startsWith('data: {"type":"error"'));
  return frames.map((line) => JSON.parse(line.slice(6)).errorText);
}

/** Returns `true` if the page would send a request by itself after the response. */
function wouldSend(message) {
  const messages = [message];
  return (
    seven.lastAssistantMessageIsCompleteWithToolCalls({ messages }) ||
    seven.lastAssistantMessageIsCompleteWithApprovalResponses({ messages })
  );
}

/** Plays the responses of one turn. Returns the problems. */
export async function play({ major, responses, history }) {
  const client = major === 7 ? seven : six;
  const problems = [];
  for (const [index, response] of responses.entries()) {
    const { message, errors } = await read(client, response);
    const expected = expectedErrors(response.body);
    const found = difference(errors, expected, "/errors");
    if (found) problems.push(`response ${index} of version ${major}: ${found}`);
    if (major !== 7 || !message) continue;
    // The client takes a step over with the next chunk, which a cut response does not contain.
    const after = structuredClone(response.after);
    if (response.is_cut && after.parts.at(-1)?.type === "step-start") after.parts.pop();
    const isAhead = message.parts.length > after.parts.length;
    if (response.is_cut && isAhead && message.parts.at(-1).type === "step-start") message.parts.pop();
    const changed = difference(withoutDrafts(message), withoutDrafts(after));
    if (changed) problems.push(`response ${index}: ${changed}`);
    if (!response.is_cut && expected.length === 0 && wouldSend(message)) {
      problems.push(`response ${index}: the page would send another request`);
    }
  }
  const valid = await seven.safeValidateUIMessages({ messages: [history] });
  if (!valid.success && history.parts.length > 0) {
    problems.push(`the history is not valid: ${valid.error.message.slice(0, 600)}`);
  }
  return problems;
}
