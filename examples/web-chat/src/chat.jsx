// The conversation.

import { useChat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from "ai";
import { useRef, useState } from "react";

import { Part } from "./parts.jsx";
import { headers, interrupt, loadMessages } from "./server.js";

/** A transport that calls a function if there is no run to resume. */
class Transport extends DefaultChatTransport {
  constructor(onNothingToResume) {
    super({ api: "/api/chat", headers });
    this.onNothingToResume = onNothingToResume;
  }

  async reconnectToStream(options) {
    const stream = await super.reconnectToStream(options);
    if (!stream) await this.onNothingToResume();
    return stream;
  }
}

/** Sends answers once all calls of the last step have one. */
const sendAutomaticallyWhen = (chat) =>
  lastAssistantMessageIsCompleteWithToolCalls(chat) || lastAssistantMessageIsCompleteWithApprovalResponses(chat);

export function Chat({ id, initial }) {
  const [progress, setProgress] = useState("");
  const [draft, setDraft] = useState("");
  /** The id of the user's message that the draft replaces. */
  const [edited, setEdited] = useState();

  const reload = useRef();
  const [transport] = useState(() => new Transport(() => reload.current()));

  const onData = ({ type, data }) => {
    if (type === "data-tool-progress") setProgress(data.message);
    if (type === "data-state-patch") setProgress(`state: ${JSON.stringify(data)}`);
  };
  const chat = useChat({ id, messages: initial, resume: true, transport, sendAutomaticallyWhen, onData });
  const { messages, status, error } = chat;
  const isBusy = status === "submitted" || status === "streaming";

  // The run may have ended after the page loaded the messages, or while the connection was broken.
  reload.current = async () => chat.setMessages(await loadMessages(id));

  const send = (event) => {
    event.preventDefault();
    setProgress("");
    chat.sendMessage({ text: draft, messageId: edited });
    setDraft("");
    setEdited(undefined);
  };
  const edit = (message) => {
    setDraft(message.parts.map((part) => part.text ?? "").join(""));
    setEdited(message.id);
  };
  const stop = async () => {
    await interrupt(id);
    await chat.stop();
  };

  return (
    <div data-status={status}>
      {messages.map((message) => (
        <article key={message.id} data-role={message.role}>
          {message.parts.map((part, index) => (
            <Part key={index} part={part} answer={chat.addToolOutput} decide={chat.addToolApprovalResponse} />
          ))}
          {message.role === "user" && !isBusy && <button onClick={() => edit(message)}>Edit</button>}
        </article>
      ))}
      <output>{progress}</output>
      {error && <p role="alert">{error.message}</p>}
      {error && <button onClick={() => chat.resumeStream()}>Reconnect</button>}
      {isBusy && <button onClick={stop}>Stop</button>}
      {!isBusy && messages.at(-1)?.role === "assistant" && (
        <button onClick={() => chat.regenerate()}>Regenerate</button>
      )}
      <form onSubmit={send}>
        <input
          aria-label="Message"
          value={draft}
          onChange={(event) => setDraft(event.target.value)}
          required
        />
        <button disabled={isBusy}>{edited ? "Replace" : "Send"}</button>
      </form>
    </div>
  );
}
