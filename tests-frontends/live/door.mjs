// A proxy between a client and the server. It counts requests, cuts connections, and can lead to another server.

import { createServer, request } from "node:http";
import { once } from "node:events";

export class Door {
  #requests = [];
  #open = new Set();
  #server = createServer((incoming, outgoing) => this.#forward(incoming, outgoing));

  /** Opens a door to a server, whose address may change. */
  static async open(target) {
    const door = new Door();
    door.target = target;
    door.#server.listen(0, "127.0.0.1");
    await once(door.#server, "listening");
    return door;
  }

  get url() {
    return `http://127.0.0.1:${this.#server.address().port}`;
  }

  /** Returns the number of POST requests whose path ends so, by clients that send this token. */
  posts(token, end) {
    const own = this.#requests.filter((request) => request.token === `Bearer ${token}`);
    return own.filter(({ method, path }) => method === "POST" && path.endsWith(end)).length;
  }

  /** Cuts the connections of the responses in progress. */
  cut() {
    for (const outgoing of this.#open) outgoing.socket.destroy();
  }

  close() {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #forward(incoming, outgoing) {
    const { method, url: path, headers } = incoming;
    this.#requests.push({ method, path, token: headers.authorization });
    this.#open.add(outgoing);
    // The host stays that of the door, as the browser's origin does.
    const forwarded = request(this.target + path, { method, headers, agent: false });
    const breakOff = () => outgoing.destroy();
    outgoing.on("close", () => {
      this.#open.delete(outgoing);
      forwarded.destroy();
    });
    forwarded.on("error", breakOff);
    forwarded.on("response", (response) => {
      response.on("error", breakOff);
      outgoing.writeHead(response.statusCode, response.headers);
      outgoing.flushHeaders();
      response.pipe(outgoing);
    });
    incoming.pipe(forwarded);
  }
}
