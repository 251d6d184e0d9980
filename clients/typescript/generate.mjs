// Writes what the client knows of the API, from the OpenAPI file: the types, and which route each operation has.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const source = new URL(process.env.OPENAPI ?? "../../docs/openapi.json", import.meta.url);
const api = JSON.parse(await readFile(source, "utf8"));
const mark = "// Generated from docs/openapi.json by generate.mjs. Do not edit.\n";

const types = astToString(await openapiTS(api));
await writeFile(new URL("src/openapi.ts", import.meta.url), mark + types);

const routes = [];
for (const [path, item] of Object.entries(api.paths)) {
  for (const [method, operation] of Object.entries(item)) {
    if (!operation?.operationId) continue;
    const keyed = (operation.parameters ?? []).some((p) => p.name === "Idempotency-Key");
    const route = { method: method.toUpperCase(), path, keyed };
    routes.push(`  ${operation.operationId}: ${JSON.stringify(route)},`);
  }
}
await writeFile(
  new URL("src/routes.ts", import.meta.url),
  `${mark}
/** The route of each operation. keyed: it accepts an Idempotency-Key. */
export const routes = {
${routes.sort().join("\n")}
} as const;
`,
);
