import { randomUUID } from "node:crypto";
import { request as httpRequest } from "node:http";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { DaemonAway, SessiondError } from "./errors.js";
import type { operations } from "./openapi.js";
import { findDaemon, type Place } from "./place.js";
import { routes } from "./routes.js";

export { DaemonAway, SessiondError, type FieldError } from "./errors.js";
export type { components, operations, paths } from "./openapi.js";
export { findDaemon, type Place } from "./place.js";

/** The name of an operation of the API, as docs/openapi.json has it: createSession, takeTurn, … */
export type Operation = keyof typeof routes & keyof operations;

type Of<T, K extends string> = T extends { [P in K]?: infer V } ? V : undefined;
type Parameters<O extends Operation> = operations[O]["parameters"];
type Body<O extends Operation> = operations[O] extends { requestBody?: infer R }
  ? Of<Of<NonNullable<R>, "content">, "application/json">
  : undefined;

/** What an operation is asked with: the parameters of its path and its query, headers, and its body. */
export interface Input<O extends Operation> {
  path?: Of<Parameters<O>, "path">;
  query?: Of<Parameters<O>, "query"> | Record<string, string>;
  headers?: Record<string, string>;
  body?: Body<O>;
  signal?: AbortSignal;
}

type Success<R> = R extends Record<number, unknown> ? R[keyof R & (200 | 201 | 202)] : never;

/** What an operation answers. */
export type Answer<O extends Operation> =
  Success<operations[O]["responses"]> extends { content: { "application/json": infer V } } ? V : undefined;

/** An item of the list that an operation answers. */
export type Item<O extends Operation> = Answer<O> extends { data: (infer V)[] | null } ? V : never;

export interface ClientOptions extends Place {
  /** Retries after the first attempt, of requests that may be repeated; default 4. */
  retries?: number;
  /** How long an attempt may take, in milliseconds; default 60,000. */
  timeout?: number;
}

/** An event of the stream, with the id after which the stream continues. */
export interface StreamEvent {
  id: string;
  type: string;
  data: Record<string, unknown>;
}

const firstPause = 100; // milliseconds; each later one is twice as long
const longestPause = 5_000;

/** A client of one daemon. Without a place it finds the daemon as the sessiond command does. */
export class Client {
  readonly #options: ClientOptions;
  #place: Promise<Place> | undefined;

  constructor(options: ClientOptions = {}) {
    this.#options = options;
  }

  /**
   * Does an operation. Reads, and writes that accept an Idempotency-Key, are repeated when no answer comes or the
   * daemon is busy; the key is the same each time, so nothing is written twice. Throws SessiondError, and DaemonAway
   * when no daemon answers.
   */
  async call<O extends Operation>(operation: O, input: Input<O> = {}): Promise<Answer<O>> {
    const response = await this.send(operation, input);
    const text = await response.text();
    return (text === "" ? undefined : JSON.parse(text)) as Answer<O>;
  }

  /** Reads a list to its end, page by page. */
  async *list<O extends Operation>(operation: O, input: Input<O> = {}): AsyncGenerator<Item<O>> {
    let query: Record<string, unknown> = { ...input.query };
    for (;;) {
      const page = (await this.call(operation, { ...input, query } as Input<O>)) as {
        data: Item<O>[] | null;
        next_cursor?: string | null;
      };
      yield* page.data ?? [];
      if (!page.next_cursor) return;
      query = { ...query, cursor: page.next_cursor };
    }
  }

  /**
   * Yields the events of the store, or of a session, until the signal ends it. A stream that breaks off continues
   * behind the last event, also after a restart of the daemon. An event of type gap says that older ones are deleted. Throws
   * DaemonAway when the first attempts find no daemon; a daemon that was there is awaited.
   */
  async *events(options: { after?: string; session?: string; signal?: AbortSignal } = {}): AsyncGenerator<StreamEvent> {
    let last = options.after;
    let connected = false;
    for (let failures = 0; !options.signal?.aborted;) {
      const query = { ...(options.session && { session: options.session }), ...(last && { after: last }) };
      try {
        const response = await this.send("streamEvents", { query, signal: options.signal });
        connected = true;
        for await (const event of readEvents(response)) {
          failures = 0;
          last = event.id || last;
          yield event;
        }
      } catch (error) {
        if (options.signal?.aborted) return;
        if (error instanceof SessiondError && !(connected && error instanceof DaemonAway)) throw error;
      }
      await sleep(pauseBefore(++failures), undefined, { signal: options.signal }).catch(() => undefined);
    }
  }

  /** Does an operation and returns the answer as it came, its status 200 to 299. */
  async send<O extends Operation>(operation: O, input: Input<O> = {}): Promise<Response> {
    const route: { method: string; path: string; keyed: boolean } = routes[operation];
    const target = targetOf(route.path, input.path as Record<string, unknown>, input.query as Record<string, unknown>);
    const headers: Record<string, string> = { accept: "application/json", ...input.headers };
    const named = Object.keys(headers).some((name) => name.toLowerCase() === "idempotency-key");
    if (route.keyed && !named) headers["idempotency-key"] = randomUUID();
    const body = input.body === undefined ? undefined : JSON.stringify(input.body);
    if (body !== undefined) headers["content-type"] = "application/json";
    const what = `${route.method} ${target}`;
    const most = route.keyed || route.method !== "POST" ? (this.#options.retries ?? 4) : 0;
    for (let attempt = 0; ; attempt++) {
      const place = await (this.#place ??= this.#find());
      let response: Response;
      try {
        const limits = operation === "streamEvents" ? [] : [AbortSignal.timeout(this.#options.timeout ?? 60_000)];
        const signal = AbortSignal.any([...limits, ...(input.signal ? [input.signal] : [])]);
        if (place.token) headers.authorization = `Bearer ${place.token}`;
        const init = { method: route.method, headers, body, signal };
        response = await (place.socket ? fetchFromSocket(place.socket, target, init) : fetch(place.url + target, init));
      } catch (error) {
        if (input.signal?.aborted) throw error;
        this.#place = undefined; // a daemon that was restarted may listen elsewhere
        if (attempt >= most) throw new DaemonAway(what, place.socket ?? place.url ?? "", attempt + 1, error);
        await sleep(pauseBefore(attempt + 1), undefined, { signal: input.signal });
        continue;
      }
      if (response.ok) return response;
      if (response.status !== 503 || attempt >= most)
        throw new SessiondError(what, response.status, await problemOf(response));
      await response.body?.cancel();
      const wait = Number(response.headers.get("retry-after")) * 1000 || pauseBefore(attempt + 1);
      await sleep(Math.min(wait, longestPause), undefined, { signal: input.signal });
    }
  }

  async #find(): Promise<Place> {
    const { url, socket, token } = this.#options;
    if (socket) return { socket, token };
    return url ? { url: url.replace(/\/+$/, ""), token } : { ...(await findDaemon()), ...(token && { token }) };
  }
}

function pauseBefore(retry: number): number {
  return Math.min(firstPause * 2 ** (retry - 1), longestPause) * (0.5 + Math.random() / 2);
}

function targetOf(path: string, names: Record<string, unknown> = {}, query: Record<string, unknown> = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    if (names[name] === undefined) throw new TypeError(`${path}: path.${name} is missing`);
    return encodeURIComponent(String(names[name]));
  });
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    if (typeof value === "object" && !Array.isArray(value)) {
      for (const [key, one] of Object.entries(value)) search.set(`${name}[${key}]`, String(one));
    } else search.set(name, String(value));
  }
  return search.size > 0 ? `${filled}?${search}` : filled;
}

async function problemOf(response: Response): Promise<Record<string, unknown>> {
  const text = await response.text().catch(() => "");
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return { detail: `status ${response.status}: ${text.slice(0, 200)}` };
  }
}

interface Init {
  method: string;
  headers: Record<string, string>;
  body: string | undefined;
  signal: AbortSignal;
}

/** fetch reaches no Unix sockets; this does, in the same words. */
function fetchFromSocket(socketPath: string, path: string, init: Init): Promise<Response> {
  const { method, signal } = init;
  const headers: Record<string, string | number> = { ...init.headers, host: "localhost" };
  if (init.body !== undefined) headers["content-length"] = Buffer.byteLength(init.body);
  return new Promise((resolve, reject) => {
    const request = httpRequest({ socketPath, path, method, headers, signal }, (answer) => {
      const status = answer.statusCode ?? 0;
      const body = status === 204 ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
      const fields = new Headers();
      for (const [name, value] of Object.entries(answer.headers)) fields.set(name, String(value));
      resolve(new Response(body, { status, headers: fields }));
    });
    request.on("error", reject).end(init.body);
  });
}

async function* readEvents(response: Response): AsyncGenerator<StreamEvent> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const bytes of response.body ?? []) {
    const blocks = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = { id: "", type: "message", data: "" };
      for (const line of block.split("\n")) {
        const [, name, value = ""] = /^(\w+):? ?(.*)$/.exec(line) ?? [];
        if (name === "id") event.id = value;
        if (name === "event") event.type = value;
        if (name === "data") event.data += value;
      }
      if (event.data) yield { ...event, data: JSON.parse(event.data) as Record<string, unknown> };
    }
  }
}
