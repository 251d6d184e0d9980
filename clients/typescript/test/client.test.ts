import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { Client, DaemonAway, findDaemon, SessiondError, type StreamEvent } from "@sessiond/client";
import { Daemon, eventually, startDaemon } from "./daemon.ts";

const daemon = await startDaemon();

test("the daemon is found as the command finds it", async () => {
  assert.deepEqual(await findDaemon(daemon.env), { url: daemon.url, token: daemon.token });
  const named = {
    ...daemon.env,
    XDG_DATA_HOME: "/nowhere",
    SESSIOND_DB: join(daemon.home, "data", "sessiond", "sessions.db"),
  };
  assert.deepEqual(await findDaemon(named), { url: daemon.url, token: daemon.token });

  const other = await startDaemon("--listen", "");
  const place = await findDaemon(other.env);
  assert.equal(place.url, undefined);
  const client = new Client(place);
  const made = await client.call("createSession", { body: { title: "Über den Sockel" } });
  assert.equal((await client.call("readSession", { path: { id: made.id } })).title, "Über den Sockel");
  await other.stop();

  mkdirSync(join(other.home, "config", "sessiond"), { recursive: true });
  const tokenFile = join(other.home, "data", "sessiond", "token");
  const config = `# mine\nlisten: "127.0.0.1:7555" # here\ntoken_file: ${tokenFile}\n`;
  writeFileSync(join(other.home, "config", "sessiond", "config.yaml"), config);
  assert.deepEqual(await findDaemon(other.env), { url: "http://127.0.0.1:7555", token: other.token });
  assert.equal((await findDaemon({ ...other.env, SESSIOND_LISTEN: "127.0.0.1:7556" })).url, "http://127.0.0.1:7556");
});

test("a turn is taken", async () => {
  const client = new Client(await findDaemon(daemon.env));
  const { id } = await client.call("createSession", { body: { key: "team/a:b", model: "gpt-4o" } });
  const turn = await client.call("takeTurn", {
    path: { id },
    body: {
      dialect: "openai.chat",
      system: "Be brief.",
      messages: [{ role: "user", content: "How high is the water?" }],
    },
  });
  assert.deepEqual((turn.context?.request as { messages: unknown[] }).messages.length, 2);
  assert.equal((await client.call("readKey", { path: { key: "team/a:b" } })).key, "agent:main:team/a:b");
  const seqs = [];
  for (let n = 0; n < 7; n++) {
    await client.call("appendMessages", { path: { id }, body: { messages: [{ role: "user", content: `${n}` }] } });
  }
  for await (const message of client.list("listMessages", { path: { id }, query: { limit: 3 } }))
    seqs.push(message.seq);
  assert.deepEqual(seqs, [1, 2, 3, 4, 5, 6, 7, 8]);
});

test("what is wrong is said by one class", async () => {
  const client = new Client(await findDaemon(daemon.env));
  const fails = async (call: Promise<unknown>, status: number, code: string) => {
    const error = await call.then(
      () => assert.fail("it is accepted"),
      (e: unknown) => e,
    );
    assert.ok(error instanceof SessiondError, String(error));
    assert.deepEqual([error.status, error.code], [status, code]);
  };
  await fails(client.call("readSession", { path: { id: "20010101_001" } }), 404, "not_found");
  await fails(client.call("listSessions", { query: { limit: -1 } }), 422, "invalid");
  await fails(new Client({ url: daemon.url, token: "revoked" }).call("listSessions"), 401, "unauthorized");
  await assert.rejects(client.call("readSession", {}), /path\.id is missing/);
  const away = new Client({ url: "http://127.0.0.1:9", token: "x", retries: 1 });
  await fails(away.call("listSessions"), 0, "unreachable");
  await assert.rejects(
    away.call("listSessions"),
    (e) => e instanceof DaemonAway && /2 attempts.*sessiond serve/.test(e.message),
  );
});

test("a busy daemon is asked again, with the same key", async () => {
  const keys: unknown[] = [];
  const server = createServer((request, response) => {
    keys.push(request.headers["idempotency-key"]);
    if (keys.length === 1) return request.socket.destroy();
    response.writeHead(keys.length < 3 ? 503 : 201, { "retry-after": "0" }).end('{"id":"1"}');
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const client = new Client({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  await client.call("createSession", { body: {} });
  assert.equal(keys.length, 3);
  assert.match(String(keys[0]), /^[0-9a-f-]{36}$/);
  assert.deepEqual(keys, [keys[0], keys[0], keys[0]]);
  server.close();
});

test("a daemon that is killed below the client loses and doubles nothing", async () => {
  const killed = await startDaemon();
  const client = new Client({ url: killed.url, token: killed.token, retries: 12 });
  const { id } = await client.call("createSession", { body: {} });
  const heard: StreamEvent[] = [];
  const stop = new AbortController();
  const listening = (async () => {
    for await (const event of client.events({ after: "0", session: id, signal: stop.signal })) heard.push(event);
  })();
  const said: string[] = [];
  let appending = true;
  const appends = Array.from({ length: 4 }, async (_, writer) => {
    for (let n = 0; appending; n++) {
      const content = `${writer}.${n}`;
      await client.call("appendMessages", { path: { id }, body: { messages: [{ role: "user", content }] } });
      said.push(content);
    }
  });
  for (let kills = 0; kills < 3; kills++) {
    const before = said.length;
    await eventually("messages are appended", async () => said.length > before + 20);
    await killed.stop("SIGKILL");
    await killed.start();
  }
  appending = false;
  await Promise.all(appends);
  const stored: string[] = [];
  for await (const m of client.list("listMessages", { path: { id } })) stored.push(String(m.content));
  assert.deepEqual(stored.toSorted(), said.toSorted());
  const appended = () => heard.filter((e) => e.type === "messages.appended").map((e) => Number(e.data.seq));
  await eventually("every event is heard", async () => appended().length >= stored.length);
  stop.abort();
  await listening;
  assert.deepEqual(
    appended(),
    stored.map((_, i) => i + 1),
  );
});
