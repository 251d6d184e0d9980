import assert from "node:assert/strict";
import test from "node:test";
import {
  AISDKError,
  convertToModelMessages,
  readUIMessageStream,
  stepCountIs,
  streamText,
  tool,
  type UIMessage,
  validateUIMessages,
} from "ai";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { z } from "zod";
import { Client, DaemonAway } from "@sessiond/client";
import { ChatStore } from "@sessiond/client/ai";
import { eventually, randomOf, startDaemon } from "./daemon.ts";

const daemon = await startDaemon();
const client = new Client({ url: daemon.url, token: daemon.token });

function messageOf(random: (below: number) => number, n: number): UIMessage {
  const text = `${n} <é> ${"long ".repeat(random(40))}`;
  const call = { toolCallId: `c${n}`, input: { text, deep: [null, 1.5] } };
  const parts: UIMessage["parts"] = [
    { type: "text", text, state: "done" },
    { type: "text", text, providerMetadata: { p: { item: { $part: 0 } } } },
    { type: "text", text: "" },
    { type: "text", text: "\ud800 \u0000" },
    { type: "reasoning", text, providerMetadata: { openai: { encrypted: text } } },
    { type: "step-start" },
    { type: "tool-tide", state: "output-available", ...call, output: { rows: [text] } },
    { type: "tool-tide", state: "output-error", ...call, errorText: text },
    { type: "tool-tide", state: "input-available", ...call },
    { type: "tool-tide", state: "input-streaming", toolCallId: `c${n}`, input: undefined },
    { type: "dynamic-tool", toolName: "of mcp", state: "output-available", ...call, output: text },
    { type: "file", mediaType: "image/png", filename: "a/b.png", url: "data:image/png;base64,iVBORw0KGgo=" },
    { type: "source-url", sourceId: "s", url: "https://example.com/", title: text },
    { type: "data-chart", id: "d", data: { of: [text, { $object: {} }] } },
  ];
  const role = (["user", "assistant", "system"] as const)[random(3)] as UIMessage["role"];
  const fits = parts.filter(
    (part) => role === "assistant" || part.type === "text" || part.type === "file" || /^data/.test(part.type),
  );
  const picked = Array.from({ length: 1 + random(5) }, () => fits[random(fits.length)] as (typeof parts)[number]);
  return { id: `m${n}`, role, parts: picked, ...(random(2) ? { metadata: { at: n, text } } : {}) };
}

test("thousands of loads and saves give back what was saved", async () => {
  const random = randomOf(5);
  const ids = ["a/b?#&é", "..", "6d8e9c1e-2f4b-4a7d-9b55-0d9f3c8a7e21", " x "];
  const expected = new Map<string, UIMessage[]>(ids.map((id) => [id, []]));
  let numbers = 0;
  for (let step = 0; step < 1200; step++) {
    const id = ids[random(ids.length)] as string;
    const chats = new ChatStore({ client }); // each time as another process would
    const now = await chats.load(id);
    assert.deepEqual(now, expected.get(id));
    const choice = random(10);
    let next = now;
    if (choice < 6) next = [...now, ...Array.from({ length: 1 + random(2) }, () => messageOf(random, ++numbers))];
    else if (choice < 8)
      next = now.slice(0, random(now.length + 1)); // taken back
    else if (choice < 9 && now.length > 0) {
      const at = random(now.length); // an edit, and what follows is made anew
      next = [...now.slice(0, at), { ...messageOf(random, ++numbers), id: now[at]?.id ?? "" }];
    }
    const saved = JSON.parse(JSON.stringify(next)) as UIMessage[];
    await chats.save(id, next);
    expected.set(id, saved);
  }
  const { data } = await client.call("listSessions", { query: { limit: 100 } });
  assert.equal(data?.length, ids.length);
});

test("every kind of part that the SDK knows comes back, and one that it does not know yet", async () => {
  const call = { toolCallId: "c", input: { place: "pier" } };
  const approval = { id: "1", requestReason: "it costs" };
  const states = [
    { state: "input-streaming", input: { pl: "p" }, toolCallId: "c" },
    { state: "input-available", ...call, callProviderMetadata: { p: { x: 1 } } },
    { state: "approval-requested", ...call, approval },
    { state: "approval-responded", ...call, approval: { ...approval, approved: true } },
    { state: "output-available", ...call, output: { high: [1] }, preliminary: true },
    { state: "output-available", ...call, output: "high", providerExecuted: true },
    { state: "output-error", ...call, errorText: "broke" },
    { state: "output-error", toolCallId: "c", rawInput: '{"pl', errorText: "no JSON" },
    { state: "output-denied", ...call, approval: { ...approval, approved: false, reason: "no" } },
  ];
  const citation = { source: { type: "url", url: "https://example.com/" }, range: { start: 0, end: 1 } };
  const parts = [
    { type: "text", text: "x", state: "streaming", providerMetadata: { p: { x: [1] } } },
    { type: "reasoning", id: "r", text: "x", state: "done" },
    { type: "custom", kind: "p.x", providerMetadata: { p: {} } },
    { type: "source-url", sourceId: "s", url: "https://example.com/", title: "t" },
    { type: "source-document", sourceId: "s", mediaType: "application/pdf", title: "t", filename: "f" },
    { type: "file", mediaType: "image/png", url: "https://example.com/x.png", providerReference: { openai: "f" } },
    { type: "reasoning-file", mediaType: "image/png", url: "data:image/png;base64,iVBORw0KGgo=" },
    { type: "steering-message", id: "s", parts: [{ type: "text", text: "stop" }] },
    { type: "step-start" },
    { type: "data-chart", id: "d", data: { n: 1 } },
    ...states.map((state) => ({ type: "tool-tide", ...state })),
    ...states.map((state) => ({ type: "dynamic-tool", toolName: "of mcp", ...state })),
  ];
  const messages = await validateUIMessages({
    messages: [
      ...parts.map((part, n) => ({ id: `m${n}`, role: "assistant", parts: [part] })),
      { id: "all", role: "assistant", metadata: { at: 1 }, parts },
      { id: "u", role: "user", parts: parts.filter((part) => /^(text|file|data-chart)$/.test(part.type)) },
      { id: "s", role: "system", parts: [{ type: "text", text: "Be brief." }] },
    ],
  });
  const chats = new ChatStore({ client });
  await chats.save("kinds", messages);
  assert.deepEqual(await chats.load("kinds"), messages);
  const path = { id: await chats.sessiondId("later") };
  const unknown = [{ type: "hologram", of: { x: 1 } }, { ...parts[0], citations: [citation], x: 1 }];
  const later = [{ id: "l", role: "assistant", parts: unknown }];
  await client.call("appendMessages", { path, body: { dialect: "ui", messages: later } });
  const { data } = await client.call("listMessages", { path, query: { dialect: "ui" } });
  assert.deepEqual(data, later);
});

test("a conversation of a provider is a chat, and a reply in its form goes on with one", async () => {
  const chats = new ChatStore({ client, checks: { tools: {} } as never });
  const path = { id: await chats.sessiondId("of Claude") };
  const messages = [
    { role: "user", content: "How high?" },
    { role: "assistant", content: [{ type: "tool_use", id: "c", name: "Read", input: { file_path: "a" } }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "3 m", is_error: false }] },
    { role: "assistant", content: [{ type: "tool_use", id: "d", name: "Read", input: { file_path: "b" } }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "d", content: "gone", is_error: true }] },
    { role: "assistant", content: [{ type: "text", text: "Three." }] },
  ];
  await client.call("appendMessages", { path, body: { dialect: "anthropic", messages } });
  const chat = await chats.load("of Claude");
  const shown = chat.map((message) => message.parts.map((part) => ("state" in part ? part.state : part.type)));
  assert.deepEqual(shown, [["text"], ["output-available", "step-start", "output-error", "step-start", "text"]]);
  const roles = (await convertToModelMessages(chat)).map((message) => message.role);
  assert.deepEqual(roles, ["user", "assistant", "tool", "assistant", "tool", "assistant"]);
  const more: UIMessage[] = [...chat, { id: "u2", role: "user", parts: [{ type: "text", text: "Thanks." }] }];
  await chats.save("of Claude", more);
  assert.deepEqual(await chats.load("of Claude"), more);
  assert.equal((await client.call("readSession", { path })).message_count, 7);
});

test("a daemon that is killed below a chat loses and doubles nothing", async () => {
  const killed = await startDaemon();
  const below = new Client({ url: killed.url, token: killed.token, retries: 12 });
  const chats = new ChatStore({ client: below });
  let saving = true;
  let saved: UIMessage[] = [];
  const random = randomOf(7);
  const save = (async () => {
    for (let n = 0; saving; n++) {
      const next = [...saved, messageOf(random, n)];
      await chats.save("killed", next);
      saved = JSON.parse(JSON.stringify(next)) as UIMessage[];
    }
  })();
  for (let kills = 0; kills < 3; kills++) {
    const before = saved.length;
    await eventually("messages are saved", async () => saved.length > before + 10);
    await killed.stop("SIGKILL");
    await killed.start();
  }
  saving = false;
  await save;
  assert.deepEqual(await chats.load("killed"), saved);
  const id = await chats.sessiondId("killed");
  const query = { path: "all", dialect: "ui", limit: 1000 } as const;
  const { data } = await below.call("listMessages", { path: { id }, query });
  assert.equal(data?.length, saved.length);
});

test("two clients that save at once leave one of the two chats, and the other as a branch", async () => {
  const two = [0, 1].map(() => new ChatStore({ client }));
  const chats = two.map((_, n) => [
    { id: `m${n}`, role: "user" as const, parts: [{ type: "text" as const, text: `of ${n}` }] },
  ]);
  await Promise.all(two.map((chat, n) => chat.save("at once", chats[n] as UIMessage[])));
  const left = await two[0]?.load("at once");
  assert.ok(chats.some((chat) => chat[0]?.id === left?.[0]?.id && left?.length === 1));
  const id = (await two[0]?.sessiondId("at once")) ?? "";
  const { data } = await client.call("listMessages", { path: { id }, query: { path: "all" } });
  assert.equal(data?.length, 2);
});

test("what is stored is checked, and errors are of the SDK's class", async () => {
  const chats = new ChatStore<UIMessage<unknown, { chart: { n: number } }>>({
    client,
    checks: { dataSchemas: { chart: z.object({ n: z.number() }) } },
  });
  await chats.save("checked", [{ id: "1", role: "assistant", parts: [{ type: "data-chart", data: { n: 1 } }] }]);
  assert.equal((await chats.load("checked")).length, 1);
  await new ChatStore({ client }).save("checked", [
    { id: "1", role: "assistant", parts: [{ type: "data-chart", data: { n: "x" } }] },
  ]);
  await assert.rejects(chats.load("checked"), (e) => AISDKError.isInstance(e));
  const away = new ChatStore({ client: new Client({ url: "http://127.0.0.1:9", retries: 1 }) });
  const isRight = (e: unknown) => AISDKError.isInstance(e) && e.cause instanceof DaemonAway;
  await assert.rejects(away.load("x"), isRight);
  await assert.rejects(away.save("x", []), isRight);
  const revoked = new ChatStore({ client: new Client({ url: daemon.url, token: "revoked" }) });
  await assert.rejects(revoked.load("x"), (e) => AISDKError.isInstance(e) && /token/.test(e.message));
});

test("a chat of two turns with a tool is saved as the SDK streams it, and sent to any provider", async () => {
  const usage = {
    inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 5, text: 5, reasoning: 0 },
  };
  const prompts: unknown[] = [];
  let steps = 0;
  const model = new MockLanguageModelV4({
    doStream: async ({ prompt }) => {
      prompts.push(prompt);
      const finish = (unified: "stop" | "tool-calls") => ({
        type: "finish" as const,
        finishReason: { unified, raw: unified },
        usage,
      });
      const calls = ++steps === 1;
      return {
        stream: simulateReadableStream({
          chunks: (calls
            ? [
                { type: "stream-start" as const, warnings: [] },
                { type: "tool-call" as const, toolCallId: "c1", toolName: "tide", input: '{"place":"pier"}' },
                finish("tool-calls"),
              ]
            : [
                { type: "stream-start" as const, warnings: [] },
                { type: "text-start" as const, id: "t" },
                { type: "text-delta" as const, id: "t", delta: `The quagga answers ${steps}.` },
                { type: "text-end" as const, id: "t" },
                finish("stop"),
              ]) as never[],
        }),
      };
    },
  });
  const tools = {
    tide: tool({
      description: "Tells the tide",
      inputSchema: z.object({ place: z.string() }),
      execute: async ({ place }) => ({ high: place }),
    }),
  };
  const turn = async (text: string) => {
    const chats = new ChatStore({ client, checks: { tools } as never });
    const messages: UIMessage[] = await chats.load("chat/1");
    messages.push({ id: `u${messages.length}`, role: "user", parts: [{ type: "text", text }] });
    const result = streamText({
      model,
      tools,
      stopWhen: stepCountIs(3),
      messages: await convertToModelMessages(messages),
    });
    const saved = Promise.withResolvers<void>();
    const stream = result.toUIMessageStream({
      originalMessages: messages,
      generateMessageId: () => `a${messages.length}`,
      onFinish: ({ messages: all }) => chats.save("chat/1", all).then(saved.resolve, saved.reject),
    });
    for await (const _ of readUIMessageStream({ stream }));
    await saved.promise;
    return chats;
  };
  await turn("How high is the water?");
  const chats = await turn("And now?");
  const all = await chats.load("chat/1");
  assert.deepEqual(
    all.map((m) => m.role),
    ["user", "assistant", "user", "assistant"],
  );
  assert.equal((await validateUIMessages({ messages: all, tools } as never)).length, 4);
  assert.match(JSON.stringify(prompts.at(-1)), /How high.*pier.*quagga answers 2.*And now/s);
  const id = await chats.sessiondId("chat/1");
  for (const dialect of ["openai.chat", "openai.responses", "anthropic", "gemini"] as const) {
    const context = await client.call("readContext", { path: { id }, query: { dialect } });
    assert.match(JSON.stringify(context.request), /How high.*pier.*quagga answers 2.*And now/s, dialect);
    assert.deepEqual(context.pending_calls, []);
  }
  assert.ok((await client.call("searchMessages", { query: { q: "quagga" } })).hits?.length);
});
