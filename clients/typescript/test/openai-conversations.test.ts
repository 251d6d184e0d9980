import assert from "node:assert/strict";
import test from "node:test";
import {
  Agent,
  type AgentInputItem,
  OpenAIConversationsSession,
  OpenAIProvider,
  Runner,
  setDefaultOpenAIClient,
  setTracingDisabled,
  startOpenAIConversationsSession,
  tool,
} from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { Client } from "@sessiond/client";
import { type Daemon, eventually, exchanges, model, randomOf, startDaemon } from "./daemon.ts";

type Item = OpenAI.Conversations.ConversationItem & { id: string };
type Input = OpenAI.Responses.ResponseInputItem;

/** OpenAI's client. What it repeats after a lost answer is done once. */
class Repeating extends OpenAI {
  protected override idempotencyHeader = "Idempotency-Key";
}

setTracingDisabled(true);
const daemon = await startDaemon();
const openai = clientOf(daemon);
const client = new Client({ url: daemon.url, token: daemon.token });
const { conversations } = openai;

function clientOf(at: Daemon, options: { maxRetries?: number; apiKey?: string } = {}): OpenAI {
  return new Repeating({ baseURL: `${at.url}/v1`, apiKey: at.token, ...options });
}

function said(text: string): Input {
  return { type: "message", role: "user", content: text };
}

function textOf(item: OpenAI.Conversations.ConversationItem): string {
  const [first] = item.type === "message" ? item.content : [];
  return first && "text" in first ? first.text : item.type;
}

async function textsOf(id: string, of: OpenAI = openai): Promise<string[]> {
  const texts: string[] = [];
  for await (const item of of.conversations.items.list(id, { order: "asc", limit: 100 })) texts.push(textOf(item));
  return texts;
}

/** An item of any of the types that there are, and of one that there will be. */
function anyItem(random: (below: number) => number, n: number): Record<string, unknown> {
  const text = `${n} <é> ${"long ".repeat(random(40))}`;
  const items: Record<string, unknown>[] = [
    { role: "user", content: text },
    { type: "message", role: "user", content: [{ type: "input_text", text }, { type: "input_image", image_url: "data:image/png;base64,AAAA", detail: "low" }] },
    { type: "message", role: "user", content: [{ type: "input_file", filename: "a.txt", file_data: "data:text/plain;base64,QQ==" }] },
    { type: "message", role: "system", content: text },
    { role: "developer", content: [{ type: "input_text", text }] },
    { id: `msg_${n}`, type: "message", role: "assistant", status: "incomplete", content: [{ type: "output_text", text, annotations: [] }, { type: "refusal", refusal: text }] },
    { type: "message", role: "assistant", content: text },
    { type: "reasoning", id: `rs_a/b?#é %2F..${n}`, summary: [{ type: "summary_text", text }], encrypted_content: text },
    { type: "function_call", call_id: `c${n}`, name: "tide", arguments: JSON.stringify({ text }) },
    { type: "function_call", id: `fc_${n}`, call_id: `c${n}`, name: "tide", arguments: "no JSON", status: "in_progress" },
    { type: "function_call_output", call_id: `c${n}`, output: text },
    { type: "function_call_output", call_id: `c${n}`, output: [{ type: "input_text", text }] },
    { type: "web_search_call", id: `ws_${n}`, status: "completed", action: { type: "search", query: text, sources: [{ type: "url", url: "https://example.org" }] } },
    { type: "file_search_call", id: `fs_${n}`, status: "completed", queries: [text], results: [{ text, score: 0.5 }] },
    { type: "code_interpreter_call", id: `ci_${n}`, status: "completed", code: text, container_id: "x", outputs: [{ type: "logs", logs: text }] },
    { type: "image_generation_call", id: `ig_${n}`, status: "completed", result: "AAAA" },
    { type: "computer_call", id: `cu_${n}`, call_id: `c${n}`, status: "completed", action: { type: "wait" }, pending_safety_checks: [] },
    { type: "computer_call_output", call_id: `c${n}`, output: { type: "computer_screenshot", image_url: "data:image/png;base64,AAAA" } },
    { type: "local_shell_call", id: `lsh_${n}`, call_id: `c${n}`, status: "completed", action: { type: "exec", command: ["ls"], env: {} } },
    { type: "shell_call", call_id: `c${n}`, action: { commands: ["ls"], max_output_length: n } },
    { type: "shell_call_output", call_id: `c${n}`, output: [{ stdout: text, stderr: "", outcome: { type: "exit", exit_code: 0 } }] },
    { type: "apply_patch_call", call_id: `c${n}`, status: "completed", operation: { type: "delete_file", path: "a" } },
    { type: "mcp_call", id: `mcp_${n}`, name: "tide", server_label: "sea", arguments: "{}", output: text },
    { type: "mcp_list_tools", id: `mcpl_${n}`, server_label: "sea", tools: [] },
    { type: "mcp_approval_request", id: `mcpr_${n}`, name: "tide", server_label: "sea", arguments: "{}" },
    { type: "mcp_approval_response", approval_request_id: `mcpr_${n}`, approve: true },
    { type: "custom_tool_call", call_id: `c${n}`, name: "tide", input: text },
    { type: "custom_tool_call_output", call_id: `c${n}`, output: text },
    { type: "compaction", id: `cmp_${n}`, encrypted_content: text },
    { type: "program", id: `prog_${n}`, call_id: `c${n}`, code: text, fingerprint: "f" },
    { type: "of_next_year", deep: [1.5, { role: "x", id: null }, null], text: "\ud800 \u0000" },
    { role: "user", content: "\ud800 half, and \u0000" },
    { role: "user", content: "" },
  ];
  return items[random(items.length)] as Record<string, unknown>;
}

/** What OpenAI's API answers of an item that was sent, without an id that it gave. */
function answered(sent: Record<string, unknown>): Record<string, unknown> {
  const item = { ...sent };
  if (item.type === undefined) item.type = "message";
  if (["message", "function_call", "function_call_output"].includes(item.type as string)) item.status ??= "completed";
  if (item.type !== "message") return item;
  const kind = item.role === "assistant" ? "output_text" : "input_text";
  const content = typeof item.content === "string" ? [{ type: kind, text: item.content }] : (item.content as object[]);
  item.content = content.map((c) => ("type" in c && c.type === "output_text" ? { ...c, annotations: [] } : c));
  return item;
}

test("conversations: create, retrieve, update, delete", async () => {
  assert.equal((await conversations.create(null)).object, "conversation");
  const empty = await conversations.create();
  assert.deepEqual(empty.metadata, {});
  const before = Math.floor(Date.now() / 1000);
  const metadata = Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`${n}`.padEnd(64, "é"), "é".repeat(512)]));
  const made = await conversations.create({ items: [said("a"), said("b")], metadata });
  assert.match(made.id, /^conv_/);
  assert.ok(made.created_at >= before && made.created_at <= before + 60);
  assert.deepEqual(made.metadata, metadata);
  assert.deepEqual(await conversations.retrieve(made.id), made);
  assert.deepEqual(await textsOf(made.id), ["a", "b"]);
  assert.deepEqual((await conversations.update(made.id, { metadata: { topic: "tides" } })).metadata, { topic: "tides" });
  assert.deepEqual((await conversations.retrieve(made.id)).metadata, { topic: "tides" });
  assert.deepEqual((await conversations.update(made.id, { metadata: null })).metadata, {});
  const { request_id: _, ...gone } = (await conversations.delete(made.id)) as unknown as Record<string, unknown>;
  assert.deepEqual({ ...gone }, { id: made.id, object: "conversation.deleted", deleted: true });

  const many = { ...metadata, more: "x" };
  for (const [kind, status, param, call] of [
    [OpenAI.BadRequestError, 400, "metadata", () => conversations.create({ metadata: many })],
    [OpenAI.BadRequestError, 400, "metadata", () => conversations.create({ metadata: { a: 1 as unknown as string } })],
    [OpenAI.BadRequestError, 400, "items", () => conversations.create({ items: Array(21).fill(said("x")) })],
    [OpenAI.BadRequestError, 400, "items[0].role", () => conversations.create({ items: [{ role: "king", content: "x" } as never] })],
    [OpenAI.BadRequestError, 400, "other", () => conversations.create({ other: 1 } as never)],
    [OpenAI.BadRequestError, 400, "metadata", () => conversations.update(empty.id, {} as never)],
    [OpenAI.NotFoundError, 404, null, () => conversations.retrieve(made.id)],
    [OpenAI.NotFoundError, 404, null, () => conversations.update(made.id, { metadata: {} })],
    [OpenAI.NotFoundError, 404, null, () => conversations.delete(made.id)],
    [OpenAI.NotFoundError, 404, null, () => conversations.retrieve("conv_a/b?#é %2F")],
    [OpenAI.NotFoundError, 404, null, () => conversations.items.list(made.id)],
    [OpenAI.NotFoundError, 404, null, () => conversations.items.create(made.id, { items: [said("x")] })],
  ] as const) {
    await assert.rejects(call as () => Promise<unknown>, (e) => {
      assert.ok(e instanceof kind, String(e));
      assert.equal(e.status, status);
      assert.equal(e.param, param);
      assert.equal(e.type, "invalid_request_error");
      assert.ok(e.requestID, "it has the id of the request");
      return true;
    });
  }
});

test("items: create, list in pages, retrieve, delete", async () => {
  const { id } = await conversations.create();
  const texts = Array.from({ length: 50 }, (_, n) => `${n}`);
  for (let n = 0; n < 50; n += 20) {
    const some = texts.slice(n, n + 20);
    const made = await conversations.items.create(id, { items: some.map(said), include: ["message.output_text.logprobs"] });
    assert.deepEqual([made.object, made.has_more, made.data.map(textOf)], ["list", false, some]);
    assert.deepEqual([made.first_id, made.last_id], [made.data[0]?.id, made.data.at(-1)?.id]);
  }
  assert.deepEqual((await conversations.items.create(id, { items: [] })).data, []);
  for (const [order, limit] of [["asc", 1], ["asc", 7], ["desc", 20], ["desc", 100], [undefined, undefined]] as const) {
    const all: string[] = [];
    let pages = 0;
    let page = await conversations.items.list(id, { order, limit, include: ["reasoning.encrypted_content", "file_search_call.results"] });
    for (;;) {
      pages++;
      all.push(...page.data.map(textOf));
      if (!page.hasNextPage()) break;
      page = await page.getNextPage();
    }
    assert.equal(pages, Math.ceil(50 / (limit ?? 20)));
    assert.deepEqual(all, order === "asc" ? texts : texts.toReversed());
  }
  const [newest] = (await conversations.items.list(id, { limit: 1 })).data as [Item];
  const one = { conversation_id: id };
  assert.deepEqual({ ...(await conversations.items.retrieve(newest.id, { ...one, include: ["message.input_image.image_url"] })) }, newest);
  assert.equal((await conversations.items.delete(newest.id, one)).id, id);
  for await (const item of conversations.items.list(id, { limit: 3 })) { // deletes below its own pages
    if (Number(textOf(item)) % 2 === 1) await conversations.items.delete(item.id as string, one);
  }
  assert.deepEqual(await textsOf(id), texts.filter((t) => Number(t) % 2 === 0));

  for (const [kind, param, call] of [
    [OpenAI.NotFoundError, null, () => conversations.items.retrieve(newest.id, one)],
    [OpenAI.NotFoundError, null, () => conversations.items.retrieve("msg_a/b", one)],
    [OpenAI.NotFoundError, null, () => conversations.items.delete(newest.id, one)],
    [OpenAI.NotFoundError, null, () => conversations.items.list(id, { after: "msg_none" })],
    [OpenAI.BadRequestError, "limit", () => conversations.items.list(id, { limit: 101 })],
    [OpenAI.BadRequestError, "order", () => conversations.items.list(id, { order: "up" as "asc" })],
    [OpenAI.BadRequestError, "include", () => conversations.items.list(id, { include: ["all" as never] })],
    [OpenAI.BadRequestError, "items", () => conversations.items.create(id, { items: Array(21).fill(said("x")) })],
    [OpenAI.BadRequestError, "items", () => conversations.items.create(id, {} as never)],
    [OpenAI.BadRequestError, "items[0]", () => conversations.items.create(id, { items: [{ type: "item_reference", id: "msg_1" }] })],
  ] as const) {
    await assert.rejects(call as () => Promise<unknown>, (e) => e instanceof kind && e.param === param, String(call));
  }
});

test("who may not, and who is away", async () => {
  const revoked = clientOf(daemon, { apiKey: "revoked" });
  await assert.rejects(revoked.conversations.create(), (e) => {
    return e instanceof OpenAI.AuthenticationError && e.code === "invalid_api_key" && e.type === "invalid_request_error";
  });
  const away = new OpenAI({ baseURL: "http://127.0.0.1:9/v1", apiKey: "x", maxRetries: 0 });
  await assert.rejects(away.conversations.create(), OpenAI.APIConnectionError);
  await assert.rejects(openai.conversations.create({ items: [said("x".repeat(34_000_000))] }), (e) => {
    return e instanceof OpenAI.APIError && e.status === 413 && e.code === "request_too_large";
  });
  await assert.rejects(openai.get("/conversations"), (e) => e instanceof OpenAI.APIError && e.status === 405);
  await assert.rejects(openai.post("/conversations", { body: "{", headers: { "Content-Type": "application/json" } }),
    OpenAI.BadRequestError);
});

test("thousands of operations answer as a list in memory does", async () => {
  const random = randomOf(37);
  const all: { id: string; items: Item[]; gone: Item[]; metadata: Record<string, string> }[] = [];
  let numbers = 0;
  for (let step = 0; step < 2500; step++) {
    const choice = random(40);
    const at = all[random(all.length)];
    if (!at || (choice === 0 && all.length < 8)) {
      const metadata: Record<string, string> = random(2) ? { n: `${++numbers}` } : {};
      const made = await conversations.create({ items: [], metadata });
      all.push({ id: made.id, items: [], gone: [], metadata });
      continue;
    }
    const one = { conversation_id: at.id };
    if (choice < 14) {
      const sent = Array.from({ length: random(4) }, () => anyItem(random, ++numbers));
      const { data } = await conversations.items.create(at.id, { items: sent as unknown as Input[] });
      assert.equal(data.length, sent.length);
      for (const [n, item] of data.entries()) {
        const id = sent[n]?.id as string | undefined;
        assert.deepEqual(item, answered({ ...sent[n], id: id ?? item.id }));
      }
      at.items.push(...(data as Item[]));
    } else if (choice < 20) {
      const [latest] = (await conversations.items.list(at.id, { limit: 1 })).data as Item[];
      assert.deepEqual(latest, at.items.at(-1));
      if (latest) {
        await conversations.items.delete(latest.id, one);
        at.gone.push(at.items.pop() as Item);
      }
    } else if (choice < 23 && at.items.length > 0) {
      const n = random(at.items.length);
      const [item] = at.items.splice(n, 1) as [Item];
      await conversations.items.delete(item.id, one);
      at.gone.push(item);
    } else if (choice < 25 && at.gone.length > 0) {
      const item = at.gone[random(at.gone.length)] as Item;
      const again = at.items.some(({ id }) => id === item.id);
      if (!again) await assert.rejects(conversations.items.retrieve(item.id as string, one), OpenAI.NotFoundError);
      if (!again && !String(item.id).includes(at.id.slice(5))) { // its id is free again
        const { data } = await conversations.items.create(at.id, { items: [item as Input] });
        assert.deepEqual(data, [item]);
        at.items.push(item);
      }
    } else if (choice < 28 && at.items.length > 0) {
      const item = at.items[random(at.items.length)] as Item;
      const got = await conversations.items.retrieve(item.id as string, one);
      assert.deepEqual({ ...got }, { ...item });
      await assert.rejects(conversations.items.create(at.id, { items: [item as Input] }), OpenAI.BadRequestError);
    } else if (choice < 30) {
      at.metadata = random(3) ? { n: `${++numbers}` } : {};
      await conversations.update(at.id, { metadata: at.metadata });
    } else if (choice < 38) {
      const order = random(2) ? ("asc" as const) : ("desc" as const);
      const ordered = order === "asc" ? at.items : at.items.toReversed();
      const n = random(ordered.length + 1);
      const limit = random(5) + 1;
      const page = await conversations.items.list(at.id, { order, limit, after: ordered[n - 1]?.id as string | undefined });
      assert.deepEqual(page.data, ordered.slice(n, n + limit));
      assert.equal(page.has_more, ordered.length > n + limit);
    } else if (choice < 39) {
      const { metadata } = await conversations.retrieve(at.id);
      assert.deepEqual(metadata, at.metadata);
      const items: Item[] = [];
      for await (const item of conversations.items.list(at.id, { order: "asc" })) items.push(item as Item);
      assert.deepEqual(items, at.items);
    } else if (random(4) === 0) {
      await conversations.delete(at.id);
      all.splice(all.indexOf(at), 1);
    }
  }
  assert.ok(numbers > 1000);
});

test("two processes on one conversation keep all items, and take each once", async () => {
  const { id } = await conversations.create();
  const two = [clientOf(daemon), clientOf(daemon)] as const;
  const texts = Array.from({ length: 60 }, (_, n) => `${n}`);
  await Promise.all(texts.map((t, n) => two[n % 2 ? 1 : 0].conversations.items.create(id, { items: [said(t)] })));
  assert.deepEqual((await textsOf(id)).toSorted(), texts.toSorted());
  const taken: string[] = [];
  let missed = 0;
  const take = async (of: OpenAI) => {
    const session = new OpenAIConversationsSession({ client: of, conversationId: id });
    for (;;) {
      try {
        const item = (await session.popItem()) as { content: [{ text: string }] } | undefined;
        if (!item) return;
        taken.push(item.content[0].text);
      } catch (error) {
        assert.ok(error instanceof OpenAI.NotFoundError, String(error)); // the other one was first
        missed++;
      }
    }
  };
  await Promise.all(two.map(take));
  assert.deepEqual(taken.toSorted(), texts.toSorted());
  assert.ok(missed < 200);
});

test("a daemon that is killed below the client loses and doubles nothing", async () => {
  const killed = await startDaemon();
  const of = clientOf(killed, { maxRetries: 12 });
  const { id } = await of.conversations.create();
  const sent: string[] = [];
  let appending = true;
  const append = (async () => {
    for (let n = 0; appending; n++) {
      const { data } = await of.conversations.items.create(id, { items: [said(`${n}`), said("to delete")] });
      await of.conversations.items.delete(data[1]?.id as string, { conversation_id: id });
      sent.push(`${n}`);
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
  assert.deepEqual(await textsOf(id, of), sent);
});

test("an item of 30 MB", async () => {
  const text = "x".repeat(30_000_000);
  const { id } = await conversations.create({ items: [said("before")] });
  const { data } = await conversations.items.create(id, { items: [said(text), said("after")] });
  assert.equal(textOf(data[0] as Item), text);
  assert.equal(textOf(await conversations.items.retrieve(data[0]?.id as string, { conversation_id: id })), text);
  assert.deepEqual(await textsOf(id), ["before", text, "after"]);
  assert.deepEqual((await conversations.items.list(id, { limit: 1 })).data.map(textOf), ["after"]);
});

test("a conversation is a session, and a session a conversation", async () => {
  const { id } = await conversations.create({ items: [said("How high is the wolpertinger?")], metadata: { user: "u_37" } });
  const own = id.replace("conv_", "");
  const { data } = await client.call("listSessions", { query: { "metadata.user": "u_37" } as never });
  assert.deepEqual(data?.map((s) => [s.id, s.title]), [[own, "How high is the wolpertinger?"]]);
  await eventually("it is found", async () => {
    const { hits } = await client.call("searchMessages", { query: { q: "wolpertinger" } });
    return hits?.[0]?.session_id === own;
  });
  assert.match(daemon.run("show", own), /wolpertinger/);
  await client.call("appendMessages", { path: { id: own }, body: { messages: [{ role: "assistant", content: "Low." }] } });
  assert.deepEqual(await textsOf(id), ["How high is the wolpertinger?", "Low."]);
  await conversations.delete(id);
  assert.equal((await client.call("listSessions", { query: { "metadata.user": "u_37" } as never })).data?.length, 0);
});

test("OpenAIConversationsSession: each method, beside a list", async () => {
  const session = new OpenAIConversationsSession({ client: openai });
  assert.equal(session.sessionId, undefined);
  assert.equal(await session.popItem(), undefined);
  const id = await session.getSessionId();
  assert.equal(session.sessionId, id);
  assert.equal((await conversations.retrieve(id)).id, id);
  assert.match(await startOpenAIConversationsSession(openai), /^conv_/);
  setDefaultOpenAIClient(openai);
  assert.match(await new OpenAIConversationsSession().getSessionId(), /^conv_/);
  assert.match(await startOpenAIConversationsSession(), /^conv_/);
  const byURL = new OpenAIConversationsSession({ apiKey: daemon.token, baseURL: `${daemon.url}/v1` });
  assert.match(await byURL.getSessionId(), /^conv_/);
  assert.equal(session.preserveReasoningItemIdsForPersistence(), true);

  const random = randomOf(5);
  const expected: string[] = [];
  const say = (item: AgentInputItem): string => JSON.stringify(item).match(/n\d+n/)?.[0] ?? "";
  let numbers = 0;
  for (let step = 0; step < 800; step++) {
    const of = new OpenAIConversationsSession({ client: openai, conversationId: id }); // as another process would
    const choice = random(10);
    const name = `n${++numbers}n`;
    const items = [
      { role: "user", content: name },
      { type: "message", role: "user", content: [{ type: "input_text", text: name }, { type: "input_image", image: "data:image/png;base64,AAAA" }] },
      { type: "message", role: "system", content: name },
      { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: name }], providerData: { model: "m" } },
      { type: "reasoning", id: `rs_${name}`, content: [{ type: "input_text", text: name }], providerData: { encrypted_content: "x" } },
      { type: "function_call", callId: `c${name}`, name: "tide", status: "completed", arguments: "{}" },
      { type: "function_call_result", callId: `c${name}`, name: "tide", status: "completed", output: { type: "text", text: name } },
      { type: "function_call_result", callId: `c${name}`, name: "tide", status: "completed", output: [{ type: "input_text", text: name }] },
    ] as AgentInputItem[];
    const item = items[random(items.length)] as AgentInputItem;
    if (choice < 4) {
      await (random(5) ? of.addItems([item]) : of.replaceHistoryWithCompaction([item]));
      expected.push(name);
    } else if (choice < 6) {
      const popped = await of.popItem();
      assert.equal(popped && say(popped), expected.pop());
    } else if (choice < 9) {
      const limit = random(6) - 1;
      const got = await of.getItems(limit);
      assert.deepEqual(got.map(say), limit > 0 ? expected.slice(-limit) : []);
    } else {
      assert.deepEqual((await of.getItems()).map(say), expected);
      const prepared = of.prepareHistoryItemForModelInput(item);
      assert.equal(of.prepareHistoryItemsForPersistenceComparison([prepared]).length, 1);
    }
  }
  await session.addItems([]);
  await session.clearSession();
  assert.equal(session.sessionId, undefined);
  await assert.rejects(conversations.retrieve(id), OpenAI.NotFoundError);
  await assert.rejects(new OpenAIConversationsSession({ client: openai, conversationId: id }).getItems(), OpenAI.NotFoundError);
  assert.notEqual(await session.getSessionId(), id);
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
  const session = new OpenAIConversationsSession({ client: openai });
  await runner.run(agent, "How high is the water? (shell: printf low)", { session });
  const conversationId = await session.getSessionId();
  const again = new OpenAIConversationsSession({ client: clientOf(daemon), conversationId });
  const result = await runner.run(agent, "And the basilisk?", { session: again });
  assert.ok(result.finalOutput);
  const items = await again.getItems();
  assert.deepEqual(
    items.map((item) => ("role" in item ? item.role : item.type)),
    ["user", "function_call", "function_call_result", "assistant", "user", "assistant"],
  );
  const bodies = (await exchanges()).slice(before).map((x) => x.body);
  assert.match(bodies.at(-1) ?? "", /How high is the water.*ran printf low.*basilisk/s);
  const id = conversationId.replace("conv_", "");
  for (const dialect of ["openai.chat", "openai.responses", "anthropic", "gemini"] as const) {
    const context = await client.call("readContext", { path: { id }, query: { dialect } });
    assert.match(JSON.stringify(context.request), /ran printf low/, dialect);
  }
});
