#!/usr/bin/env node
/** The command `bough` of the npm package: runs the program for this platform, and ends as it ends. */

import { spawn } from "node:child_process";
import { constants } from "node:os";

import { installedProgram } from "./program.js";

const program = installedProgram();
if (program === undefined) {
  const platform = `${process.platform}-${process.arch}`;
  console.error(`bough: the package boughdb has no program for ${platform} here`);
  console.error(`hint: install @boughdb/${platform} if it exists, without --omit=optional, or set BOUGH to where the program is`);
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// Ctrl-C reaches the program by itself; what is sent to this process alone is passed on.
for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"] as const) process.on(signal, () => child.kill(signal));
child.once("error", (error) => {
  console.error(`bough: ${program} cannot be run: ${error.message}`);
  process.exit(1);
});
child.once("exit", (code, signal) => process.exit(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
