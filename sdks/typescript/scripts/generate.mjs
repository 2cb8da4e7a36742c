// Writes src/generated: the types of the REST API, from docs/reference/openapi.json, and the source of the heartbeater
// as a string. `--check` writes nothing and fails if something is out of date.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const root = new URL("../", import.meta.url);
const at = (path) => new URL(path, root);
const read = (path) => readFileSync(at(path), "utf8");
const banner = (from) => `// Made from ${from} by scripts/generate.mjs. Do not edit.\n\n`;

async function apiTypes() {
  const document = JSON.parse(read("../../docs/reference/openapi.json"));
  return banner("docs/reference/openapi.json") + astToString(await openapiTS(document, { emptyObjectsUnknown: true }));
}

/** The heartbeater runs in a thread of its own. Its source travels as a string, so that no bundler can lose a file. */
function heartbeaterSource() {
  const { outputText } = ts.transpileModule(read("src/worker/heartbeat-thread.ts"), {
    compilerOptions: {
      module: ts.ModuleKind.CommonJS,
      target: ts.ScriptTarget.ES2022,
      esModuleInterop: true,
      removeComments: true,
    },
  });
  const source = `${outputText}\nexports.startInThread();\n`;
  return `${banner("src/worker/heartbeat-thread.ts")}export const HEARTBEATER_SOURCE =\n  ${JSON.stringify(source)};\n`;
}

const wanted = { "src/generated/api.ts": await apiTypes(), "src/generated/heartbeater-source.ts": heartbeaterSource() };
if (process.argv.includes("--check")) {
  const stale = Object.entries(wanted).filter(([path, text]) => {
    try {
      return read(path) !== text;
    } catch {
      return true;
    }
  });
  for (const [path] of stale) console.error(`${path} is out of date: run \`npm run generate\``);
  process.exit(stale.length > 0 ? 1 : 0);
}
mkdirSync(at("src/generated"), { recursive: true });
for (const [path, text] of Object.entries(wanted)) writeFileSync(at(path), text);
