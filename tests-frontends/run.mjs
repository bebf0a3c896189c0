// Records responses, installs the packages and plays the recordings to them. See README.md.

import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const workspace = dirname(here);
const folder = join(process.env.CARGO_TARGET_DIR ?? join(workspace, "target"), "frontends");
const seeds = process.argv[2] ?? "200";
if (!/^[0-9]+$/.test(seeds)) {
  console.error("usage: node run.mjs [NUMBER OF STORIES]");
  process.exit(2);
}

/** Runs a program. Ends this one if it fails. */
function run(program, args, { cwd, env }) {
  console.log(`$ ${[program, ...args].join(" ")}`);
  const { status, error } = spawnSync(program, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: "inherit",
  });
  if (error) console.error(`${program} cannot be run: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const test = ["test", "--package", "helix-agents-protocols", "--test", "it"];
run("cargo", test, { cwd: workspace, env: { HELIX_FRAMES: folder, HELIX_SEEDS: seeds } });
run("npm", ["ci", "--no-audit", "--no-fund"], { cwd: here });
run(process.execPath, ["check.mjs", folder], { cwd: here });
