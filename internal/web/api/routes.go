package api

import "net/http"

// Methods, as the route table writes them.
const (
	get    = http.MethodGet
	post   = http.MethodPost
	put    = http.MethodPut
	patch  = http.MethodPatch
	remove = http.MethodDelete
)

// routes is the whole API except /openapi.json and /metrics, which New adds.
func (s *Server) routes() []route {
	return []route{
		handle(post, "/v1/sessions", s.createSession, "Create a session", status(http.StatusCreated)),
		handle(get, "/v1/sessions", s.listSessions, "List sessions, newest active first", anyQuery,
			about("metadata.NAME=VALUE filters on a field of the metadata.")),
		handle(get, "/v1/sessions/{id}", s.readSession, "Read a session"),
		handle(patch, "/v1/sessions/{id}", s.patchSession, "Change a session by a JSON merge patch"),
		handle(remove, "/v1/sessions/{id}", s.deleteSession, "Put a session into the trash, or purge it",
			about("A session in the trash is not listed or found; untrash restores it whole. purge=true deletes it for good and answers {id, messages, shared, scrubbed, backups}: the messages deleted, those kept because forks share them, and the backups that still contain the session.")),
		handle(post, "/v1/sessions/{id}/untrash", s.untrashSession, "Take a session out of the trash"),

		handle(post, "/v1/sessions/{id}/messages", s.appendMessages, "Append messages", status(http.StatusCreated), limit(messageBody)),
		handle(get, "/v1/sessions/{id}/messages", s.listMessages, "Read messages"),
		handle(get, "/v1/sessions/{id}/messages/{seq}", s.getMessage, "Read a message"),
		handle(put, "/v1/sessions/{id}/messages/{seq}/pin", s.pin, "Pin a message: keep it in the context"),
		handle(remove, "/v1/sessions/{id}/messages/{seq}/pin", s.unpin, "Unpin a message"),
		handle(put, "/v1/sessions/{id}/messages/{seq}/label", s.label, "Label a message"),
		handle(remove, "/v1/sessions/{id}/messages/{seq}/label", s.unlabel, "Remove a message's label"),

		handle(put, "/v1/sessions/{id}/head", s.moveHead, "Move the head: continue from another message",
			about("The messages behind the old head stay as a branch. A new epoch begins with the overlay of the new head. With summarize the answer is 202 and a summary of the abandoned branch is made in the background; it is attached at the new head if no message was appended there since, else beside the path.")),
		handle(post, "/v1/sessions/{id}/fork", s.fork, "Fork a session at one of its messages", status(http.StatusCreated),
			about("No message is copied. The fork inherits the current overlays and undos, pins and labels on its path, settings, metadata, model and folder. It does not inherit the key, nor documents that states does not name.")),
		handle(get, "/v1/sessions/{id}/tree", s.getTree, "List the session's tree as segments without branches"),

		handle(get, "/v1/sessions/{id}/states", s.listStates, "List a session's JSON documents"),
		handle(get, "/v1/sessions/{id}/states/{name}", s.getState, "Read a JSON document"),
		handle(put, "/v1/sessions/{id}/states/{name}", s.putState, "Write a JSON document", limit(stateBody)),
		handle(patch, "/v1/sessions/{id}/states/{name}", s.patchState, "Change a JSON document by a JSON merge patch", limit(stateBody)),
		handle(post, "/v1/sessions/{id}/states/{name}", s.addToState, "Append an element to a JSON array", limit(stateBody),
			about("Creates the array if it is missing. Concurrent requests all append.")),
		handle(remove, "/v1/sessions/{id}/states/{name}", s.deleteState, "Delete a JSON document", status(http.StatusNoContent)),

		handle(post, "/v1/sessions/{id}/turns", s.takeTurn, "Append messages and get the next context", status(http.StatusCreated), limit(messageBody),
			about("The append does not depend on the context: if the context fails, appended is stored and problem says why.")),
		handle(get, "/v1/sessions/{id}/export", s.exportSession, "Export a session", streams),
		handle(get, "/v1/sessions/{id}/context", s.getContext, "Get the context that the model should see now"),

		handle(post, "/v1/sessions/{id}/flushes", s.recordFlush, "Acknowledge a memory flush",
			about("A turn requests one with the directive memory_flush, /v1/events with flush.asked.")),

		handle(get, "/v1/sessions/{id}/compactions", s.listCompactions, "List a session's compactions, oldest first"),
		handle(post, "/v1/sessions/{id}/compactions", s.compact, "Compact, or plan a compaction", status(http.StatusCreated)),
		handle(get, "/v1/sessions/{id}/compactions/{cid}", s.getCompaction, "Read a compaction"),
		handle(remove, "/v1/sessions/{id}/compactions/{cid}", s.undoCompaction, "Undo the effective compaction, or cancel a running one"),
		handle(post, "/v1/sessions/{id}/compactions/{cid}/redo", s.redoCompaction, "Redo an undone compaction"),
		handle(get, "/v1/sessions/{id}/compactions/{cid}/sources", s.compactionSources, "List the messages that a compaction hides"),

		handle(post, "/v1/route", s.route, "Find the session of an incoming message",
			about("A reset, a daily boundary or an idle window ends the key's session and begins the next one: 201. Otherwise the key's session continues: 200.")),
		handle(get, "/v1/keys", s.listKeys, "List the routing keys, newest active first"),
		handle(get, "/v1/keys/{key}", s.getKey, "Read a routing key with its generations, newest first"),
		handle(patch, "/v1/keys/{key}", s.patchKey, "Label a routing key"),

		handle(post, "/v1/sessions/{id}/calls", s.addCall, "Record a model call", status(http.StatusCreated)),
		handle(get, "/v1/sessions/{id}/calls", s.listCalls, "List a session's model calls, oldest first"),
		handle(get, "/v1/usage", s.getUsage, "Sum up sessions, messages, tokens and cost"),

		handle(get, "/v1/search", s.search, "Find messages"),
		handle(get, "/v1/files", s.filesOf, "List the sessions that read or changed a file, newest first"),
		handle(get, "/v1/queries", s.listQueries, "List the named queries"),
		handle(get, "/v1/queries/{name}", s.runQuery, "Run a named query with the URL's parameters", anyQuery),
		handle(post, "/v1/sql", s.runSQL, "Run one read-only SQL statement"),
		handle(get, "/v1/events", s.events, "Stream events (Server-Sent Events)",
			about("Each event has an id, <store>-<number>, a type, and as data {id, session_id, type, seq?, data?, created_at}; never message text. A client that reconnects with Last-Event-ID misses no event and sees none twice, also across a restart. If the events after that id are deleted, an event of type gap says where the stream continues. An event of type dropped closes a stream that the client reads too slowly.")),
		handle(post, "/v1/backups", s.backup, "Make a backup", status(http.StatusCreated)),

		handle(get, "/healthz", s.healthz, "Check that the process answers"),
		handle(get, "/readyz", s.readyz, "Check that the database answers and accepts writes"),
		handle(get, "/version", s.version, "Read the version"),
	}
}
