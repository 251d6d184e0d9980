// written by `sessiond connect`; `sessiond connect --remove` deletes this file
const sessiond = ""
const program = ""
const events = []

import { spawn } from "node:child_process"

const added = new Map() // session → event → text that each request of the session includes
const compacted = new Set() // sessions with a compaction whose result no request has yet
const begun = new Set() // sessions that began or went on in this process
const known = new Set() // sessions that sent a request

// hook runs `sessiond hook` on an event and returns the text that it adds to the context.
function hook(event, fields) {
  return new Promise((resolve) => {
    const child = spawn(sessiond, ["hook", program], { stdio: ["pipe", "pipe", "ignore"], timeout: 10000 })
    let out = ""
    child.on("error", () => resolve(""))
    child.on("close", (code) => resolve(code === 0 ? textOf(out) : ""))
    child.stdout.on("data", (data) => (out += data))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify({ hook_event_name: event, ...fields }))
  })
}

function textOf(out) {
  try {
    return JSON.parse(out).hookSpecificOutput?.additionalContext ?? ""
  } catch {
    return out.trim()
  }
}

// tell runs a hook if its event is enabled. The text replaces the event's previous text in the session's requests.
async function tell(name, id, fields) {
  if (!events.includes(name)) return
  const text = await hook(name.split(":")[0], { session_id: id, cwd: process.cwd(), ...fields })
  if (!added.has(id)) added.set(id, new Map())
  added.get(id).set(name, text)
}

function textsOf(id) {
  return [...(added.get(id)?.values() ?? [])].filter(Boolean)
}

async function afterCompaction(id, fields) {
  await tell("PostCompact", id, fields)
  await tell("SessionStart:compact", id, { source: "compact", ...fields })
}

// end reports only the newest session. The import that its hook starts reads all sessions.
async function end(fields) {
  const id = [...known].at(-1)
  if (id) await tell("SessionEnd", id, { reason: "other", ...fields })
}

// isTitle reports whether a request asks for a session's title, by its system text.
function isTitle(system) {
  return /^\s*You are a title generator/.test(system[0] ?? "")
}

function isEdit(tool) {
  return tool === "edit" || tool === "write"
}

// opencode 1.x
async function server({ directory }) {
  const here = { cwd: directory }
  return {
    event: async ({ event }) => {
      const at = event.properties
      if (event.type === "session.created") {
        begun.add(at.info.id)
        await tell("SessionStart:startup", at.info.id, { source: "startup", ...here })
      }
      if (event.type === "session.compacted") compacted.add(at.sessionID)
    },
    "chat.message": async (input, output) => {
      known.add(input.sessionID)
      if (!begun.has(input.sessionID)) { // an earlier process compacted it, if anyone did
        begun.add(input.sessionID)
        await tell("SessionStart:compact", input.sessionID, { source: "resume", ...here })
      }
      const prompt = output.parts.map((part) => part.text ?? "").join("\n")
      await tell("UserPromptSubmit", input.sessionID, { prompt, ...here })
    },
    "experimental.session.compacting": async ({ sessionID }) => tell("PreCompact", sessionID, here),
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      if (isTitle(output.system)) return
      if (compacted.delete(sessionID)) await afterCompaction(sessionID, here)
      output.system.push(...textsOf(sessionID))
    },
    "tool.execute.before": async ({ tool, sessionID }, { args }) => {
      if (isEdit(tool)) await tell("PreToolUse:Edit|Write", sessionID, { tool_name: tool, tool_input: { file_path: args.filePath }, ...here })
    },
    dispose: () => end(here),
  }
}

// opencode 2
async function setup(context) {
  if (!context.session?.hook) return // an early 2 without hooks of sessions
  await context.session.hook("prompt", (event) => tell("UserPromptSubmit", event.sessionID, { prompt: event.prompt?.text ?? "" }))
  await context.session.hook("compaction", async (event) => {
    compacted.add(event.sessionID)
    await tell("PreCompact", event.sessionID)
  })
  await context.session.hook("context", async (event) => {
    const id = event.sessionID
    if (event.kind && event.kind !== "primary") return
    if (!known.has(id)) {
      known.add(id)
      await tell("SessionStart:startup", id, { source: "startup" })
    }
    if (compacted.delete(id)) await afterCompaction(id)
    event.system.push(...textsOf(id).map((text) => ({ type: "text", text })))
  })
  return () => end()
}

export default { id: "sessiond", server, setup }
