// What README.md and docs/frameworks.md tell people to copy is copied here, compiled and run.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test, { after } from "node:test";
import { Client } from "@sessiond/client";
import { eventually, model, startDaemon } from "./daemon.ts";

const daemon = await startDaemon();
const client = new Client({ url: daemon.url, token: daemon.token });
const docs = process.env.DOCS;
if (!docs) throw new Error("DOCS is not set: run ./scripts/clients");

// What a block leaves to its reader: a prompt and a model of the AI SDK.
const given = `
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
const message = { id: "u1", role: "user" as const, parts: [{ type: "text" as const, text: "How high is the water?" }] };
const usage = {
  inputTokens: { total: 5, noCache: 5, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 3, text: 3, reasoning: 0 },
};
const model = new MockLanguageModelV4({
  doStream: async () => ({
    stream: simulateReadableStream({
      chunks: [
        { type: "text-start", id: "t" },
        { type: "text-delta", id: "t", delta: "2 m" },
        { type: "text-end", id: "t" },
        { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage },
      ] as never[],
    }),
  }),
});
`;

const folder = join(import.meta.dirname, "blocks");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
after(() => rmSync(folder, { recursive: true, force: true }));
writeFileSync(join(folder, "tsconfig.json"), '{"extends": "../tsconfig.json"}');
const blocks = [join(import.meta.dirname, "..", "README.md"), join(docs, "frameworks.md")].flatMap((page) =>
  [...readFileSync(page, "utf8").matchAll(/^```ts\n(.*?)^```$/gms)].map((found, n) => {
    const text = found[1]?.replace("http://127.0.0.1:7433", daemon.url) ?? "";
    const imports = text.match(/^import .*\n/gm)?.join("") ?? "";
    const rest = text.replaceAll(/^import .*\n/gm, "");
    const isHandler = /^return /m.test(rest);
    const name = `${page.endsWith("README.md") ? "readme" : "frameworks"}-${n}.ts`;
    writeFileSync(
      join(folder, name),
      imports + (isHandler ? `${given}const answer = await (async () => {\n${rest}})();\nawait answer.text();\n` : rest),
    );
    return name;
  }),
);

test("each block compiles", { timeout: 120_000 }, () => {
  assert.equal(blocks.length, 5);
  execFileSync(join(import.meta.dirname, "..", "node_modules", ".bin", "tsc"), ["-p", folder], { stdio: "inherit" });
});

for (const block of blocks) {
  test(`${block} keeps the prompt`, { timeout: 120_000 }, async () => {
    const kept = async () => {
      const found = await client.call("listSessions", { query: { limit: 50 } });
      return found.data.filter((s) => s.message_count > 0).length;
    };
    const before = await kept();
    const child = spawn(process.execPath, [join(folder, block)], {
      cwd: daemon.home,
      env: {
        ...daemon.env,
        SESSIOND_LISTEN: daemon.url.replace("http://", ""),
        SESSIOND_SOCKET: "off",
        SESSIOND_TOKEN: daemon.token,
        OPENAI_API_KEY: "fake",
        OPENAI_BASE_URL: `${model}/v1`,
        OPENAI_AGENTS_DISABLE_TRACING: "1",
        ANTHROPIC_BASE_URL: model,
        ANTHROPIC_API_KEY: "fake",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        DISABLE_AUTOUPDATER: "1",
        IS_SANDBOX: "1",
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
    await eventually(`${block} keeps what is said`, async () => {
      assert.ok(!child.exitCode, said);
      return (await kept()) > before;
    });
    child.kill(); // the first block listens until it is stopped
    assert.match(JSON.stringify(await client.call("searchMessages", { query: { q: "water" } })), /How high is the \S*water/);
  });
}
