// A model server with the Chat Completions interface. Its replies are scripted, and it counts its requests.

import { createServer } from "node:http";
import { once } from "node:events";

import { Gate } from "./gate.mjs";

/** A piece of reasoning. */
export const reasoning = (text) => ({ reasoning_content: text });

/** A tool call. */
export const call = (name, args) => ({ call: { name, arguments: JSON.stringify(args) } });

/** A refusal with an HTTP status. It is the only part of its reply. */
export const refusal = (status, message) => ({ status, message });

/**
 * The scripted model. A script belongs to a talk, whose messages of users start with `NAME:`. Each reply answers one
 * request. A reply is a list of texts, `reasoning`, `call`s and gates.
 */
export class Model {
  #scripts = new Map();
  #requests = [];
  #server = createServer((request, response) => {
    this.#answer(request, response).catch((error) => response.destroy(error));
  });

  static async open() {
    const model = new Model();
    model.#server.listen(0, "127.0.0.1");
    await once(model.#server, "listening");
    return model;
  }

  get url() {
    return `http://127.0.0.1:${this.#server.address().port}/v1`;
  }

  script(talk, ...replies) {
    this.#scripts.set(talk, replies);
  }

  /** Returns the bodies of a talk's requests. */
  requests(talk) {
    return this.#requests.filter((request) => request.talk === talk).map((request) => request.body);
  }

  /** Returns the talks of requests that no script answers. */
  get unexpected() {
    return this.#requests.filter((request) => !request.reply).map((request) => request.talk);
  }

  close() {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request, response) {
    let text = "";
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text);
    const talk = talkOf(body);
    const reply = this.#scripts.get(talk)?.shift();
    this.#requests.push({ talk, body, reply });
    const [first] = reply ?? [refusal(400, `the script of "${talk}" has no reply left`)];
    if (first.status) {
      response.writeHead(first.status, { "content-type": "application/json" });
      return response.end(JSON.stringify({ error: { message: first.message } }));
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    for await (const chunk of chunks(reply)) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    response.end("data: [DONE]\n\n");
  }
}

/** Returns the talk of a request: the first message of the user up to its colon. */
function talkOf({ messages }) {
  const { content } = messages.find((message) => message.role === "user");
  const text = typeof content === "string" ? content : content.map((part) => part.text ?? "").join("");
  return text.split(":")[0];
}

async function* chunks(reply) {
  const of = (delta, finish_reason = null) => ({
    id: "reply",
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason }],
  });
  let calls = 0;
  for (const part of reply) {
    if (part instanceof Gate) {
      await part.pass();
    } else if (typeof part === "string") {
      yield of({ content: part });
    } else if (part.call) {
      const { name, arguments: args } = part.call;
      const [index, half] = [calls++, Math.floor(args.length / 2)];
      const start = { name, arguments: args.slice(0, half) };
      yield of({ tool_calls: [{ index, id: `call_${index}`, type: "function", function: start }] });
      yield of({ tool_calls: [{ index, function: { arguments: args.slice(half) } }] });
    } else {
      yield of(part);
    }
  }
  yield of({}, calls > 0 ? "tool_calls" : "stop");
  yield { id: "reply", choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } };
}
