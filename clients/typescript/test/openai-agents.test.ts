import assert from "node:assert/strict";
import test from "node:test";
import {
  Agent,
  type AgentInputItem,
  MemorySession,
  OpenAIProvider,
  Runner,
  setTracingDisabled,
  SystemError,
  tool,
  UserError,
} from "@openai/agents";
import { z } from "zod";
import { Client } from "@sessiond/client";
import { SessiondSession } from "@sessiond/client/openai-agents";
import { eventually, exchanges, model, randomOf, startDaemon } from "./daemon.ts";

setTracingDisabled(true);
const daemon = await startDaemon();
const client = new Client({ url: daemon.url, token: daemon.token });

function itemOf(random: (below: number) => number, n: number): AgentInputItem {
  const text = `${n} <é> ${"long ".repeat(random(40))}`;
  const items: unknown[] = [
    { role: "user", content: text },
    {
      type: "message",
      role: "user",
      content: [
        { type: "input_text", text },
        { type: "input_image", image: "data:,x" },
      ],
    },
    { type: "message", role: "system", content: text },
    {
      id: `msg_${n}`,
      type: "message",
      role: "assistant",
      status: "completed",
      content: [
        { type: "output_text", text, providerData: { annotations: [{ $part: 0 }] } },
        { type: "refusal", refusal: text },
      ],
    },
    {
      type: "reasoning",
      id: `rs_${n}`,
      content: [{ type: "input_text", text }],
      providerData: { encrypted_content: text },
    },
    { type: "function_call", callId: `c${n}`, name: "tide", status: "completed", arguments: JSON.stringify({ text }) },
    {
      type: "function_call_result",
      callId: `c${n}`,
      name: "tide",
      status: "completed",
      output: { type: "text", text },
    },
    {
      type: "function_call_result",
      callId: `c${n}`,
      name: "tide",
      status: "completed",
      output: [{ type: "input_text", text }],
    },
    { type: "shell_call", callId: `c${n}`, action: { commands: ["ls"], maxOutputLength: n } },
    {
      type: "hosted_tool_call",
      id: `h${n}`,
      name: "web_search_call",
      status: "completed",
      providerData: { deep: [[{}], null] },
    },
    { type: "compaction", encrypted_content: text, id: `cmp_${n}` },
    { type: "of_next_year", callId: "", fields: [1.5, { $part: "x", $object: [] }], text: "\ud800 \u0000" },
    { role: "user", content: "\ud800 half, and \u0000" },
    { role: "user", content: "" },
    { type: "unknown", providerData: {} },
  ];
  return items[random(items.length)] as AgentInputItem;
}

test("thousands of operations answer as the SDK's own session does", async () => {
  const random = randomOf(11);
  const ids = ["a/b?#&é", "..", "6d8e9c1e-2f4b-4a7d-9b55-0d9f3c8a7e21", "-", " x "];
  const expected = new Map(ids.map((sessionId) => [sessionId, new MemorySession({ sessionId })]));
  let numbers = 0;
  for (let step = 0; step < 2500; step++) {
    const sessionId = ids[random(ids.length)] as string;
    const session = new SessiondSession({ client, sessionId }); // each time as another process would
    const same = expected.get(sessionId) as MemorySession;
    const choice = random(20);
    if (choice < 9) {
      const items = Array.from({ length: random(4) }, () => itemOf(random, ++numbers));
      await Promise.all([session.addItems(items), same.addItems(items)]);
    } else if (choice < 14) {
      assert.deepEqual(await session.popItem(), await same.popItem());
    } else if (choice < 15 && random(4) === 0) {
      await Promise.all([session.clearSession(), same.clearSession()]);
    } else if (choice < 18) {
      const limit = random(6) - 1;
      assert.deepEqual(await session.getItems(limit), await same.getItems(limit), `limit ${limit}`);
    } else {
      assert.deepEqual(await session.getItems(), await same.getItems());
      assert.equal(await session.getSessionId(), await same.getSessionId());
    }
  }
  const { data } = await client.call("listSessions", { query: { limit: 100 } });
  assert.equal(data?.length, ids.length);
});

test("two clients on one session keep all items, and pop each once", async () => {
  const two = [0, 1].map(() => new SessiondSession({ client, sessionId: "made at once" }));
  const texts = Array.from({ length: 60 }, (_, n) => `${n}`);
  await Promise.all(texts.map((content, n) => two[n % 2]?.addItems([{ role: "user", content }])));
  assert.equal(await two[0]?.sessiondId(), await two[1]?.sessiondId());
  const popped = await Promise.all(texts.map((_, n) => two[n % 2]?.popItem()));
  assert.deepEqual(popped.map((item) => (item as { content: string }).content).toSorted(), texts.toSorted());
  assert.equal(await two[0]?.popItem(), undefined);
});

test("what others append is read, and an item of 20 MB", async () => {
  const session = new SessiondSession({ client });
  const id = await session.sessiondId();
  assert.equal(await session.getSessionId(), id);
  const said = { role: "assistant", content: "low" };
  await client.call("appendMessages", { path: { id }, body: { messages: [{ role: "user", content: "high?" }, said] } });
  const large = { role: "user", content: "x".repeat(20_000_000) } as const;
  await session.addItems([large]);
  const items = await new SessiondSession({ client, sessionId: id }).getItems();
  assert.deepEqual(items, [
    { type: "message", role: "user", content: "high?" },
    { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: "low" }] },
    large,
  ]);
});

test("errors are of the SDK's classes", async () => {
  const away = new SessiondSession({ client: new Client({ url: "http://127.0.0.1:9", retries: 1 }) });
  const revoked = new SessiondSession({ client: new Client({ url: daemon.url, token: "revoked" }), sessionId: "a" });
  const none = new SessiondSession({ client, sessionId: "20010101_001" });
  for (const [session, kind] of [
    [away, SystemError],
    [revoked, UserError],
    [none, UserError],
  ] as const) {
    for (const call of [
      () => session.getItems(),
      () => session.addItems([{ role: "user", content: "x" }]),
      () => session.popItem(),
      () => session.clearSession(),
    ]) {
      await assert.rejects(call, (e) => e instanceof kind && (e as Error).cause instanceof Error);
    }
  }
});

test("a daemon that is killed below a session loses and doubles nothing", async () => {
  const killed = await startDaemon();
  const session = new SessiondSession({ client: new Client({ url: killed.url, token: killed.token, retries: 12 }) });
  let appending = true;
  const sent: AgentInputItem[] = [];
  const append = (async () => {
    for (let n = 0; appending; n++) {
      const item: AgentInputItem = { role: "user", content: `${n}` };
      await session.addItems([item]);
      sent.push(item);
    }
  })();
  for (let kills = 0; kills < 3; kills++) {
    const before = sent.length;
    await eventually("items are appended", async () => sent.length > before + 20);
    await killed.stop("SIGKILL");
    await killed.start();
  }
  appending = false;
  await append;
  assert.deepEqual(await session.getItems(), sent);
});

test("an agent runs on it, and another process continues", async () => {
  const before = (await exchanges()).length;
  const shell = tool({
    name: "shell",
    description: "Run a shell command",
    parameters: z.object({ command: z.string() }),
    execute: ({ command }) => `ran ${command}`,
  });
  const agent = new Agent({ name: "Tides", instructions: "Be brief.", model: "gpt-5", tools: [shell] });
  const runner = new Runner({
    modelProvider: new OpenAIProvider({ apiKey: "fake", baseURL: `${model}/v1`, useResponses: true }),
    tracingDisabled: true,
  });
  const sessionId = "tides/of today";
  await runner.run(agent, "How high is the water? (shell: printf low)", {
    session: new SessiondSession({ client, sessionId }),
  });
  const session = new SessiondSession({ client, sessionId });
  const result = await runner.run(agent, "And the quagga?", { session });
  assert.ok(result.finalOutput);
  const items = await session.getItems();
  assert.deepEqual(
    items.map((item) => ("role" in item ? item.role : item.type)),
    ["user", "function_call", "function_call_result", "assistant", "user", "assistant"],
  );
  const bodies = (await exchanges()).slice(before).map((x) => x.body);
  assert.match(bodies.at(-1) ?? "", /How high is the water.*ran printf low.*quagga/s);
  const found = await client.call("searchMessages", { query: { q: "quagga" } });
  assert.ok(found.hits?.length);
  const id = await session.sessiondId();
  for (const dialect of ["openai.chat", "openai.responses", "anthropic", "gemini"] as const) {
    const context = await client.call("readContext", { path: { id }, query: { dialect } });
    assert.match(JSON.stringify(context.request), /ran printf low/, dialect);
  }
});
