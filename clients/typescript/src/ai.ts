import { AISDKError, type UIMessage, validateUIMessages } from "ai";
import { Client, type components, SessiondError } from "./index.js";
import { type Json, plain, sessionNamed } from "./message.js";

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
 * Loads and saves chats of the AI SDK in sessiond, in its dialect "ui": a UIMessage is stored as what it says, text,
 * reasoning, and the calls and results of tools, which sessiond searches, counts and sends to any provider.
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
      const added = messages.slice(same);
      try {
        if (parent !== head && (parent === null || added.length === 0)) {
          await this.#client.call("moveHead", { path, body: { seq: parent } });
        }
        if (added.length === 0) return;
        const moved = parent !== null && parent !== head;
        const body = { dialect: "ui" as const, messages: added, expect_head: parent === null ? null : head };
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
    for (let cursor: string | null | undefined = ""; typeof cursor === "string"; ) {
      const query = { dialect: "ui" as const, limit: pageSize, ...(cursor ? { cursor } : {}) };
      const page: Page = await this.#client.call("listMessages", { path: { id }, query });
      for (const [n, message] of (page.data ?? []).entries()) {
        found.push({ message: message as Json, last: page.places?.[n]?.id ?? "" });
      }
      cursor = page.next_cursor;
    }
    return found;
  }
}

type Page = components["schemas"]["MessageList"];

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

function isEqual(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [of, other] = [a as Record<string, Json>, b as Record<string, Json>];
  const names = Object.keys(of);
  return names.length === Object.keys(other).length && names.every((name) => isEqual(of[name], other[name]));
}
