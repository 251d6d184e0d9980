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

// routes is the whole API; /openapi.json and /metrics, which are no JSON of ours, stand in New.
func (s *Server) routes() []route {
	return []route{
		handle(post, "/v1/sessions", s.createSession, "Create a session", status(http.StatusCreated)),
		handle(get, "/v1/sessions", s.listSessions, "List sessions, newest active first", anyQuery,
			about("metadata.NAME=VALUE filters on a field of the metadata.")),
		handle(get, "/v1/sessions/{id}", s.readSession, "Read a session"),
		handle(patch, "/v1/sessions/{id}", s.patchSession, "Change a session by a JSON merge patch"),
		handle(remove, "/v1/sessions/{id}", s.deleteSession, "Put a session into the trash, or purge it",
			about("In the trash it is neither listed nor found, and comes back whole. purge=true deletes it for good and answers {id, messages, shared, scrubbed, backups}: how many messages went and how many stay for forks, and which backups still hold it.")),
		handle(post, "/v1/sessions/{id}/untrash", s.untrashSession, "Take a session out of the trash"),

		handle(post, "/v1/sessions/{id}/messages", s.appendMessages, "Append messages to the path", status(http.StatusCreated), limit(messageBody)),
		handle(get, "/v1/sessions/{id}/messages", s.listMessages, "Read messages"),
		handle(get, "/v1/sessions/{id}/messages/{seq}", s.getMessage, "Read a message"),
		handle(put, "/v1/sessions/{id}/messages/{seq}/pin", s.pin, "Keep a message in the context"),
		handle(remove, "/v1/sessions/{id}/messages/{seq}/pin", s.unpin, "Let a message leave the context again"),
		handle(put, "/v1/sessions/{id}/messages/{seq}/label", s.label, "Give a message a label"),
		handle(remove, "/v1/sessions/{id}/messages/{seq}/label", s.unlabel, "Take a message's label away"),

		handle(put, "/v1/sessions/{id}/head", s.moveHead, "Go on from another message",
			about("What is left stays as a branch. A new epoch begins, with the overlay that is in force at the new head. With summarize the answer is 202 and a branch summary is made behind it: attached at the new head if nothing was said there since, else beside the path.")),
		handle(post, "/v1/sessions/{id}/fork", s.fork, "Make a session that goes on from a message of this one", status(http.StatusCreated),
			about("No message is copied. The fork inherits the overlays and undos as they are now, pins and labels on its path, settings, metadata, model and folder; not the key, and no state that is not named.")),
		handle(get, "/v1/sessions/{id}/tree", s.getTree, "The session's tree, in segments without a branch"),

		handle(get, "/v1/sessions/{id}/states", s.listStates, "List a session's JSON documents"),
		handle(get, "/v1/sessions/{id}/states/{name}", s.getState, "Read a JSON document"),
		handle(put, "/v1/sessions/{id}/states/{name}", s.putState, "Put a JSON document there", limit(stateBody)),
		handle(patch, "/v1/sessions/{id}/states/{name}", s.patchState, "Change a JSON document by a merge patch", limit(stateBody)),
		handle(post, "/v1/sessions/{id}/states/{name}", s.addToState, "Append an element to a JSON array", limit(stateBody),
			about("Makes the array where there is none. Of two at once none is lost.")),
		handle(remove, "/v1/sessions/{id}/states/{name}", s.deleteState, "Take a JSON document away", status(http.StatusNoContent)),

		handle(post, "/v1/sessions/{id}/turns", s.takeTurn, "Append, and get the next context", status(http.StatusCreated), limit(messageBody),
			about("The append never depends on the context: if that fails, appended stands and problem says why.")),
		handle(get, "/v1/sessions/{id}/export", s.exportSession, "Take a session out, whole or for reading", streams),
		handle(get, "/v1/sessions/{id}/context", s.getContext, "What the model should see now"),

		handle(post, "/v1/sessions/{id}/flushes", s.recordFlush, "Acknowledge a memory flush",
			about("turns asks for one with the directive memory_flush, /v1/events with flush.asked.")),

		handle(get, "/v1/sessions/{id}/compactions", s.listCompactions, "List a session's compactions, oldest first"),
		handle(post, "/v1/sessions/{id}/compactions", s.compact, "Compact, or see what that would do", status(http.StatusCreated)),
		handle(get, "/v1/sessions/{id}/compactions/{cid}", s.getCompaction, "Read a compaction"),
		handle(remove, "/v1/sessions/{id}/compactions/{cid}", s.undoCompaction, "Undo the compaction that is in force, or cancel one that runs"),
		handle(post, "/v1/sessions/{id}/compactions/{cid}/redo", s.redoCompaction, "Take an undo back"),
		handle(get, "/v1/sessions/{id}/compactions/{cid}/sources", s.compactionSources, "The messages that a compaction hid"),

		handle(post, "/v1/route", s.route, "Find the session that something belongs to which came in",
			about("A reset, a daily boundary or an idle window ends the session of a key, and the next one begins: 201. Otherwise the key's session goes on: 200.")),
		handle(get, "/v1/keys", s.listKeys, "List the routing keys, newest active first"),
		handle(get, "/v1/keys/{key}", s.getKey, "A routing key with its generations, newest first"),
		handle(patch, "/v1/keys/{key}", s.patchKey, "Label a routing key"),

		handle(post, "/v1/sessions/{id}/calls", s.addCall, "Record a model call", status(http.StatusCreated)),
		handle(get, "/v1/sessions/{id}/calls", s.listCalls, "List a session's model calls, oldest first"),
		handle(get, "/v1/usage", s.getUsage, "Sums of sessions, messages, tokens and cost"),

		handle(get, "/v1/search", s.search, "Find messages"),
		handle(get, "/v1/files", s.filesOf, "List the sessions that read or changed a file, the last first"),
		handle(get, "/v1/queries", s.listQueries, "List the named queries"),
		handle(get, "/v1/queries/{name}", s.runQuery, "Run a named query; its parameters are the URL's", anyQuery),
		handle(post, "/v1/sql", s.runSQL, "Run one statement that only reads"),
		handle(get, "/v1/events", s.events, "What happens, as Server-Sent Events",
			about("Each event has an id, <store>-<number>, a type, and as data {id, session_id, type, seq?, data?, created_at}; never what was said. A listener that connects again with Last-Event-ID misses nothing and sees nothing twice, also over a restart. An event of type gap says from where the stream goes on when events are no longer kept; one of type dropped is the last before a stream that is read too slowly is closed.")),
		handle(post, "/v1/backups", s.backup, "Make a backup", status(http.StatusCreated)),

		handle(get, "/healthz", s.healthz, "Whether the process answers"),
		handle(get, "/readyz", s.readyz, "Whether the database answers"),
		handle(get, "/version", s.version, "What is running"),
	}
}
