/** Where the program `bough` is: npm installs it as a package of its own for each platform. */

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** What `BOUGH` of the environment names, or what came with this package; `undefined` where neither is there. */
export function installedProgram(): string | undefined {
  return process.env["BOUGH"] || packagedProgram();
}

function packagedProgram(): string | undefined {
  const { platform, arch } = process;
  const name = platform === "win32" ? "bough.exe" : "bough";
  // npm leaves out the packages whose platform or C library is not the machine's.
  for (const libc of platform === "linux" ? ["", "-musl"] : [""]) {
    try {
      const manifest = createRequire(import.meta.url).resolve(`@boughdb/${platform}-${arch}${libc}/package.json`);
      const program = join(dirname(manifest), name);
      if (existsSync(program)) return program;
    } catch {
      // The package is not installed.
    }
  }
  return undefined;
}
