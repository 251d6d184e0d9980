package codex

import (
	"strings"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// spawnTool is the tool that starts a sub-agent.
const spawnTool = "spawn_agent"

// started is a thread that a call started, as a record at an offset says it.
type started struct {
	call, thread string
	at           int64
}

// spawned returns the thread that a record says was started, empty for none. The call's output says it,
// and, by version, an event of its own or that of the call's end.
func spawned(rec *record) (s started) {
	switch {
	case rec.sub == "function_call_output" && rec.kind == typeItem:
		s.call, s.thread = rec.payload.String("call_id"), agentIn(joined(rec.payload.Get("output")), "agent_id")
	case rec.kind == typeEvent:
		s.call, s.thread = spawnEvent(rec.payload)
	}
	s.at = rec.offset
	return s
}

// spawnEvent returns the call and the thread of an event that says that the thread was started.
func spawnEvent(event jsonx.Object) (call, thread string) {
	item := event
	if event.String("type") == "item_completed" {
		item = event.Inner("item")
	}
	switch item.String("type") {
	case "collab_agent_spawn_end":
		return item.String("call_id"), item.String("new_thread_id")
	case "CollabAgentToolCall":
		threads, _ := jsonx.ReadArray(item.Get("receiver_thread_ids"))
		if len(threads) == 1 {
			thread, _ = jsonx.Text(threads[0])
		}
		return item.String("id"), thread
	case "sub_agent_activity":
		call = item.String("event_id")
	case "SubAgentActivity":
		call = item.String("id")
	}
	if call == "" || item.String("kind") != "started" {
		return "", ""
	}
	return call, item.String("agent_thread_id")
}

// agentIn returns what the output of spawn_agent says under a key.
func agentIn(output, key string) string {
	if !strings.HasPrefix(output, "{") || !strings.Contains(output, key) {
		return ""
	}
	o, _ := jsonx.ReadObject([]byte(output))
	return o.String(key)
}

// startOf returns which call a message of the parent says started a thread, by its id, or by its path
// among the agents, "" for none.
func startOf(thread, path string) func(*session.Message) string {
	return func(m *session.Message) string {
		for _, p := range m.Results() {
			if output := p.Content(); agentIn(output, "agent_id") == thread ||
				path != "" && agentIn(output, "task_name") == path {
				return p.CallID
			}
		}
		if m.Kind != session.KindCustom {
			return ""
		}
		extra, _ := jsonx.ReadObject(m.Extra)
		if call, started := spawnEvent(extra.Inner("line").Inner("payload")); started == thread {
			return call
		}
		return ""
	}
}
