// Bundles each test for Node and runs them: `npm test`.
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

const here = import.meta.dirname;
const out = await mkdtemp(join(tmpdir(), "bough-console-"));
const tests = (await readdir(here)).filter((name) => /\.test\.tsx?$/.test(name));
await build({
  absWorkingDir: here,
  entryPoints: tests,
  outdir: out,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".css": "empty" },
});
const files = tests.map((name) => join(out, name.replace(/\.tsx?$/, ".mjs")));
const ran = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" });
await rm(out, { recursive: true });
process.exit(ran.status ?? 1);
