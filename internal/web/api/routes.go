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
		handle(get, "/v1/sessions", s.listSessions, "List sessions, newest active first", memory(listAnswer),
			byMetadata()),
		handle(get, "/v1/sessions/{id}", s.readSession, "Read a session"),
		handle(patch, "/v1/sessions/{id}", s.patchSession, "Change a session by a JSON merge patch"),
		handle(remove, "/v1/sessions/{id}", s.deleteSession, "Put a session into the trash, or purge it",
			about("A session in the trash is not in lists or in search; untrash restores it. purge=true deletes it for good. "+
				"The answer is then {id, messages, shared, scrubbed, backups}: the number of deleted messages, "+
				"the number of messages that stay because forks share them, whether the files were rewritten, "+
				"and the backups that still contain the session.")),
		handle(post, "/v1/sessions/{id}/untrash", s.untrashSession, "Take a session out of the trash"),

		handle(post, "/v1/sessions/{id}/messages", s.appendMessages, "Append messages", status(http.StatusCreated),
			limit(MessageBody)),
		handle(get, "/v1/sessions/{id}/messages", s.listMessages, "List messages, oldest first", memory(messageAnswer)),
		handle(post, "/v1/sessions/{id}/messages/pop", s.popMessage, "Take the last message back",
			memory(messageAnswer),
			about("The answer is the message that is the head, and the head moves before it, in one step. Nothing is deleted: "+
				"the message stays as a branch, and the next append begins another.")),
		handle(get, "/v1/sessions/{id}/messages/{seq}", s.readMessage, "Read a message"),
		handle(put, "/v1/sessions/{id}/messages/{seq}/pin", s.pinMessage, "Pin a message: keep it in the context"),
		handle(remove, "/v1/sessions/{id}/messages/{seq}/pin", s.unpinMessage, "Unpin a message"),
		handle(put, "/v1/sessions/{id}/messages/{seq}/label", s.labelMessage, "Label a message: set its first tag"),
		handle(remove, "/v1/sessions/{id}/messages/{seq}/label", s.unlabelMessage, "Remove a message's first tag"),
		handle(put, "/v1/sessions/{id}/messages/{seq}/tags/{tag}", s.tagMessage, "Tag a message"),
		handle(remove, "/v1/sessions/{id}/messages/{seq}/tags/{tag}", s.untagMessage, "Remove a tag of a message"),
		handle(get, "/v1/sessions/{id}/messages/{seq}/note", s.readMessageNote, "Read the note of a message"),
		handle(put, "/v1/sessions/{id}/messages/{seq}/note", s.putMessageNote, "Write the note of a message",
			about("If-Match with the ETag that was read rejects the text if somebody else changed the note meanwhile.")),

		handle(get, "/v1/tags", s.listTags, "List the tags, those of the most sessions first"),
		handle(put, "/v1/sessions/{id}/tags/{tag}", s.tagSession, "Tag a session"),
		handle(remove, "/v1/sessions/{id}/tags/{tag}", s.untagSession, "Remove a tag of a session"),
		handle(get, "/v1/sessions/{id}/note", s.readSessionNote, "Read the note of a session"),
		handle(put, "/v1/sessions/{id}/note", s.putSessionNote, "Write the note of a session",
			about("If-Match with the ETag that was read rejects the text if somebody else changed the note meanwhile.")),
		handle(get, "/v1/sessions/{id}/marks", s.listMarks, "List the pins, tags and notes of a session and its messages",
			memory(listAnswer)),

		handle(put, "/v1/sessions/{id}/head", s.moveHead, "Move the head: continue from another message",
			about("The messages up to the old head stay as a branch. Compactions that lie on the new path take effect. "+
				"With summarize the answer is 202, and a summary of the abandoned branch is made in the background. "+
				"It is appended at the new head, or beside the path if a message was appended there in the meantime.")),
		handle(post, "/v1/sessions/{id}/fork", s.forkSession, "Fork a session at one of its messages",
			status(http.StatusCreated),
			about("No message is copied. The fork inherits compactions, undos, pins and labels on its path, and settings, "+
				"metadata, model and working directory. It does not inherit the routing key. "+
				"It gets copies only of the documents that states names.")),
		handle(get, "/v1/sessions/{id}/tree", s.readTree, "List a session's tree, oldest segments first",
			about("A segment is a run of messages without a branch.")),

		handle(get, "/v1/sessions/{id}/states", s.listStates, "List a session's JSON documents", memory(listAnswer)),
		handle(put, "/v1/sessions/{id}/states", s.putStates, "Write several JSON documents in one step",
			limit(MessageBody), about("All of them change, or none. Documents that the request does not name stay. "+
				"The answer lists those that were written.")),
		handle(patch, "/v1/sessions/{id}/states", s.patchStates,
			"Change several JSON documents by JSON merge patches in one step", limit(MessageBody),
			about("All of them change, or none.")),
		handle(get, "/v1/sessions/{id}/states/{name}", s.readState, "Read a JSON document"),
		handle(put, "/v1/sessions/{id}/states/{name}", s.putState, "Write a JSON document", limit(stateBody)),
		handle(patch, "/v1/sessions/{id}/states/{name}", s.patchState, "Change a JSON document by a JSON merge patch",
			limit(stateBody)),
		handle(post, "/v1/sessions/{id}/states/{name}", s.addToState, "Append an element to a JSON array", limit(stateBody),
			about("The array is created if it does not exist. Concurrent requests all append.")),
		handle(remove, "/v1/sessions/{id}/states/{name}", s.deleteState, "Delete a JSON document",
			status(http.StatusNoContent)),

		handle(post, "/v1/sessions/{id}/turns", s.takeTurn, "Append messages and get the next context",
			status(http.StatusCreated), limit(MessageBody),
			about("The append and the context are independent: if no context can be built, "+
				"the messages are stored all the same, context is null, and problem says why. Send request, "+
				"with model and tools, to the provider; append its reply together with the record of the call, "+
				"which names context_id.")),
		handle(get, "/v1/sessions/{id}/export", s.exportSession, "Export a session", streams, memory(messageAnswer)),
		handle(get, "/v1/sessions/{id}/context", s.readContext, "Read the context that the model should see now",
			memory(contextAnswer),
			about("Nothing is written, so there is no context_id. A turn answers the same context and records it.")),

		handle(post, "/v1/sessions/{id}/flushes", s.recordFlush, "Acknowledge a memory flush",
			about("A turn requests a memory flush with the directive memory_flush, "+
				"the event stream with an event of type flush.asked. Acknowledge it after the agent has saved its memory.")),

		handle(get, "/v1/sessions/{id}/compactions", s.listCompactions, "List a session's compactions, oldest first",
			memory(listAnswer)),
		handle(post, "/v1/sessions/{id}/compactions", s.compactSession, "Compact, or plan a compaction",
			status(http.StatusCreated)),
		handle(get, "/v1/sessions/{id}/compactions/{cid}", s.readCompaction, "Read a compaction"),
		handle(remove, "/v1/sessions/{id}/compactions/{cid}", s.undoCompaction,
			"Undo the compaction in effect, or cancel a running one"),
		handle(post, "/v1/sessions/{id}/compactions/{cid}/redo", s.redoCompaction, "Redo an undone compaction"),
		handle(get, "/v1/sessions/{id}/compactions/{cid}/sources", s.listCompactionSources,
			"List the messages that a compaction hides, oldest first", memory(messageAnswer)),

		handle(post, "/v1/route", s.routeMessage, "Find the session of an incoming message",
			about("The answer is 200 if the key's session continues, and 201 if a new one begins: at the first message, "+
				"after a reset command, at the daily boundary or after idle time.")),
		handle(get, "/v1/keys", s.listKeys, "List the routing keys, newest active first"),
		handle(get, "/v1/keys/{key}", s.readKey, "Read a routing key with its generations, newest first"),
		handle(patch, "/v1/keys/{key}", s.patchKey, "Label a routing key"),

		handle(post, "/v1/sessions/{id}/calls", s.recordCall, "Record a model call", status(http.StatusCreated)),
		handle(get, "/v1/sessions/{id}/calls", s.listCalls, "List a session's model calls, oldest first"),
		handle(get, "/v1/usage", s.readUsage, "Sum up sessions, messages, tokens and cost", whole),

		handle(get, "/v1/search", s.searchMessages, "Search messages", memory(searchAnswer), byMetadata()),
		handle(get, "/v1/files", s.listFileSessions, "List the sessions that read or changed a file, newest first"),
		handle(post, "/v1/hook", s.answerHook, "Answer a hook of an agent program",
			about("What sessiond hook says, which asks here before it reads the database itself.")),
		handle(get, "/v1/queries", s.listQueries, "List the named queries", whole),
		handle(get, "/v1/queries/{name}", s.runQuery, "Run a named query", whole, memory(tableAnswer),
			anyQuery("arguments", "form", "Parameters of the query, as GET /v1/queries lists them: limit=3")),
		handle(post, "/v1/sql", s.runSQL, "Run one read-only SQL statement", whole, memory(tableAnswer)),

		handle(post, "/v1/sources/{program}/lines", s.appendLines, "Append lines to a transcript",
			status(http.StatusCreated), limit(MessageBody),
			about("The lines are stored as they came, and a session is imported from them within seconds, as from a file "+
				"of the program. A line whose uuid the transcript has is left out; lines without one are never taken for "+
				"doubles. A session that was purged gets no lines: 409.")),
		handle(get, "/v1/sources/{program}/lines", s.listLines, "List the lines of a transcript, oldest first",
			memory(messageAnswer)),
		handle(remove, "/v1/sources/{program}/lines", s.deleteLines, "Delete a transcript, and purge its sessions",
			about("Without a subpath the transcripts under the session are deleted, too. A session of which another transcript "+
				"has lines, too, as that of another project, is not purged.")),
		handle(get, "/v1/sources/{program}/sessions", s.listTranscripts,
			"List the sessions of a project that have transcripts"),
		handle(get, "/v1/sources/{program}/subpaths", s.listSubpaths, "List the subpaths of a session that have transcripts"),
		handle(get, "/v1/sources/{program}/summaries", s.listSummaries, "List the clients' summaries of sessions",
			memory(listAnswer)),

		handle(post, "/v1/conversations", s.createConversation, "Create a conversation", limit(MessageBody),
			about("A conversation is a session: conv_ and its id. It is searched, counted and exported like any other.")),
		handle(get, "/v1/conversations/{conversation_id}", s.readConversation, "Read a conversation"),
		handle(post, "/v1/conversations/{conversation_id}", s.updateConversation, "Replace a conversation's metadata"),
		handle(remove, "/v1/conversations/{conversation_id}", s.deleteConversation, "Put a conversation into the trash",
			about("Its session is purged by DELETE /v1/sessions/{id}?purge=true, and untrash restores it.")),
		handle(post, "/v1/conversations/{conversation_id}/items", s.createConversationItems, "Add items to a conversation",
			limit(MessageBody), includes,
			about("Each item is a message of the session. An item without an id gets one; an item of an unknown type is kept.")),
		handle(get, "/v1/conversations/{conversation_id}/items", s.listConversationItems,
			"List a conversation's items, newest first", memory(messageAnswer), includes,
			about("A page ends at its limit, or at 4 MiB.")),
		handle(get, "/v1/conversations/{conversation_id}/items/{item_id}", s.readConversationItem,
			"Read an item of a conversation", memory(messageAnswer), includes),
		handle(remove, "/v1/conversations/{conversation_id}/items/{item_id}", s.deleteConversationItem,
			"Take an item out of a conversation",
			about("Contexts and lists of items leave it out from here on. Nothing is deleted: the message stays in the "+
				"session, and is found by a search. The last one is taken back as by messages/pop.")),

		handle(get, "/v1/events", s.streamEvents, "Stream events (Server-Sent Events)", memory(0),
			about("Each event has an id like <store>-<number>, a type, and as data a JSON object {id, session_id, type, seq, "+
				"data, created_at}; seq and data may be missing. Events contain no message text. "+
				"A client that reconnects with Last-Event-ID gets each later event exactly once, also after a restart. "+
				"If those events are already deleted, or the database went back to an older state, "+
				"an event of type gap says where the stream continues. If a client reads too slowly, "+
				"the stream ends with an event of type dropped.")),
		handle(post, "/v1/backups", s.makeBackup, "Make a backup", whole, status(http.StatusCreated)),

		handle(get, "/healthz", s.checkHealth, "Check that the process answers", memory(0)),
		handle(get, "/readyz", s.checkReadiness, "Check that the database answers and accepts writes", memory(0)),
		handle(get, "/version", s.readVersion, "Read the version", memory(0)),
	}
}
