// Plays the recordings of a folder to the clients. See README.md.

import { createReadStream, existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

import * as agUi from "./ag-ui.mjs";
import * as aiSdk from "./ai-sdk.mjs";

const folder = process.argv[2];
if (!folder) {
  console.error("usage: npm run check -- FOLDER");
  process.exit(2);
}

/** Returns the recordings of a protocol. */
async function* recordings(protocol) {
  const path = join(folder, `${protocol}.jsonl`);
  if (!existsSync(path)) throw new Error(`${path} does not exist: run the tests with HELIX_FRAMES first`);
  for await (const line of createInterface({ input: createReadStream(path) })) yield JSON.parse(line);
}

const problems = [];
for (const [protocol, { play }] of Object.entries({ ai_sdk: aiSdk, ag_ui: agUi })) {
  let [count, responses] = [0, 0];
  for await (const recording of recordings(protocol)) {
    count += 1;
    responses += recording.responses.length;
    for (const problem of await play(recording)) {
      problems.push(`${protocol}, HELIX_SEED=${recording.seed}: ${problem}`);
    }
    if (problems.length > 50) break;
  }
  console.log(`${protocol}: ${responses} responses of ${count} recordings`);
  if (count === 0) problems.push(`${protocol}: there are no recordings`);
}
for (const problem of problems) console.error(problem);
process.exit(problems.length === 0 ? 0 : 1);
