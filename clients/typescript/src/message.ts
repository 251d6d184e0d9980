import { createHash } from "node:crypto";
import type { Client, components } from "./index.js";

// What the stores of frameworks share: an item of a framework is a message whose parts are what sessiond understands,
// and whose metadata gives the item back.

/** A message as the API gives it. */
export type Message = components["schemas"]["Message"];
/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A part of a message. */
export interface Part {
  kind: "text" | "reasoning" | "tool_call" | "tool_result";
  text?: string;
  tool_name?: string;
  call_id?: string;
  arguments?: string;
  is_error?: boolean;
}

const shortest = 64; // characters of a text that metadata does not repeat

/** Returns what gives a value back together with the texts of the parts: {"$part": n} stands for that of the n-th. */
export function withoutTexts(value: Json, parts: Part[]): Json {
  const at = new Map<string, number>();
  for (const [n, part] of parts.entries()) {
    const text = part.text ?? part.arguments ?? "";
    if (text.length >= shortest && !at.has(text)) at.set(text, n);
  }
  const replace = (value: Json): Json => {
    if (typeof value === "string") {
      const n = at.get(value);
      return n === undefined ? value : { $part: n };
    }
    if (Array.isArray(value)) return value.map(replace);
    if (value === null || typeof value !== "object") return value;
    const copy = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, replace(one)]));
    return "$part" in value || "$object" in value ? { $object: copy } : copy;
  };
  return replace(value);
}

/** The inverse of withoutTexts. */
export function withTexts(value: Json, parts: Part[]): Json {
  if (Array.isArray(value)) return value.map((one) => withTexts(one, parts));
  if (value === null || typeof value !== "object") return value;
  if (typeof value.$part === "number") return parts[value.$part]?.text ?? parts[value.$part]?.arguments ?? "";
  const fields = "$object" in value ? (value.$object as { [name: string]: Json }) : value;
  return Object.fromEntries(Object.entries(fields).map(([name, one]) => [name, withTexts(one, parts)]));
}

/** The parts of a stored message. A list leaves out the text of a part that is the whole content. */
export function partsOf(message: Message): Part[] {
  const parts = (message.parts ?? []).map((part) => ({ ...part }) as Part);
  const silent = parts.filter((part) => part.kind !== "tool_call" && part.text === undefined);
  if (silent.length === 1 && silent[0]) silent[0].text = String(message.content);
  return parts;
}

/** The part of a text that a column can hold; none for a NUL or half of a surrogate pair. */
export function textPart(kind: "text" | "reasoning", text: unknown): Part[] {
  return typeof text === "string" && isStorable(text) ? [{ kind, text }] : [];
}

/** Reports whether a text can be stored as it is: without a NUL and halves of surrogate pairs. */
export function isStorable(text: string): boolean {
  return !text.includes("\0") && text.isWellFormed();
}

/** The JSON that a value is sent as. */
export function plain(value: unknown): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}

const idOfSessiond = /^\d{8}_\d{3,}$/;

/**
 * Finds the session that has a name in a field of its metadata, or an id of sessiond, and makes one for a new name. Of
 * two processes at once both get the same one: they use the same key.
 */
export async function sessionNamed(
  client: Client,
  field: string,
  name: string,
  create: components["schemas"]["NewSessionRequest"] = {},
): Promise<string> {
  if (idOfSessiond.test(name)) return (await client.call("readSession", { path: { id: name } })).id;
  const { data } = await client.call("listSessions", { query: { metadata: { [field]: name } } });
  if (data?.[0]) return data[0].id;
  const body = { ...create, metadata: { ...(create.metadata as object), [field]: name } };
  const key = createHash("sha256")
    .update(JSON.stringify([field, name]))
    .digest("hex");
  return (await client.call("createSession", { body, headers: { "idempotency-key": `${field}-${key}` } })).id;
}
