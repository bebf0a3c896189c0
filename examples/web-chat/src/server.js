// The requests to the server besides those of `useChat`.

/** Returns the headers of every request. A server without authentication needs none. */
export function headers() {
  const token = sessionStorage.getItem("token");
  return token ? { authorization: `Bearer ${token}` } : {};
}

/** Returns the messages of a chat, including those of a turn in progress. */
export async function loadMessages(id) {
  const response = await fetch(`/api/chat/${id}/messages`, { headers: headers() });
  // A chat is created by its first message.
  if (response.status === 404) return [];
  if (!response.ok) throw Object.assign(new Error(await response.text()), { status: response.status });
  return (await response.json()).messages;
}

/** Stops the run at the end of its current step. Closing the connection would not stop it. */
export async function interrupt(id) {
  await fetch(`/api/chat/${id}/interrupt`, {
    method: "POST",
    headers: { ...headers(), "content-type": "application/json" },
    body: "{}",
  });
}
