// Everything that a test needs: the model, a server behind a door, and users.

import { randomBytes, createHash, randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";

import { Clerk, required } from "./clerk.mjs";
import { Door } from "./door.mjs";
import { Model } from "./model.mjs";

/** The number of users. Each test has its own, because the server limits the starts of each. */
const USERS = 100;

export class World {
  #users = [];

  static async open() {
    const world = new World();
    world.folder = await mkdtemp(join(tmpdir(), "helix-frontends-"));
    world.model = await Model.open();
    world.store = storeUrl(world.folder);
    world.runtime = runtimeOptions();
    await world.#createUsers();
    world.clerk = await world.startClerk();
    world.door = await Door.open(world.clerk.url);
    return world;
  }

  /** Starts another server on the store. */
  startClerk() {
    const { model, store, folder, runtime } = this;
    const tokens = join(folder, "tokens.toml");
    return Clerk.start({ model: model.url, store, tokens, folder, runtime });
  }

  /** Returns the token of a user that no other test has. */
  user() {
    return this.#users.pop();
  }

  /** Returns the name of a talk, with the replies of the model. */
  talk(...replies) {
    const talk = `talk-${randomUUID().slice(0, 8)}`;
    this.model.script(talk, ...replies);
    return talk;
  }

  /** Asserts the number of requests to the model in a talk. */
  assertCalls(talk, calls) {
    assert.equal(this.model.requests(talk).length, calls, `requests to the model in ${talk}`);
  }

  /** Asserts the number of a user's POST requests to a route. */
  assertPosts(user, route, posts) {
    assert.equal(this.door.posts(user, route), posts, `POST requests to ${route}`);
  }

  async close() {
    await this.clerk.stop();
    this.door.close();
    this.model.close();
    await rm(this.folder, { recursive: true });
    assert.deepEqual(this.model.unexpected, [], "requests that no script answers");
  }

  async #createUsers() {
    this.#users = Array.from({ length: USERS }, () => randomBytes(16).toString("hex"));
    const entries = this.#users.map((token, index) => {
      const digest = createHash("sha256").update(token).digest("hex");
      return `[[token]]\nname = "user-${index}"\nrole = "user"\nsha256 = "${digest}"\n`;
    });
    await writeFile(join(this.folder, "tokens.toml"), entries.join(""));
  }
}

/** Whether the sessions outlive the process of the server. */
export const isDurable = process.env.HELIX_STORE !== "memory";

/** Returns the options of clerk for the runtime in `HELIX_RUNTIME`. Only servers of one world share their work. */
function runtimeOptions() {
  const runtime = process.env.HELIX_RUNTIME ?? "local";
  return runtime === "local" ? {} : { runtime, application: `frontends_${randomBytes(6).toString("hex")}` };
}

/** Returns the URL of an empty store of the kind in `HELIX_STORE`. */
function storeUrl(folder) {
  const name = `frontends_${randomBytes(6).toString("hex")}`;
  const kind = process.env.HELIX_STORE ?? "sqlite";
  switch (kind) {
    case "memory":
      return "memory:";
    case "sqlite":
      return `sqlite:${join(folder, "clerk.db")}`;
    case "postgres":
      return withParameter(required("HELIX_TEST_POSTGRES_URL"), "schema", name);
    case "redis":
      return withParameter(required("HELIX_TEST_REDIS_URL"), "prefix", name);
    default:
      throw new Error(`unknown store \`${kind}\``);
  }
}

function withParameter(url, name, value) {
  return `${url}${url.includes("?") ? "&" : "?"}${name}=${value}`;
}
