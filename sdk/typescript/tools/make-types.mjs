// Makes src/openapi.ts from the OpenAPI document of the server: `node tools/make-types.mjs DOCUMENT OUTPUT`.
//
// DOCUMENT is a file, or the address of a server's /openapi.json. Only the shapes are taken: the client has methods of its own for the
// paths.

import { readFile, writeFile } from "node:fs/promises";

import openapiTS, { astToString } from "openapi-typescript";

const HEADER = `/**
 * The shapes of the OpenAPI document. This file is made by tools/make-types.mjs and compared with the document by
 * tests/typescript/run.sh; change the server's types instead.
 */

`;

const [document, output] = process.argv.slice(2);
if (document === undefined || output === undefined) {
  console.error("usage: node tools/make-types.mjs DOCUMENT OUTPUT");
  process.exit(2);
}
const text = /^https?:/.test(document) ? await (await fetch(document)).text() : await readFile(document, "utf8");
const { openapi, info, components } = JSON.parse(text);
const nodes = await openapiTS({ openapi, info, paths: {}, components: { schemas: components.schemas } }, { arrayLength: true });
await writeFile(output, HEADER + astToString(nodes));
