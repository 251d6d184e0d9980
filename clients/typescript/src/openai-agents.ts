import { type AgentInputItem, type Session, SystemError, UserError } from "@openai/agents";
import { Client, type components, DaemonAway, SessiondError } from "./index.js";
import {
  isStorable,
  type Json,
  type Message,
  type Part,
  partsOf,
  plain,
  sessionNamed,
  textPart,
  withoutTexts,
  withTexts,
} from "./message.js";

export interface SessiondSessionOptions {
  /** The caller's own id, of any characters, or the id of a session of sessiond. Default: a new session. */
  sessionId?: string;
  client?: Client;
  /** Of a session that is made: its title, model, directory, … */
  create?: components["schemas"]["NewSessionRequest"];
}

const pageSize = 500;

/**
 * A Session of the OpenAI Agents SDK in sessiond: run(agent, input, {session: new SessiondSession({sessionId})}). Each
 * item is a message, which sessiond searches and counts. Nothing is deleted: popItem and clearSession move the head
 * back, and what was there stays a branch.
 *
 * Throws SystemError when no daemon answers and UserError for what the daemon rejects; cause is the client's error.
 */
export class SessiondSession implements Session {
  readonly #client: Client;
  readonly #options: SessiondSessionOptions;
  #id: Promise<string> | undefined;

  constructor(options: SessiondSessionOptions = {}) {
    this.#client = options.client ?? new Client();
    this.#options = options;
  }

  async getSessionId(): Promise<string> {
    return this.#options.sessionId ?? (await this.sessiondId());
  }

  /** The id of the session in sessiond, which is made if it does not exist. */
  async sessiondId(): Promise<string> {
    this.#id ??= ofAgents(this.#find());
    try {
      return await this.#id;
    } catch (error) {
      this.#id = undefined;
      throw error;
    }
  }

  async getItems(limit?: number): Promise<AgentInputItem[]> {
    if (limit !== undefined && limit <= 0) return [];
    const id = await this.sessiondId();
    return ofAgents(this.#read(id, limit));
  }

  async addItems(items: AgentInputItem[]): Promise<void> {
    if (items.length === 0) return;
    const id = await this.sessiondId();
    const body = { dialect: "native" as const, messages: items.map(messageOf) };
    await ofAgents(this.#client.call("appendMessages", { path: { id }, body }));
  }

  async popItem(): Promise<AgentInputItem | undefined> {
    const id = await this.sessiondId();
    const { message } = await ofAgents(this.#client.call("popMessage", { path: { id }, body: {} }));
    return message ? itemOf(message as Message) : undefined;
  }

  async clearSession(): Promise<void> {
    const id = await this.sessiondId();
    await ofAgents(this.#client.call("moveHead", { path: { id }, body: { seq: null } }));
  }

  async #find(): Promise<string> {
    const { sessionId, create = {} } = this.#options;
    if (sessionId === undefined) return (await this.#client.call("createSession", { body: create })).id;
    return sessionNamed(this.#client, "openai_agents_session", sessionId, create);
  }

  /** Reads all items, or the newest ones. */
  async #read(id: string, newest?: number): Promise<AgentInputItem[]> {
    const order = newest === undefined ? ("asc" as const) : ("desc" as const);
    const query = { limit: Math.min(newest ?? pageSize, pageSize), order };
    const items: AgentInputItem[] = [];
    for await (const message of this.#client.list("listMessages", { path: { id }, query })) {
      items.push(itemOf(message as Message));
      if (items.length === newest) break;
    }
    return newest === undefined ? items : items.reverse();
  }
}

/** Makes errors of a call the SDK's own. */
async function ofAgents<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof SessiondError)) throw error;
    const away = error instanceof DaemonAway || error.status >= 500;
    throw Object.assign(away ? new SystemError(error.message) : new UserError(error.message), { cause: error });
  }
}

function messageOf(item: AgentInputItem): unknown {
  const fields = plain(item) as Record<string, Json>;
  const { role, parts } = describe(fields);
  const metadata = { item: withoutTexts(fields, parts) };
  return parts.length > 0 ? { role, parts, metadata } : { kind: "unknown", role: "", parts, metadata };
}

function itemOf(message: Message): AgentInputItem {
  const item = (message.metadata as { item?: Json } | undefined)?.item;
  if (item !== undefined) return withTexts(item, partsOf(message)) as AgentInputItem;
  const { role, content } = message; // another program appended it
  if (role === "user" || role === "system") return { type: "message", role, content } as AgentInputItem;
  const output = [{ type: "output_text", text: content }];
  return { type: "message", role: "assistant", status: "completed", content: output } as AgentInputItem;
}

/** Says what sessiond understands of an item; no part for a kind that it does not. */
function describe(item: Record<string, Json>): { role: string; parts: Part[] } {
  const { type, role, name, callId } = item;
  if (typeof role === "string" && (type === "message" || type === undefined)) {
    return { role, parts: texts("text", item.content) };
  }
  if (type === "reasoning") {
    return { role: "assistant", parts: [...texts("reasoning", item.content), ...texts("reasoning", item.rawContent)] };
  }
  if (typeof type !== "string" || typeof callId !== "string" || callId === "") return { role: "", parts: [] };
  const tool = typeof name === "string" ? name : type.replace(/_call(_result|_output)?$/, "");
  const call = { tool_name: tool, call_id: callId };
  if (/_(result|output)$/.test(type)) {
    const output = texts("text", item.output).map((part) => part.text);
    const text = output.length > 0 ? output.join("\n") : JSON.stringify(item.output ?? "");
    return { role: "tool", parts: [{ kind: "tool_result", ...call, text }] };
  }
  const given = item.arguments ?? item.action ?? item.operation ?? {};
  const args = typeof given === "string" && isStorable(given) ? given : JSON.stringify(given);
  return { role: "assistant", parts: [{ kind: "tool_call", ...call, arguments: args }] };
}

function texts(kind: "text" | "reasoning", content: Json | undefined): Part[] {
  const elements = Array.isArray(content) ? content : [content];
  return elements.flatMap((element) => {
    const fields = element as { text?: Json; refusal?: Json } | null | undefined;
    return textPart(kind, typeof element === "string" ? element : (fields?.text ?? fields?.refusal));
  });
}
