import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";

function variable(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run ./scripts/clients`);
  return value;
}

export const sessiond = variable("SESSIOND");
export const model = variable("MODEL");
export const scratch = variable("SCRATCH");

/** A real daemon in a folder of its own. */
export class Daemon {
  readonly home = mkdtempSync(join(scratch, "d"));
  readonly env = {
    PATH: process.env.PATH,
    HOME: this.home,
    XDG_DATA_HOME: join(this.home, "data"),
    XDG_CONFIG_HOME: join(this.home, "config"),
    XDG_RUNTIME_DIR: this.home,
  };
  url = "";
  #process: ChildProcess | undefined;

  /** Starts it, by default on TCP alone, and waits until it is ready. A port stays the same over restarts. */
  async start(...flags: string[]): Promise<this> {
    if (flags.length === 0) flags = ["--listen", this.url.replace("http://", "") || "127.0.0.1:0", "--socket", "off"];
    const child = spawn(sessiond, ["serve", ...flags], { env: this.env, stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    let said = "";
    child.stderr.on("data", (text) => (said += text));
    for await (const line of createInterface(child.stdout)) {
      said += `${line}\n`;
      const [name = "", value = ""] = line.trim().split(/\s+/);
      if (name === "http") this.url = value;
      if (name === "summaries") {
        child.stdout.resume();
        return this;
      }
    }
    throw new Error(`the daemon did not start: ${said}`);
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  get token(): string {
    return readFileSync(join(this.home, "data", "sessiond", "token"), "utf8").trim();
  }

  /** Runs a command on the daemon's database and returns what it prints. */
  run(...args: string[]): string {
    return execFileSync(sessiond, args, { env: this.env, encoding: "utf8" });
  }
}

/** Starts a daemon that ends with the tests of the file. */
export async function startDaemon(...flags: string[]): Promise<Daemon> {
  const daemon = new Daemon();
  after(async () => {
    await daemon.stop("SIGKILL");
    rmSync(daemon.home, { recursive: true, force: true });
  });
  return daemon.start(...flags);
}

/** A request to the model with its answer. */
export interface Exchange {
  kind: string;
  prompt?: string;
  text?: string;
  body: string;
  usage: { input: number; cache_read?: number; cache_write?: number; output: number };
}

/** What the model was asked and answered, oldest first. */
export async function exchanges(): Promise<Exchange[]> {
  return (await (await fetch(`${model}/exchanges`)).json()) as Exchange[];
}

/** Random numbers that are the same in each run. */
export function randomOf(seed: number): (below: number) => number {
  return (below) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
}

/** Waits until something is so. */
export async function eventually(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 30_000; Date.now() < end; await new Promise((done) => setTimeout(done, 50))) {
    if (await isSo()) return;
  }
  throw new Error(`${what}: not after 30 seconds`);
}
