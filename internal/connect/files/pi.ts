// written by `sessiond connect`; `sessiond connect --remove pi` deletes this file
const sessiond = "";
const events = [];

import { spawn } from "node:child_process";

// hook runs `sessiond hook pi` on an event and returns the text that it adds to the context.
function hook(event: string, fields: object): Promise<string> {
  return new Promise((resolve) => {
    const child = spawn(sessiond, ["hook", "pi"], { stdio: ["pipe", "pipe", "ignore"], timeout: 10000 });
    let out = "";
    child.on("error", () => resolve(""));
    child.on("close", (code: number) => resolve(code === 0 ? textOf(out) : ""));
    child.stdout.on("data", (data: string) => (out += data));
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify({ hook_event_name: event, ...fields }));
  });
}

function textOf(out: string): string {
  try {
    return JSON.parse(out).hookSpecificOutput?.additionalContext ?? "";
  } catch {
    return out.trim();
  }
}

export default function (pi: any) {
  // ask runs a hook for the session of ctx, if its event is enabled.
  async function ask(name: string, ctx: any, fields: object = {}): Promise<string> {
    if (!(events as string[]).includes(name)) return "";
    const session = ctx.sessionManager;
    return hook(name.split(":")[0], {
      session_id: session.getSessionId(),
      transcript_path: session.getSessionFile(),
      cwd: ctx.cwd,
      ...fields,
    });
  }

  const message = (content: string) => ({ customType: "sessiond", content, display: false });
  const say = (content: string) => content && pi.sendMessage(message(content));
  let lost = ""; // what a compaction lost, for the next prompt: a message of its own would be a turn that nobody asked for


  pi.on("session_start", async (event: any, ctx: any) => {
    if (event.reason === "startup" || event.reason === "new") say(await ask("SessionStart:startup", ctx, { source: "startup" }));
    lost = await ask("SessionStart:compact", ctx, { source: "resume" });
  });
  pi.on("session_before_compact", async (_event: any, ctx: any) => {
    await ask("PreCompact", ctx);
  });
  pi.on("session_compact", async (event: any, ctx: any) => {
    await ask("PostCompact", ctx);
    lost = await ask("SessionStart:compact", ctx, { source: "compact" });
    if (event.willRetry) {
      say(lost);
      lost = "";
    }
  });
  pi.on("before_agent_start", async (event: any, ctx: any) => {
    const texts = [lost, await ask("UserPromptSubmit", ctx, { prompt: event.prompt })].filter(Boolean);
    lost = "";
    if (texts.length > 0) return { message: message(texts.join("\n")) };
  });
  pi.on("tool_call", async (event: any, ctx: any) => {
    if (event.toolName !== "edit" && event.toolName !== "write") return;
    say(await ask("PreToolUse:Edit|Write", ctx, { tool_name: event.toolName, tool_input: { file_path: event.input.path } }));
  });
  pi.on("session_shutdown", async (_event: any, ctx: any) => {
    await ask("SessionEnd", ctx, { reason: "other" });
  });
}
