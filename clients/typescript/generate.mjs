// Writes what the client knows of the API, from the OpenAPI file: the types, and which route each operation has.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const source = new URL(process.env.OPENAPI ?? "../../docs/openapi.json", import.meta.url);
const api = JSON.parse(await readFile(source, "utf8"));
const mark = "// Generated from docs/openapi.json by generate.mjs. Do not edit.\n";

const types = astToString(await openapiTS(withUnions(api)));
await writeFile(new URL("src/openapi.ts", import.meta.url), mark + types);

/** x-native is the schema of a message without a dialect. TypeScript has the union, which other languages lack. */
function withUnions(node) {
  if (typeof node !== "object" || node === null) return node;
  if (Array.isArray(node)) return node.map(withUnions);
  const { "x-native": native, ...schema } = node;
  if (native) return { description: schema.description, anyOf: [native, schema] };
  return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, withUnions(value)]));
}

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
