import { AISDKError, type UIMessage, validateUIMessages } from "ai";
import { Client, type components, SessiondError } from "./index.js";
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

type Checks<M extends UIMessage> = Omit<Parameters<typeof validateUIMessages<M>>[0], "messages">;

export interface ChatStoreOptions<M extends UIMessage> {
  client?: Client;
  /** What validateUIMessages checks stored messages with: tools, dataSchemas, metadataSchema. */
  checks?: Checks<M>;
  /** Of a session that is made: its title, model, directory, … */
  create?: components["schemas"]["NewSessionRequest"];
}

const pageSize = 500;
const mostConflicts = 20;

/**
 * Loads and saves chats of the AI SDK in sessiond. A UIMessage is stored as what it says: text, reasoning, and the
 * calls and results of tools, which sessiond searches, counts and sends to any provider.
 *
 * Throws AISDKError, whose cause is the client's error, and what validateUIMessages throws.
 */
export class ChatStore<M extends UIMessage = UIMessage> {
  readonly #client: Client;
  readonly #options: ChatStoreOptions<M>;

  constructor(options: ChatStoreOptions<M> = {}) {
    this.#client = options.client ?? new Client();
    this.#options = options;
  }

  /** The messages of a chat, checked by validateUIMessages; none for a new one. */
  async load(chatId: string): Promise<M[]> {
    const messages = (await ofAI(this.#read(await this.sessiondId(chatId)))).map((one) => one.message);
    return messages.length > 0 ? validateUIMessages<M>({ messages, ...this.#options.checks }) : [];
  }

  /**
   * Makes messages the chat. Those that are stored already stay; where one differs, as after an edit or a regenerated
   * answer, the chat goes on in a branch beside it. Of two processes at once the later one wins, and the other's is a
   * branch.
   */
  async save(chatId: string, messages: M[]): Promise<void> {
    const id = await this.sessiondId(chatId);
    await ofAI(this.#save(id, messages.map(plain)));
  }

  /** The id of a chat's session in sessiond, which is made if it does not exist. */
  async sessiondId(chatId: string): Promise<string> {
    return ofAI(sessionNamed(this.#client, "ai_chat", chatId, this.#options.create));
  }

  async #save(id: string, messages: Json[]): Promise<void> {
    const path = { id };
    for (let conflicts = 0; ; conflicts++) {
      const stored = await this.#read(id);
      let same = 0;
      while (same < stored.length && isEqual(stored[same]?.message, messages[same])) same++;
      const head = stored.at(-1)?.last ?? null;
      const parent = stored[same - 1]?.last ?? null;
      const added = messages.slice(same).flatMap(messagesOf);
      try {
        if (parent !== head && (parent === null || added.length === 0)) {
          await this.#client.call("moveHead", { path, body: { seq: parent } });
        }
        if (added.length === 0) return;
        const moved = parent !== null && parent !== head;
        const body = { dialect: "native" as const, messages: added, expect_head: parent === null ? null : head };
        await this.#client.call("appendMessages", { path, body: moved ? { ...body, parent } : body });
        return;
      } catch (error) {
        const again = error instanceof SessiondError && error.code === "conflict" && conflicts < mostConflicts;
        if (!again) throw error;
      }
    }
  }

  async #read(id: string): Promise<Stored[]> {
    const found: Stored[] = [];
    let group: { item: Json; parts: Part[] } | undefined;
    const close = () => {
      const last = found.at(-1);
      if (last && group) last.message = withTexts(group.item, group.parts);
    };
    for await (const one of this.#client.list("listMessages", { path: { id }, query: { limit: pageSize } })) {
      const message = one as Message;
      const { item, of } = (message.metadata ?? {}) as { item?: Json; of?: string };
      const last = found.at(-1);
      if (of !== undefined && last && group) {
        group.parts.push(...partsOf(message));
        last.last = message.id;
        continue;
      }
      close();
      group = { item: item ?? foreign(message), parts: partsOf(message) };
      found.push({ message: null, last: message.id });
    }
    close();
    return found;
  }
}

/** A UIMessage with the id of the last message that it is stored as. */
interface Stored {
  message: Json;
  last: string;
}

/** Makes errors of a call the AI SDK's own. */
async function ofAI<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (cause) {
    if (!(cause instanceof SessiondError)) throw cause;
    throw new AISDKError({ name: "AI_SessiondError", message: cause.message, cause });
  }
}

/** The UIMessage of a message that another program appended. */
function foreign(message: Message): Json {
  const role = message.role === "user" || message.role === "system" ? message.role : "assistant";
  return { id: message.id, role, parts: [{ type: "text", text: String(message.content) }] };
}

/** The messages of a UIMessage: the results of tools are a message of their own, as a provider wants them. */
function messagesOf(message: Json): unknown[] {
  const fields = message as { id: string; role: string; parts: Record<string, Json>[] };
  const groups: { role: string; parts: Part[] }[] = [];
  const add = (role: string, parts: Part[]) => {
    const last = groups.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else if (parts.length > 0) groups.push({ role, parts });
  };
  let results: Part[] = [];
  const flush = () => {
    add("tool", results);
    results = [];
  };
  for (const part of fields.parts) {
    const tool = toolOf(part);
    if (tool) {
      add(fields.role, tool.call);
      results.push(...tool.result);
      continue;
    }
    flush();
    if (part.type === "text") add(fields.role, textPart("text", part.text));
    if (part.type === "reasoning") add(fields.role, textPart("reasoning", part.text));
  }
  flush();
  const all = groups.flatMap((group) => group.parts);
  const item = withoutTexts(message, all);
  if (groups.length === 0) return [{ kind: "unknown", role: "", parts: [], metadata: { item } }];
  return groups.map((group, n) => ({ ...group, metadata: n === 0 ? { item } : { of: fields.id } }));
}

function toolOf(part: Record<string, Json>): { call: Part[]; result: Part[] } | undefined {
  const { type, toolCallId, state, input, output, errorText } = part;
  const name = type === "dynamic-tool" ? part.toolName : /^tool-(.+)$/s.exec(String(type))?.[1];
  if (typeof name !== "string" || typeof toolCallId !== "string" || toolCallId === "") return undefined;
  if (!isStorable(name + toolCallId)) return undefined;
  const call = { tool_name: name, call_id: toolCallId };
  const said = typeof output === "string" && isStorable(output) ? output : JSON.stringify(output ?? null);
  const results: Record<string, Part> = {
    "output-available": { kind: "tool_result", ...call, text: said },
    "output-error": { kind: "tool_result", ...call, text: String(errorText), is_error: true },
    "output-denied": { kind: "tool_result", ...call, text: "denied", is_error: true },
  };
  const result = results[String(state)];
  const args = JSON.stringify(input ?? {});
  return { call: [{ kind: "tool_call", ...call, arguments: args }], result: result ? [result] : [] };
}

function isEqual(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [of, other] = [a as Record<string, Json>, b as Record<string, Json>];
  const names = Object.keys(of);
  return names.length === Object.keys(other).length && names.every((name) => isEqual(of[name], other[name]));
}
