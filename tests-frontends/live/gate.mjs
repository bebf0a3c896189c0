// Points at which a test holds another program.

/** Holds those that pass it until the test opens it. */
export class Gate {
  #reached = signal();
  #opened = signal();

  /** Resolves once a program has reached the gate. */
  get reached() {
    return within(this.#reached.promise, "the gate was not reached");
  }

  open() {
    this.#opened.resolve();
  }

  /** Waits at the gate. */
  async pass() {
    this.#reached.resolve();
    await this.#opened.promise;
  }
}

/** Returns a promise with the function that resolves it. */
function signal() {
  let resolve;
  const promise = new Promise((give) => {
    resolve = give;
  });
  return { promise, resolve };
}

/** The time limit of each operation, in milliseconds. */
export const DEADLINE = 60_000;

/** Returns a promise that fails with the message after the time limit. */
export function within(promise, message) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(message)), DEADLINE);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
