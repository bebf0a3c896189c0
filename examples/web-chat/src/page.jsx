// The start of the page: the chat of the address, and the token if the server requires one.

import { createRoot } from "react-dom/client";

import { Chat } from "./chat.jsx";
import { loadMessages } from "./server.js";

const root = createRoot(document.getElementById("page"));

/** Shows the chat that the address names, so that a reload shows the same one. */
async function show() {
  if (!location.hash) history.replaceState(null, "", `#${crypto.randomUUID()}`);
  const id = location.hash.slice(1);
  try {
    root.render(<Chat key={id} id={id} initial={await loadMessages(id)} />);
  } catch (error) {
    root.render(error.status === 401 ? <Login /> : <p role="alert">{error.message}</p>);
  }
}

function Login() {
  const login = (event) => {
    event.preventDefault();
    sessionStorage.setItem("token", new FormData(event.target).get("token"));
    show();
  };
  return (
    <form onSubmit={login}>
      <input name="token" type="password" placeholder="Token" required />
      <button>Log in</button>
    </form>
  );
}

addEventListener("hashchange", show);
show();
