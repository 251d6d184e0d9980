import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import test from "node:test";
import type { AgentInputItem } from "@openai/agents";
import type { UIMessage } from "ai";
import { Client } from "@sessiond/client";
import { ChatStore } from "@sessiond/client/ai";
import { sessionStore } from "@sessiond/client/claude-agent";
import { SessiondSession } from "@sessiond/client/openai-agents";
import { startDaemon } from "./daemon.ts";

// Prints what an append costs by each adapter, beside the same text posted by fetch; docs/performance.md has figures.

const daemon = await startDaemon();
const client = new Client({ url: daemon.url, token: daemon.token });
const appends = 300;
const text = "How high is the water at the pier today? ".repeat(5);

async function post(path: string, body: unknown): Promise<{ id: string }> {
  const headers = { authorization: `Bearer ${daemon.token}`, "content-type": "application/json" };
  const response = await fetch(daemon.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return (await response.json()) as { id: string };
}

/** The median times of appends that are made in turns, in milliseconds. */
async function timesOf(ways: Record<string, (n: number) => Promise<unknown>>): Promise<[string, number][]> {
  const times = new Map<string, number[]>(Object.keys(ways).map((name) => [name, []]));
  for (let n = 0; n < appends; n++) {
    for (const [name, append] of Object.entries(ways)) {
      const began = performance.now();
      await append(n);
      times.get(name)?.push(performance.now() - began);
    }
  }
  return [...times].map(([name, all]) => [name, all.sort((a, b) => a - b)[appends / 2] ?? 0]);
}

function line(n: number, sessionId: string) {
  const message = { role: "user" as const, content: text };
  const timestamp = new Date(Date.UTC(2026, 1, 11, 10, 0, 0, n)).toISOString();
  return { type: "user", uuid: randomUUID(), parentUuid: null, sessionId, timestamp, cwd: "/work", message };
}

test("an append by each adapter", async (t) => {
  const { id } = await post("/v1/sessions", {});
  const { id: other } = await post("/v1/sessions", {});
  const items = new SessiondSession({ client });
  const chats = new ChatStore({ client });
  const store = sessionStore(client);
  const sessionId = randomUUID();
  const chat = (n: number): UIMessage[] =>
    Array.from({ length: (n % 10) + 1 }, (_, of) => ({
      id: `${of}`,
      role: "user",
      parts: [{ type: "text", text: `${text}${of}` }],
    }));
  const message = { role: "user" as const, content: text };
  const times = await timesOf({
    "bare HTTP": () => post(`/v1/sessions/${id}/messages`, { messages: [message] }),
    client: () => client.call("appendMessages", { path: { id: other }, body: { messages: [message] } }),
    "openai-agents": () => items.addItems([message satisfies AgentInputItem]),
    "claude-agent": (n) => store.append({ projectKey: "p", sessionId }, [line(n, sessionId)]),
    "ai, chats of up to 10 messages": (n) => chats.save(`chat ${Math.floor(n / 10)}`, chat(n)),
  });
  const bare = times[0]?.[1] ?? 0;
  for (const [name, time] of times) {
    t.diagnostic(`${name}: ${time.toFixed(2)} ms, ${(time / bare).toFixed(1)} × the bare HTTP`);
  }
  assert.equal((await items.getItems()).length, appends);
  assert.equal((await store.load({ projectKey: "p", sessionId }))?.length, appends);
  assert.equal((await chats.load("chat 0")).length, 10);
});

test("raw lines in batches of 50", async (t) => {
  const batches = 200;
  const sessionId = randomUUID();
  const path = `/v1/sources/claude-code/lines?project=rates&session=${sessionId}`;
  const began = performance.now();
  for (let batch = 0; batch < batches; batch++) {
    await post(path, { lines: Array.from({ length: 50 }, (_, n) => line(50 * batch + n, sessionId)) });
  }
  const seconds = (performance.now() - began) / 1000;
  t.diagnostic(`${Math.round((50 * batches) / seconds)} lines a second`);
  const stored = await sessionStore(client).load({ projectKey: "rates", sessionId });
  assert.equal(stored?.length, 50 * batches);
});
