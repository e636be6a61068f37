// Builds the page into the folder that is named: `node build.mjs dist`.
//
// File names stay the same, so that a change is readable in the history; the server adds the digest of each file to its
// address, and index.html names those addresses.
import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

/// The whole page, compressed, may not be larger.
const COMPRESSED_BYTES_MAX = 300_000;

const here = import.meta.dirname;
const out = process.argv[2];
if (out === undefined) {
  throw new Error("name the folder to build into: node build.mjs dist");
}

const options = {
  absWorkingDir: here,
  outdir: "out",
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  format: "esm",
  target: ["es2023", "chrome123", "firefox128", "safari17.5"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
};

const boot = await build({ ...options, entryPoints: { boot: "src/boot.ts" }, format: "iife" });
const program = await build({ ...options, entryPoints: { app: "src/main.tsx" }, splitting: true, chunkNames: "[name]-[hash]" });
const files = new Map([...named(program.outputFiles), ...named(boot.outputFiles)]);
files.set("icon.svg", await readFile(join(here, "src/icon.svg")));
files.set("licences.txt", await licences([...Object.keys(program.metafile.inputs), ...Object.keys(boot.metafile.inputs)]));
files.set("index.html", await page(files));

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
let total = 0;
for (const [name, bytes] of files) {
  const small = gzipSync(bytes, { level: 9 });
  total += name === "licences.txt" ? 0 : small.length;
  await writeFile(join(out, name), bytes);
  if (/\.(js|css)$/.test(name)) {
    await writeFile(join(out, `${name}.gz`), small);
  }
}
console.log(`${total} bytes compressed`);
if (total > COMPRESSED_BYTES_MAX) {
  throw new Error(`the page may take ${COMPRESSED_BYTES_MAX} bytes at most`);
}

/**
 * The files of a build by their names. A part of the program is named without the hash that the bundler gives it, and names
 * the parts that it loads by their addresses.
 */
function named(outputs) {
  const contents = new Map(outputs.map((file) => [file.path.split("/").pop(), file.text]));
  const names = new Map();
  for (const made of contents.keys()) {
    names.set(made, made.replace(/-[0-9A-Z]{8}\./, ".").replace(/^chunk\./, "core."));
  }
  if (new Set(names.values()).size < names.size) {
    throw new Error(`two parts of the program have one name: ${[...names.keys()].join(", ")}`);
  }
  const done = new Map();
  const finish = (made) => {
    const name = names.get(made);
    if (!done.has(name)) {
      const text = contents.get(made).replace(/"\.\/([\w-]+\.js)"/g, (whole, other) => (contents.has(other) ? `"./${addressOf(names.get(other), finish(other))}"` : whole));
      done.set(name, Buffer.from(text));
    }
    return done.get(name);
  };
  [...contents.keys()].forEach(finish);
  return done;
}

/** The last part of the address of a file, which holds its digest. */
function addressOf(name, bytes) {
  const digest = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  return name.replace(".", `-${digest}.`);
}

/** Puts what is seen first into the page, and the address of each file where the page names the file. */
async function page(files) {
  const text = await readFile(join(here, "src/index.html"), "utf8");
  const whole = text.replace("<!-- first paint -->", await firstPaint());
  const addressed = whole.replace(/"\/assets\/([a-z0-9_]+\.[a-z]+)"/g, (_, name) => `"/assets/${addressOf(name, files.get(name))}"`);
  return Buffer.from(addressed);
}

/** The frame of the page, as HTML. */
async function firstPaint() {
  const { outputFiles } = await build({ ...options, entryPoints: ["src/first_paint.tsx"], platform: "node", target: "node20", metafile: false });
  const { html } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
  return html;
}

/** The licences of the packages that the bundle holds parts of. */
async function licences(inputs) {
  const packages = new Set();
  for (const input of inputs) {
    const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (found) {
      packages.add(found[1]);
    }
  }
  const parts = [];
  for (const name of [...packages].sort()) {
    const folder = join(here, "node_modules", name);
    const about = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    parts.push(`${name} ${about.version} (${about.license})\n\n${(await licenceText(folder)).trim()}\n`);
  }
  return Buffer.from(parts.join(`\n${"-".repeat(80)}\n\n`));
}

async function licenceText(folder) {
  for (const name of ["LICENSE", "LICENSE.md", "license", "LICENCE"]) {
    const text = await readFile(join(folder, name), "utf8").catch(() => undefined);
    if (text !== undefined) {
      return text;
    }
  }
  throw new Error(`${folder} holds no licence text`);
}
