/** The package from outside: what it exports, what the pages show, and whether it survives a bundler. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import ts from "typescript";
import { FakeServer } from "./fake-server.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const docs = join(root, "../../docs");

/** Every exported name of an entry point, types included. */
function exportsOf(entry: string): string[] {
  const file = join(root, "dist", entry);
  const program = ts.createProgram([file], {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
  });
  const source = program.getSourceFile(file);
  const symbol = source && program.getTypeChecker().getSymbolAtLocation(source);
  assert.ok(symbol);
  return program
    .getTypeChecker()
    .getExportsOfModule(symbol)
    .map(({ name }) => name);
}

test("the reference has one line for every exported name, and no other", () => {
  const page = readFileSync(join(docs, "reference/typescript.md"), "utf8");
  const sections: [heading: string, entry: string][] = [
    ["## tickwheel\n", "index.d.ts"],
    ["## tickwheel/worker\n", "worker/index.d.ts"],
    ["## tickwheel/testing\n", "testing/index.d.ts"],
  ];
  for (const [heading, entry] of sections) {
    const begin = page.indexOf(heading);
    assert.ok(begin >= 0, heading);
    const section = page.slice(begin + heading.length).split(/^## /m)[0] ?? "";
    const named = [...section.matchAll(/^\| `([A-Za-z]+)/gm)].map((match) => match[1] as string);
    assert.deepEqual([...named].sort(), exportsOf(entry).sort(), `exports of ${entry}`);
  }
});

test("the code on the pages is code of the example", () => {
  const example = join(root, "examples/mail");
  const files = readdirSync(example).filter((name) => name.endsWith(".ts"));
  const sources = files.map((name) => readFileSync(join(example, name), "utf8"));
  let blocks = 0;
  for (const page of [join(docs, "guide/workers-typescript.md"), join(root, "README.md")]) {
    for (const [, code] of readFileSync(page, "utf8").matchAll(/^```ts\n([\s\S]*?)^```$/gm)) {
      blocks += 1;
      const found = sources.some((source) => source.includes((code as string).trim()));
      assert.ok(found, `a block of ${page} is not in examples/mail:\n${code}`);
    }
  }
  assert.ok(blocks >= 6);
});

test("the client needs no module of Node", async () => {
  const bundled = await build({
    stdin: { contents: 'export * from "./dist/index.js";', resolveDir: root },
    bundle: true,
    format: "esm",
    platform: "browser",
    write: false,
    logLevel: "silent",
  });
  assert.equal(bundled.errors.length, 0);
  assert.ok(!/from\s*"node:|require\("node:/.test(bundled.outputFiles[0]?.text ?? ""));
});

test("a worker that was bundled and minified keeps its heartbeats", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "tickwheel-bundle-"));
  const fake = await FakeServer.start();
  fake.heartbeatInterval = "100ms";
  t.after(async () => {
    rmSync(directory, { recursive: true });
    await fake.stop();
  });
  const contents = `
    import { jobType } from "./dist/index.js";
    import { Worker } from "./dist/worker/index.js";
    const worker = new Worker({ handleSignals: false });
    worker.handle(jobType("echo"), (payload) => { setTimeout(() => worker.stop(), 500); return payload; });
    await worker.run();`;
  const outfile = join(directory, "worker.mjs");
  const options = { bundle: true, minify: true, keepNames: true, format: "esm", platform: "node" } as const;
  await build({ stdin: { contents, resolveDir: root }, outfile, ...options });
  const job = fake.submit("echo", "bundled");
  const env = { ...process.env, TICKWHEEL_SERVER: fake.url };
  const { stderr } = await promisify(execFile)(process.execPath, [outfile], { env, cwd: directory });
  assert.equal((await fake.report(job)).result, "bundled");
  assert.ok(fake.calls("/heartbeat").length >= 3);
  assert.doesNotMatch(stderr, /main loop/);
});

test("the package holds what it exports, and nothing of tests", async () => {
  const { stdout } = await promisify(execFile)("npm", ["pack", "--dry-run", "--json"], { cwd: root });
  const [packed] = JSON.parse(stdout) as { files: { path: string }[] }[];
  const paths = packed?.files.map(({ path }) => path) ?? [];
  assert.ok(paths.includes("dist/index.js") && paths.includes("dist/testing/index.d.ts"));
  assert.deepEqual(
    paths.filter((path) => !/^(dist\/|README\.md$|package\.json$|LICENSE$)/.test(path)),
    [],
  );
});

test("the lock file names no registry", () => {
  assert.doesNotMatch(readFileSync(join(root, "package-lock.json"), "utf8"), /"resolved"|https?:\/\/registry/);
});
