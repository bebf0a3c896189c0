// Processes of the example `clerk`, and calls of its tools.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

import { within } from "./gate.mjs";
import { call } from "./model.mjs";

/** A call that needs an approval. */
export const payment = call("pay", { to: "Bob", cents: 900 });

/** A call that the client answers. */
export const question = call("ask_colour", { question: "Which colour?" });

/** The lease of the servers in seconds: the time until a run of a killed server is taken over. */
const LEASE = 2;

export class Clerk {
  /** Starts a server on a free port. */
  static async start({ model, store, tokens, folder, runtime }) {
    const program = required("HELIX_CLERK");
    const options = { listen: "127.0.0.1:0", store, tokens, lease: LEASE, ...runtime };
    const page = process.env.HELIX_WEB_CHAT;
    const args = Object.entries(page ? { ...options, page } : options);
    const clerk = new Clerk();
    clerk.process = spawn(program, args.flatMap(([name, value]) => [`--${name}`, String(value)]), {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        OPENAI_BASE_URL: model,
        OPENAI_API_KEY: "scripted",
        CLERK_DATABASE: process.env.HELIX_TEST_POSTGRES_URL ?? "",
        CLERK_TEMPORAL: process.env.HELIX_TEST_TEMPORAL_URL ?? "",
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    clerk.url = await within(clerk.#address(), "clerk did not start");
    return clerk;
  }

  /** Kills the server without notice. */
  kill() {
    return this.#end("SIGKILL");
  }

  /** Shuts the server down. */
  stop() {
    return this.#end("SIGINT");
  }

  async #address() {
    for await (const line of createInterface({ input: this.process.stdout })) {
      const [, url] = line.match(/^listening on (.*)$/) ?? [];
      if (url) return url;
    }
    throw new Error("clerk ended; see its messages above");
  }

  async #end(signal) {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, "exit");
    this.process.kill(signal);
    await within(ended, `clerk did not end after ${signal}`);
  }
}

export function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; run \`cargo xtask frontends\``);
  return value;
}
