import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import {
  foldSessionSummary,
  getSessionMessages,
  InMemorySessionStore,
  listSessions,
  query,
  type SDKMessage,
  type SessionKey,
  type SessionStoreEntry,
} from "@anthropic-ai/claude-agent-sdk";
import { Client, DaemonAway, SessiondError } from "@sessiond/client";
import { sessionStore } from "@sessiond/client/claude-agent";
import { eventually, exchanges, model, randomOf, startDaemon } from "./daemon.ts";

const daemon = await startDaemon();
const client = new Client({ url: daemon.url, token: daemon.token });

test("thousands of operations answer as the SDK's own store does", async () => {
  const stores = [sessionStore(client), sessionStore(client)]; // as in two processes
  const expected = new InMemorySessionStore(); // its keys are joined by slashes
  const joined = (key: SessionKey) => ({
    ...key,
    projectKey: encodeURIComponent(key.projectKey),
    sessionId: encodeURIComponent(key.sessionId),
  });
  const random = randomOf(7);
  const pick = <T>(all: T[]) => all[random(all.length)] as T;
  const projects = ["-home-me", "a/b", "..", "é ?&#"];
  const sessions = ["s1", "s1/x", ".", "6d8e9c1e-2f4b-4a7d-9b55-0d9f3c8a7e21"];
  const subpaths = [undefined, undefined, "subagents/agent-a", "../s2", "subagents/w/../b", "//"];
  const known = new Set<string>();
  let numbers = 0;
  const entryOf = (key: SessionKey): SessionStoreEntry => {
    const n = ++numbers;
    switch (random(5)) {
      case 0:
        return { type: "mode", n: random(3), text: "\ud800 \u0000 </script>" };
      case 1:
        return { type: "custom-title", customTitle: `title ${n}`, sessionId: key.sessionId };
      case 2:
        return { type: "agent_metadata", agentType: "explorer" };
      default: {
        const uuid = `${JSON.stringify(key)}${n}`;
        const message = { role: "user", content: `said ${n} <é>`, deep: [1.5, null, {}, { "": [] }] };
        return { type: "user", uuid, timestamp: new Date(1.8e12 + n).toISOString(), cwd: "/p", message };
      }
    }
  };
  const sorted = (all: { sessionId: string }[]) => all.map((one) => decodeURIComponent(one.sessionId)).toSorted();
  for (let step = 0; step < 3000; step++) {
    const store = pick(stores);
    const key: SessionKey = { projectKey: pick(projects), sessionId: pick(sessions) };
    const subpath = pick(subpaths);
    if (subpath !== undefined) key.subpath = subpath;
    const choice = random(20);
    if (choice < 10) {
      const entries = Array.from({ length: random(4) }, () => entryOf(key));
      await store.append(key, entries);
      if (entries.length === 0) continue; // it makes no key, as the SDK wants it; its own store makes one
      await expected.append(joined(key), entries);
      known.add(JSON.stringify(key));
    } else if (choice < 11) {
      await Promise.all([store.delete(key), expected.delete(joined(key))]);
    } else if (choice < 13) {
      assert.deepEqual((await store.listSubkeys(key)).toSorted(), (await expected.listSubkeys(joined(key))).toSorted());
    } else if (choice < 15) {
      const [got, want] = [
        await store.listSessions(key.projectKey),
        await expected.listSessions(joined(key).projectKey),
      ];
      assert.deepEqual(sorted(got), sorted(want));
      assert.ok(got.every((one) => Number.isInteger(one.mtime) && Math.abs(one.mtime - Date.now()) < 600_000));
    } else if (choice < 17) {
      const got = await store.listSessionSummaries(key.projectKey);
      const want = await expected.listSessionSummaries(joined(key).projectKey);
      const folds = (all: typeof got) =>
        Object.fromEntries(all.map((one) => [decodeURIComponent(one.sessionId), one.data]));
      assert.deepEqual(folds(got), folds(want));
      const times = new Map((await store.listSessions(key.projectKey)).map((one) => [one.sessionId, one.mtime]));
      for (const one of got) assert.equal(one.mtime, times.get(one.sessionId), "one clock");
    } else {
      assert.deepEqual(await store.load(key), await expected.load(joined(key)));
    }
  }
  assert.ok(known.size > 50, `${known.size} keys`);
});

test("appends at once keep their order, and summaries of two clients meet", async () => {
  const key = { projectKey: "p", sessionId: "at-once" };
  const stores = [sessionStore(client), sessionStore(client)];
  const sent: SessionStoreEntry[][] = stores.map((_, s) =>
    Array.from({ length: 40 }, (_, n) => ({ type: n % 9 ? "user" : "tag", uuid: `${s}-${n}`, tag: `t${s}`, n, s })),
  );
  await Promise.all(stores.flatMap((store, s) => (sent[s] ?? []).map((entry) => store.append(key, [entry]))));
  const got = (await stores[0]?.load(key)) ?? [];
  for (const [s, entries] of sent.entries())
    assert.deepEqual(
      got.filter((e) => e.s === s),
      entries,
    );
  const summary = (await stores[0]?.listSessionSummaries("p"))?.find((one) => one.sessionId === key.sessionId);
  assert.deepEqual(summary?.data, foldSessionSummary(undefined, key, got).data);
});

test("a batch that is sent again is stored once, and lines without a uuid as often as they come", async () => {
  const store = sessionStore(client);
  const key = { projectKey: "p", sessionId: "again" };
  const entries = [
    { type: "user", uuid: "u1" },
    { type: "mode" },
    { type: "mode" },
    { type: "next-year", x: { y: [1] } },
  ];
  await store.append(key, entries);
  await store.append(key, entries);
  assert.deepEqual(await store.load(key), [...entries, ...entries.slice(1)]);
  assert.equal(await store.load({ ...key, subpath: "none" }), null);
});

test("an entry of 30 MB comes back, a larger one is refused in words", async () => {
  const store = sessionStore(client);
  const key = { projectKey: "p", sessionId: "large" };
  const entries = [30, 1].map((mb) => ({
    type: "user",
    uuid: `u${mb}`,
    message: { content: "x".repeat(mb * 1_000_000) },
  }));
  await store.append(key, entries);
  assert.deepEqual(await store.load(key), entries);
  const larger = { type: "user", message: { content: "x".repeat(40_000_000) } };
  await assert.rejects(store.append(key, [larger]), (e) => e instanceof SessiondError && e.status === 413);
  assert.deepEqual(await store.load(key), entries);
});

test("a daemon that is away and a revoked token reject every method", async () => {
  const key = { projectKey: "p", sessionId: "s" };
  const away = sessionStore(new Client({ url: "http://127.0.0.1:9", retries: 1 }));
  const revoked = sessionStore(new Client({ url: daemon.url, token: "revoked" }));
  for (const [store, isRight] of [
    [away, (e: unknown) => e instanceof DaemonAway],
    [revoked, (e: unknown) => e instanceof SessiondError && e.status === 401],
  ] as const) {
    for (const [, method] of Object.entries({
      append: () => store.append(key, [{ type: "user" }]),
      load: () => store.load(key),
      listSessions: () => store.listSessions("p"),
      listSessionSummaries: () => store.listSessionSummaries("p"),
      delete: () => store.delete(key),
      listSubkeys: () => store.listSubkeys(key),
    })) {
      await assert.rejects(method, isRight);
    }
  }
});

test("a daemon that is killed loses no acknowledged entry", async () => {
  const killed = await startDaemon();
  const store = sessionStore(new Client({ url: killed.url, token: killed.token, retries: 12 }));
  const key = { projectKey: "p", sessionId: "killed" };
  const acknowledged: SessionStoreEntry[] = [];
  let appending = true;
  const append = (async () => {
    for (let n = 0; appending; n++) {
      const entry = { type: "mode", n };
      await store.append(key, [entry]);
      acknowledged.push(entry);
    }
  })();
  for (let kills = 0; kills < 3; kills++) {
    const before = acknowledged.length;
    await eventually("entries are appended", async () => acknowledged.length > before + 20);
    await killed.stop("SIGKILL");
    await killed.start();
  }
  appending = false;
  await append;
  assert.deepEqual(await store.load(key), acknowledged);
});

test("query() continues with an empty disk, and sessiond knows what was said", { timeout: 150_000 }, async () => {
  const store = sessionStore(client);
  const before = (await exchanges()).length;
  const cwd = join(daemon.home, "project");
  mkdirSync(cwd);
  const ask = async (host: string, prompt: string, resume?: string) => {
    const home = join(daemon.home, host);
    mkdirSync(home);
    const said: SDKMessage[] = [];
    const env = {
      PATH: process.env.PATH,
      HOME: home,
      CLAUDE_CONFIG_DIR: join(home, ".claude"),
      ANTHROPIC_BASE_URL: model,
      ANTHROPIC_API_KEY: "fake",
      ANTHROPIC_MODEL: "claude-opus-4-5",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      IS_SANDBOX: "1",
    };
    const permissions = { permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true } as const;
    const options = { cwd, env, sessionStore: store, settingSources: [], ...permissions, ...(resume && { resume }) };
    for await (const message of query({ prompt, options })) said.push(message);
    rmSync(home, { recursive: true });
    assert.deepEqual(
      said.filter((m) => m.type === "system" && m.subtype === "mirror_error"),
      [],
    );
    const result = said.find((m) => m.type === "result");
    assert.equal(result?.subtype, "success", JSON.stringify(result));
    return result?.session_id ?? "";
  };
  const id = await ask("one", "Where does the quagga live? (shell: echo on the plains)");
  const again = await ask("two", "And the tapir? (agent: Look where the tapir lives.)", id);
  assert.equal(again, id);

  const asked = (await exchanges()).slice(before).filter((x) => x.kind === "turn");
  assert.ok(
    asked.some((x) => /tapir/.test(x.body) && /quagga/.test(x.body) && /on the plains/.test(x.body)),
    "both turns",
  );

  const dir = cwd;
  const listed = await listSessions({ dir, sessionStore: store });
  assert.deepEqual(
    listed.map((one) => one.sessionId),
    [id],
  );
  assert.match(JSON.stringify(listed), /quagga/);
  assert.ok((await getSessionMessages(id, { dir, sessionStore: store })).length >= 4);

  await eventually("sessiond has what was said", async () => {
    const { hits } = await client.call("searchMessages", { query: { q: "tapir", source: "claude-code" } });
    return (hits ?? []).length > 0;
  });
  const output = asked.reduce((sum, x) => sum + x.usage.output, 0);
  await eventually("each token is counted once", async () => {
    const usage = await client.call("readUsage", { query: { source: "claude-code" } });
    return usage.calls === asked.length && usage.tokens.output === output;
  });
});
