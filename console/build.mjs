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

const built = await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
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
});

const files = new Map(built.outputFiles.map((file) => [file.path.split("/").pop(), Buffer.from(file.contents)]));
files.set("icon.svg", await readFile(join(here, "src/icon.svg")));
files.set("licences.txt", await licences(built.metafile));
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

/** Puts the address of each file where the page names the file. */
async function page(files) {
  const text = await readFile(join(here, "src/index.html"), "utf8");
  const named = text.replace(/"\/assets\/([a-z]+)\.([a-z]+)"/g, (_, stem, ending) => {
    const digest = createHash("sha256").update(files.get(`${stem}.${ending}`)).digest("hex").slice(0, 16);
    return `"/assets/${stem}-${digest}.${ending}"`;
  });
  return Buffer.from(named);
}

/** The licences of the packages that the bundle holds parts of. */
async function licences(metafile) {
  const packages = new Set();
  for (const input of Object.keys(metafile.inputs)) {
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
