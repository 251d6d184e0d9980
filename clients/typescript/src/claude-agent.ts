import { setTimeout as sleep } from "node:timers/promises";
import {
  foldSessionSummary,
  type SessionKey,
  type SessionStore,
  type SessionStoreEntry,
  type SessionSummaryEntry,
} from "@anthropic-ai/claude-agent-sdk";
import { Client, SessiondError } from "./index.js";

/** A SessionStore with all its optional methods. */
export type SessiondStore = Required<SessionStore>;

const program = "claude-code";
const batchSize = 8 << 20; // characters; the daemon reads bodies of 32 MiB, so a longer entry goes alone
const mostConflicts = 100;

/**
 * Keeps sessions of the Claude Agent SDK in sessiond: query({prompt, options: {sessionStore: sessionStore()}}). The
 * daemon keeps the entries as they are, and makes a session of them that it searches, counts and prices.
 *
 * Rejects with SessiondError, and with DaemonAway when no daemon answers. Appends to one key are stored in the order of
 * their calls.
 */
export function sessionStore(client: Client = new Client()): SessiondStore {
  const queues = new Map<string, Promise<unknown>>();
  const known = new Map<string, Known>();

  /** Appends to the main transcript. Of two processes at once the later one folds again, into what the other stored. */
  async function appendFolded(key: SessionKey, name: string, entries: SessionStoreEntry[]): Promise<void> {
    for (let conflicts = 0; ; conflicts++) {
      const before = known.get(name) ?? (await readKnown(client, key));
      const summary = foldSessionSummary(before.summary, key, entries).data;
      try {
        const body = { lines: entries, summary, expect_lines: before.lines };
        const stored = await client.call("appendLines", { path: { program }, query: queryOf(key), body });
        known.set(name, { lines: stored.lines, summary: summaryOf(key, stored.stored_at, summary) });
        return;
      } catch (error) {
        known.delete(name);
        const moved = error instanceof SessiondError && error.code === "conflict";
        if (!moved || conflicts === mostConflicts || !(await hasMoved(client, key, before.lines))) throw error;
        await sleep(Math.random() * Math.min(10 * conflicts, 200));
      }
    }
  }

  async function append(key: SessionKey, name: string, entries: SessionStoreEntry[]): Promise<void> {
    for (const batch of batchesOf(entries)) {
      if (key.subpath === undefined) await appendFolded(key, name, batch);
      else await client.call("appendLines", { path: { program }, query: queryOf(key), body: { lines: batch } });
    }
  }

  return {
    append(key, entries) {
      if (entries.length === 0) return Promise.resolve();
      const name = JSON.stringify([key.projectKey, key.sessionId, key.subpath]);
      const before = queues.get(name) ?? Promise.resolve();
      const done = before.catch(() => undefined).then(() => append(key, name, entries));
      queues.set(name, done);
      const forget = () => queues.get(name) === done && queues.delete(name);
      done.then(forget, forget);
      return done;
    },

    async load(key) {
      const entries: SessionStoreEntry[] = [];
      try {
        for await (const line of client.list("listLines", { path: { program }, query: queryOf(key) })) {
          entries.push(line as SessionStoreEntry);
        }
      } catch (error) {
        if (error instanceof SessiondError && error.status === 404) return null;
        throw error;
      }
      return entries;
    },

    async listSessions(projectKey) {
      const found = [];
      const query = { project: projectKey, limit: 1000 };
      for await (const one of client.list("listTranscripts", { path: { program }, query })) {
        found.push({ sessionId: one.session, mtime: Date.parse(one.stored_at) });
      }
      return found;
    },

    async listSessionSummaries(projectKey) {
      const found = [];
      const query = { project: projectKey, limit: 1000 };
      for await (const one of client.list("listSummaries", { path: { program }, query })) {
        found.push(summaryOf({ projectKey, sessionId: one.session }, one.stored_at, one.summary));
      }
      return found;
    },

    async delete(key) {
      known.delete(JSON.stringify([key.projectKey, key.sessionId, key.subpath]));
      await client.call("deleteLines", { path: { program }, query: queryOf(key) });
    },

    async listSubkeys(key) {
      const found = [];
      const query = { project: key.projectKey, session: key.sessionId };
      for await (const one of client.list("listSubpaths", { path: { program }, query })) found.push(one);
      return found;
    },
  };
}

/** The state of a main transcript: how many lines it has, and the fold of them. */
interface Known {
  lines: number;
  summary: SessionSummaryEntry | undefined;
}

async function readKnown(client: Client, key: SessionKey): Promise<Known> {
  const query = { project: key.projectKey, session: key.sessionId };
  const { data } = await client.call("listSummaries", { path: { program }, query });
  const one = data?.[0];
  if (!one) return { lines: 0, summary: undefined };
  return { lines: one.lines, summary: one.summary ? summaryOf(key, one.stored_at, one.summary) : undefined };
}

/** Tells a transcript that another process made longer from one that takes no lines, because it was purged. */
async function hasMoved(client: Client, key: SessionKey, lines: number): Promise<boolean> {
  return (await readKnown(client, key)).lines !== lines;
}

function summaryOf(key: SessionKey, storedAt: string, data: unknown): SessionSummaryEntry {
  return { sessionId: key.sessionId, mtime: Date.parse(storedAt), data: data as Record<string, unknown> };
}

function queryOf(key: SessionKey): { project: string; session: string; subpath?: string } {
  const query = { project: key.projectKey, session: key.sessionId };
  return key.subpath === undefined ? query : { ...query, subpath: key.subpath };
}

function* batchesOf(entries: SessionStoreEntry[]): Generator<SessionStoreEntry[]> {
  let batch: SessionStoreEntry[] = [];
  let size = 0;
  for (const entry of entries) {
    const length = JSON.stringify(entry).length;
    if (batch.length > 0 && size + length > batchSize) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(entry);
    size += length;
  }
  if (batch.length > 0) yield batch;
}
