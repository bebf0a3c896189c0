// The page of `examples/web-chat` in a headless Chromium.

import assert from "node:assert/strict";

import { chromium } from "playwright-core";

import { required } from "./clerk.mjs";
import { DEADLINE } from "./gate.mjs";

export class Browser {
  /** Errors of scripts in the pages. */
  errors = [];

  static async launch(world) {
    const browser = new Browser();
    browser.world = world;
    browser.chromium = await chromium.launch({
      executablePath: required("HELIX_CHROMIUM"),
      // The sandbox needs rights that a container does not have. The pages are our own.
      args: ["--no-sandbox"],
    });
    return browser;
  }

  /** Opens the page of a new talk of a new user, and closes those of the test before. */
  async start(...replies) {
    await this.context?.close();
    const [user, talk] = [this.world.user(), this.world.talk(...replies)];
    this.context = await this.chromium.newContext();
    this.context.setDefaultTimeout(DEADLINE);
    await this.context.addInitScript((token) => sessionStorage.setItem("token", token), user);
    return this.#open({ user, talk });
  }

  /** Opens the page of a tab in a second one. */
  openBeside(tab) {
    return this.#open(tab);
  }

  async close() {
    await this.chromium.close();
    assert.deepEqual(this.errors, []);
  }

  async #open({ user, talk }) {
    const page = await this.context.newPage();
    page.on("pageerror", (error) => this.errors.push(error.stack));
    await page.goto(`${this.world.door.url}/#${talk}`);
    const tab = new Tab({ world: this.world, page, user, talk });
    await tab.shown.waitFor();
    return tab;
  }
}

/** A tab with the page of a user's talk. */
export class Tab {
  constructor({ world, page, user, talk }) {
    Object.assign(this, { world, page, user, talk });
  }

  /** The conversation. */
  get shown() {
    return this.page.locator("[data-status]");
  }

  /** Returns the parts of a kind. */
  parts(kind) {
    return this.page.locator(`[data-part="${kind}"]`);
  }

  async say(text) {
    await this.page.getByLabel("Message").fill(`${this.talk}: ${text}`);
    await this.click("Send");
  }

  /** Clicks a button, once the page has it. */
  async click(name) {
    await this.page.getByRole("button", { name, exact: true }).last().click();
  }

  /** Waits until the page shows a text. */
  async shows(text) {
    await this.page.getByText(text).first().waitFor();
  }

  /** Waits until no request is in progress and none follows by itself. */
  async settles(status = "ready") {
    await this.page.locator(`[data-status="${status}"]`).waitFor();
    // `useChat` decides about a request of its own when a response ends.
    await this.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
    await this.page.locator(`[data-status="${status}"]`).waitFor();
  }

  /** Waits until the turn has ended at the server. */
  async ends() {
    const url = `${this.world.door.url}/api/chat/${this.talk}/stream`;
    const headers = { authorization: `Bearer ${this.user}` };
    for (;;) {
      const response = await fetch(url, { headers });
      if (response.status === 204) return;
      // The response ends with the turn.
      await response.text();
    }
  }

  /** Reloads the page. */
  async reload() {
    await this.page.reload();
    await this.shown.waitFor();
  }

  /** Returns the texts of the agent, without the empty ones. */
  texts() {
    return this.page.locator('[data-role="assistant"] [data-part="text"]').allInnerTexts();
  }

  /** Asserts the numbers of requests to the model and to the chat route, after the page has settled. */
  async assertRequests({ calls, posts, status }) {
    await this.settles(status);
    this.world.assertCalls(this.talk, calls);
    this.world.assertPosts(this.user, "/api/chat", posts);
  }
}
