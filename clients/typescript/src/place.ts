import { readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join } from "node:path";

/** Where a daemon listens, and what it wants to see. One of url and socket is set. */
export interface Place {
  /** Base URL of HTTP, like http://127.0.0.1:7433. */
  url?: string;
  /** Path of the Unix socket, whose permissions are its protection. */
  socket?: string;
  /** Bearer token; not needed on the socket. */
  token?: string;
}

const settings = ["db", "listen", "socket", "token_file"] as const;
type Settings = Partial<Record<(typeof settings)[number], string>>;
type Environment = Record<string, string | undefined>;

/**
 * Finds the daemon as the sessiond command does: configuration file, then SESSIOND_DB, SESSIOND_LISTEN, SESSIOND_SOCKET
 * and SESSIOND_TOKEN_FILE; then what a running daemon says of itself in a file beside its database.
 */
export async function findDaemon(env: Environment = process.env): Promise<Place> {
  const given = await readSettings(env);
  const folder = join(dataFolder(env), "sessiond");
  const onServer = /^postgres(ql)?:/.test(given.db ?? "");
  const db = given.db && !onServer ? given.db : join(folder, "sessions.db");
  const data = dirname(db);
  const running = onServer ? {} : await readRunning(join(data, `.daemon-${basename(db)}.json`));
  const token = await readText(given.token_file || join(data, "token"));
  const listen = running.pid ? running.address : (given.listen ?? "127.0.0.1:7433");
  const socket = running.pid ? running.socket : await socketPath(given.socket, data, env);
  if (listen && token) return { url: `http://${listen.replace(/^:/, "127.0.0.1:")}`, token: token.trim() };
  if (socket) return { socket };
  return { url: `http://${listen || "127.0.0.1:7433"}` };
}

interface Running {
  pid?: number;
  address?: string;
  socket?: string;
}

async function readRunning(path: string): Promise<Running> {
  try {
    return JSON.parse((await readText(path)) ?? "{}") as Running;
  } catch {
    return {};
  }
}

async function socketPath(named: string | undefined, data: string, env: Environment): Promise<string | undefined> {
  if (named === "off" || (!named && process.platform === "win32")) return undefined;
  if (named) return named;
  const runtime = env.XDG_RUNTIME_DIR || (process.platform === "linux" ? `/run/user/${process.getuid?.()}` : "");
  const isFolder =
    runtime !== "" &&
    (await stat(runtime).then(
      (s) => s.isDirectory(),
      () => false,
    ));
  return join(isFolder ? runtime : data, "sessiond.sock");
}

/** Reads the four settings. They are strings at the top of the configuration file, one a line. */
async function readSettings(env: Environment): Promise<Settings> {
  const found: Settings = {};
  const text = await readText(env.SESSIOND_CONFIG || join(configFolder(env), "sessiond", "config.yaml"));
  for (const line of (text ?? "").split(/\r?\n/)) {
    const [, name, value = ""] = /^([a-z_]+):\s*(.*?)\s*$/.exec(line) ?? [];
    const setting = settings.find((s) => s === name);
    if (setting) found[setting] = scalar(value);
  }
  for (const setting of settings) {
    const value = env[`SESSIOND_${setting.toUpperCase()}`];
    if (value !== undefined) found[setting] = value;
  }
  return found;
}

function scalar(value: string): string | undefined {
  const quoted = /^"(.*?)"(?:\s+#.*)?$|^'(.*?)'(?:\s+#.*)?$/.exec(value);
  if (quoted) return quoted[1]?.replaceAll('\\"', '"').replaceAll("\\\\", "\\") ?? quoted[2]?.replaceAll("''", "'");
  const plain = value.replace(/(^|\s)#.*$/, "");
  return plain === "" || plain === "~" || plain === "null" ? undefined : plain;
}

function dataFolder(env: Environment): string {
  return folder(env, "XDG_DATA_HOME", "LOCALAPPDATA", ["AppData", "Local"], [".local", "share"]);
}

function configFolder(env: Environment): string {
  return folder(env, "XDG_CONFIG_HOME", "APPDATA", ["AppData", "Roaming"], [".config"]);
}

function folder(env: Environment, xdg: string, windows: string, usual: string[], unix: string[]): string {
  const named = env[xdg];
  if (named && isAbsolute(named)) return named;
  const home = env.HOME || homedir();
  if (process.platform === "win32") return env[windows] || join(home, ...usual);
  if (process.platform === "darwin") return join(home, "Library", "Application Support");
  return join(home, ...unix);
}

async function readText(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}
