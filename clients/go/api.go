// Code generated from docs/openapi.json by tools/goclient. DO NOT EDIT.

package sessiond

import (
	"context"
	"encoding/json"
	"time"
)

// AddToState: Append an element to a JSON array. The array is created if it does not exist. Concurrent requests all
// append.
func (c *Client) AddToState(ctx context.Context, id string, name string, body any,
	options ...Option,
) (json.RawMessage, error) {
	return value(ask[json.RawMessage](ctx, c, "POST",
		"/v1/sessions/"+escape(id)+"/states/"+escape(name),
		nil, body, options, keyed))
}

// AnswerHook: Answer a hook of an agent program. What sessiond hook says, which asks here before it reads the
// database itself.
func (c *Client) AnswerHook(ctx context.Context, body HookRequest, options ...Option) (*Hook, error) {
	return ask[Hook](ctx, c, "POST",
		"/v1/hook",
		nil, body, options)
}

// AppendLinesQuery has the parameters of AppendLines; those with zero values are not sent.
type AppendLinesQuery struct {
	// Project: The program's name of the project
	Project string `query:"project"`
	// Session: The program's id of the session
	Session string `query:"session"`
	// Subpath: Where under the session the transcript belongs, like subagents/agent-a1; default: the session's own
	// transcript
	Subpath string `query:"subpath"`
}

// AppendLines: Append lines to a transcript. The lines are stored as they came, and a session is imported from them
// within seconds, as from a file of the program. A line whose uuid the transcript has is left out; lines without one
// are never taken for doubles. A session that was purged gets no lines: 409.
func (c *Client) AppendLines(ctx context.Context, program string, query AppendLinesQuery, body LinesRequest,
	options ...Option,
) (*AppendedLines, error) {
	return ask[AppendedLines](ctx, c, "POST",
		"/v1/sources/"+escape(program)+"/lines",
		queryOf(query), body, options, keyed)
}

// AppendMessages: Append messages.
func (c *Client) AppendMessages(ctx context.Context, id string, body AppendRequest,
	options ...Option,
) (*Appended, error) {
	return ask[Appended](ctx, c, "POST",
		"/v1/sessions/"+escape(id)+"/messages",
		nil, body, options, keyed)
}

// CheckHealth: Check that the process answers.
func (c *Client) CheckHealth(ctx context.Context, options ...Option) (*Health, error) {
	return ask[Health](ctx, c, "GET",
		"/healthz",
		nil, nil, options)
}

// CheckReadiness: Check that the database answers and accepts writes.
func (c *Client) CheckReadiness(ctx context.Context, options ...Option) (*Ready, error) {
	return ask[Ready](ctx, c, "GET",
		"/readyz",
		nil, nil, options)
}

// CompactSession: Compact, or plan a compaction.
func (c *Client) CompactSession(ctx context.Context, id string, body CompactRequest,
	options ...Option,
) (*Compacted, error) {
	return ask[Compacted](ctx, c, "POST",
		"/v1/sessions/"+escape(id)+"/compactions",
		nil, body, options, keyed)
}

// CreateConversation: Create a conversation. A conversation is a session: conv_ and its id. It is searched, counted
// and exported like any other.
func (c *Client) CreateConversation(ctx context.Context, body ConversationRequest,
	options ...Option,
) (*Conversation, error) {
	return ask[Conversation](ctx, c, "POST",
		"/v1/conversations",
		nil, body, options, keyed)
}

// CreateConversationItemsQuery has the parameters of CreateConversationItems; those with zero values are not sent.
type CreateConversationItemsQuery struct {
	// Include: Fields that OpenAI's API leaves out unless asked. Here every answer has all that was stored
	Include []string `query:"include"`
}

// CreateConversationItems: Add items to a conversation. Each item is a message of the session. An item without an id
// gets one; an item of an unknown type is kept.
func (c *Client) CreateConversationItems(ctx context.Context, conversation_id string,
	query CreateConversationItemsQuery, body ItemsRequest,
	options ...Option,
) (*ItemList, error) {
	return ask[ItemList](ctx, c, "POST",
		"/v1/conversations/"+escape(conversation_id)+"/items",
		queryOf(query), body, options, keyed)
}

// CreateSession: Create a session.
func (c *Client) CreateSession(ctx context.Context, body NewSessionRequest, options ...Option) (*Session, error) {
	return ask[Session](ctx, c, "POST",
		"/v1/sessions",
		nil, body, options, keyed)
}

// DeleteConversation: Put a conversation into the trash. Its session is purged by DELETE
// /v1/sessions/{id}?purge=true, and untrash restores it.
func (c *Client) DeleteConversation(ctx context.Context, conversation_id string, options ...Option) (*Deleted, error) {
	return ask[Deleted](ctx, c, "DELETE",
		"/v1/conversations/"+escape(conversation_id),
		nil, nil, options, keyed)
}

// DeleteConversationItem: Take an item out of a conversation. Contexts and lists of items leave it out from here on.
// Nothing is deleted: the message stays in the session, and is found by a search. The last one is taken back as by
// messages/pop.
func (c *Client) DeleteConversationItem(ctx context.Context, conversation_id string, item_id string,
	options ...Option,
) (*Conversation, error) {
	return ask[Conversation](ctx, c, "DELETE",
		"/v1/conversations/"+escape(conversation_id)+"/items/"+escape(item_id),
		nil, nil, options, keyed)
}

// DeleteLinesQuery has the parameters of DeleteLines; those with zero values are not sent.
type DeleteLinesQuery struct {
	// Project: The program's name of the project
	Project string `query:"project"`
	// Session: The program's id of the session
	Session string `query:"session"`
	// Subpath: Where under the session the transcript belongs, like subagents/agent-a1; default: the session's own
	// transcript
	Subpath string `query:"subpath"`
}

// DeleteLines: Delete a transcript, and purge its sessions. Without a subpath the transcripts under the session are
// deleted, too. A session of which another transcript has lines, too, as that of another project, is not purged.
func (c *Client) DeleteLines(ctx context.Context, program string, query DeleteLinesQuery,
	options ...Option,
) (*DeletedLines, error) {
	return ask[DeletedLines](ctx, c, "DELETE",
		"/v1/sources/"+escape(program)+"/lines",
		queryOf(query), nil, options)
}

// DeleteSessionQuery has the parameters of DeleteSession; those with zero values are not sent.
type DeleteSessionQuery struct {
	// Purge: Delete for good: its messages, and titles, recalls and summaries made from them. Usage numbers stay, and
	// forks keep the messages that they share
	Purge *bool `query:"purge"`
	// Scrub: With purge: also rewrite the files, so that no byte of it is left. Writes of others wait meanwhile
	Scrub *bool `query:"scrub"`
}

// DeleteSession: Put a session into the trash, or purge it. A session in the trash is not in lists or in search;
// untrash restores it. purge=true deletes it for good. The answer is then {id, messages, shared, scrubbed, backups}:
// the number of deleted messages, the number of messages that stay because forks share them, whether the files were
// rewritten, and the backups that still contain the session.
func (c *Client) DeleteSession(ctx context.Context, id string, query DeleteSessionQuery,
	options ...Option,
) (json.RawMessage, error) {
	return value(ask[json.RawMessage](ctx, c, "DELETE",
		"/v1/sessions/"+escape(id),
		queryOf(query), nil, options, keyed))
}

// DeleteState: Delete a JSON document.
func (c *Client) DeleteState(ctx context.Context, id string, name string, options ...Option) error {
	return c.do(ctx, "DELETE",
		"/v1/sessions/"+escape(id)+"/states/"+escape(name),
		nil, nil, nil, options, keyed)
}

// ForkSession: Fork a session at one of its messages. No message is copied. The fork inherits compactions, undos,
// pins and labels on its path, and settings, metadata, model and working directory. It does not inherit the routing
// key. It gets copies only of the documents that states names.
func (c *Client) ForkSession(ctx context.Context, id string, body ForkRequest, options ...Option) (*Session, error) {
	return ask[Session](ctx, c, "POST",
		"/v1/sessions/"+escape(id)+"/fork",
		nil, body, options, keyed)
}

// LabelMessage: Label a message: set its first tag.
func (c *Client) LabelMessage(ctx context.Context, id string, seq string, body LabelRequest,
	options ...Option,
) (*Session, error) {
	return ask[Session](ctx, c, "PUT",
		"/v1/sessions/"+escape(id)+"/messages/"+escape(seq)+"/label",
		nil, body, options, keyed)
}

// ListCallsQuery has the parameters of ListCalls; those with zero values are not sent.
type ListCallsQuery struct {
	// Limit: Items per answer; default 50
	Limit int64 `query:"limit"`
	// Cursor: next_cursor of the previous answer
	Cursor string `query:"cursor"`
}

// ListCalls: List a session's model calls, oldest first.
func (c *Client) ListCalls(ctx context.Context, id string, query ListCallsQuery,
	options ...Option,
) (*List[Call], error) {
	return ask[List[Call]](ctx, c, "GET",
		"/v1/sessions/"+escape(id)+"/calls",
		queryOf(query), nil, options)
}

// ListCompactionSourcesQuery has the parameters of ListCompactionSources; those with zero values are not sent.
type ListCompactionSourcesQuery struct {
	// Limit: Items per answer; default 50
	Limit int64 `query:"limit"`
	// Cursor: next_cursor of the previous answer
	Cursor string `query:"cursor"`
	// Order: asc or desc; default: the order that the summary names. One of: asc, desc
	Order string `query:"order"`
	// Dialect: Answer in this form: a provider's, or ui, the AI SDK's UIMessage; default: native, sessiond's own
	Dialect Dialect `query:"dialect"`
}

// ListCompactionSources: List the messages that a compaction hides, oldest first.
func (c *Client) ListCompactionSources(ctx context.Context, id string, cid string, query ListCompactionSourcesQuery,
	options ...Option,
) (*List[Item], error) {
	return ask[List[Item]](ctx, c, "GET",
		"/v1/sessions/"+escape(id)+"/compactions/"+escape(cid)+"/sources",
		queryOf(query), nil, options)
}

// ListCompactionsQuery has the parameters of ListCompactions; those with zero values are not sent.
type ListCompactionsQuery struct {
	// Limit: Items per answer; default 50
	Limit int64 `query:"limit"`
	// Cursor: next_cursor of the previous answer
	Cursor string `query:"cursor"`
	// Order: asc or desc; default: the order that the summary names. One of: asc, desc
	Order string `query:"order"`
}

// ListCompactions: List a session's compactions, oldest first.
func (c *Client) ListCompactions(ctx context.Context, id string, query ListCompactionsQuery,
	options ...Option,
) (*List[Compaction], error) {
	return ask[List[Compaction]](ctx, c, "GET",
		"/v1/sessions/"+escape(id)+"/compactions",
		queryOf(query), nil, options)
}

// ListConversationItemsQuery has the parameters of ListConversationItems; those with zero values are not sent.
type ListConversationItemsQuery struct {
	// Include: Fields that OpenAI's API leaves out unless asked. Here every answer has all that was stored
	Include []string `query:"include"`
	// After: Only items after this one, by its id; also one that was deleted meanwhile
	After string `query:"after"`
	// Limit: Items per answer; default 20
	Limit int64 `query:"limit"`
	// Order: asc: oldest first; desc (the default): newest first. One of: asc, desc
	Order string `query:"order"`
}

// ListConversationItems: List a conversation's items, newest first. A page ends at its limit, or at 4 MiB.
func (c *Client) ListConversationItems(ctx context.Context, conversation_id string, query ListConversationItemsQuery,
	options ...Option,
) (*ItemList, error) {
	return ask[ItemList](ctx, c, "GET",
		"/v1/conversations/"+escape(conversation_id)+"/items",
		queryOf(query), nil, options)
}

// ListFileSessionsQuery has the parameters of ListFileSessions; those with zero values are not sent.
type ListFileSessionsQuery struct {
	// Limit: Items per answer; default 50
	Limit int64 `query:"limit"`
	// Cursor: next_cursor of the previous answer
	Cursor string `query:"cursor"`
	// Order: asc or desc; default: the order that the summary names. One of: asc, desc
	Order string `query:"order"`
	// Path: Absolute path of a file, or of a folder with everything below it, also in other worktrees of its repository
	Path string `query:"path"`
	// Op: Only sessions with this operation; changed: write, edit and delete. One of: read, changed, write, edit, delete
	Op string `query:"op"`
}

// ListFileSessions: List the sessions that read or changed a file, newest first.
func (c *Client) ListFileSessions(ctx context.Context, query ListFileSessionsQuery,
	options ...Option,
) (*List[FileSession], error) {
	return ask[List[FileSession]](ctx, c, "GET",
		"/v1/files",
		queryOf(query), nil, options)
}

// ListKeysQuery has the parameters of ListKeys; those with zero values are not sent.
type ListKeysQuery struct {
	// Limit: Items per answer; default 50
	Limit int64 `query:"limit"`
	// Cursor: next_cursor of the previous answer
	Cursor string `query:"cursor"`
	// Order: asc or desc; default: the order that the summary names. One of: asc, desc
	Order string `query:"order"`
	// Q: Part of the key, the label, a name, the title or the session's id
	Q string `query:"q"`
	// ActiveMinutes: Only keys active in the last so many minutes
	ActiveMinutes int64 `query:"active_minutes"`
	// All: List the keys global and unknown, too
	All *bool `query:"all"`
}

// ListKeys: List the routing keys, newest active first.
func (c *Client) ListKeys(ctx context.Context, query ListKeysQuery, options ...Option) (*List[Key], error) {
	return ask[List[Key]](ctx, c, "GET",
		"/v1/keys",
		queryOf(query), nil, options)
}

// ListLinesQuery has the parameters of ListLines; those with zero values are not sent.
type ListLinesQuery struct {
	// Project: The program's name of the project
	Project string `query:"project"`
	// Session: The program's id of the session
	Session string `query:"session"`
	// Subpath: Where under the session the transcript belongs, like subagents/agent-a1; default: the session's own
	// transcript
	Subpath string `query:"subpath"`
	// Limit: Lines per answer; default 1000. An answer of 4 MiB ends before
	Limit int64 `query:"limit"`
	// Cursor: next_cursor of the previous answer
	Cursor string `query:"cursor"`
}

// ListLines: List the lines of a transcript, oldest first.
func (c *Client) ListLines(ctx context.Context, program string, query ListLinesQuery,
	options ...Option,
) (*List[json.RawMessage], error) {
	return ask[List[json.RawMessage]](ctx, c, "GET",
		"/v1/sources/"+escape(program)+"/lines",
		queryOf(query), nil, options)
}

// ListMarks: List the pins, tags and notes of a session and its messages.
func (c *Client) ListMarks(ctx context.Context, id string, options ...Option) (*List[Mark], error) {
	return ask[List[Mark]](ctx, c, "GET",
		"/v1/sessions/"+escape(id)+"/marks",
		nil, nil, options)
}

// ListMessagesQuery has the parameters of ListMessages; those with zero values are not sent.
type ListMessagesQuery struct {
	// Limit: Items per answer; default 50
	Limit int64 `query:"limit"`
	// Cursor: next_cursor of the previous answer
	Cursor string `query:"cursor"`
	// Order: asc or desc; default: the order that the summary names. One of: asc, desc
	Order string `query:"order"`
	// After: Only messages after this one: a seq of this session, or an id like 20260211_001.42
	After string `query:"after"`
	// Before: Only messages before this one, named as in after
	Before string `query:"before"`
	// Path: head (the default): the path to the head, including messages that a fork shares; all: every message of this
	// session, on all branches. One of: head, all
	Path string `query:"path"`
	// Dialect: Answer in this form: a provider's, or ui, the AI SDK's UIMessage; default: native, sessiond's own
	Dialect Dialect `query:"dialect"`
}

// ListMessages: List messages, oldest first.
func (c *Client) ListMessages(ctx context.Context, id string, query ListMessagesQuery,
	options ...Option,
) (*MessageList, error) {
	return ask[MessageList](ctx, c, "GET",
		"/v1/sessions/"+escape(id)+"/messages",
		queryOf(query), nil, options)
}

// ListQueries: List the named queries.
func (c *Client) ListQueries(ctx context.Context, options ...Option) (*List[Query], error) {
	return ask[List[Query]](ctx, c, "GET",
		"/v1/queries",
		nil, nil, options)
}

// ListSessionsQuery has the parameters of ListSessions; those with zero values are not sent.
type ListSessionsQuery struct {
	// Metadata: Filters on fields of the sessions' metadata: metadata[user]=u_7, also written metadata.user=u_7, takes
	// the sessions whose metadata has this user. A field in a field is metadata[user][id]. Several filters must all
	// match.
	Metadata map[string]string `query:"metadata,deepObject"`
	// Limit: Items per answer; default 50
	Limit int64 `query:"limit"`
	// Cursor: next_cursor of the previous answer
	Cursor string `query:"cursor"`
	// Order: asc or desc; default: the order that the summary names. One of: asc, desc
	Order string `query:"order"`
	// Source: Only sessions of this program: its name (claude-code), or a part of it
	Source string `query:"source"`
	// Project: Only sessions of this project: its folder, its name in lists (cli, workspace/cli), or a part of it
	Project string `query:"project"`
	// Model: Only sessions of this model, or with this part of its name (opus)
	Model string `query:"model"`
	// Directory: Only sessions of this working directory or below it: its path, its last name, or a part of it
	Directory string `query:"directory"`
	// Key: Only sessions of this routing key
	Key string `query:"key"`
	// Owner: Only sessions of this owner
	Owner string `query:"owner"`
	// Host: Only sessions that began on this host
	Host string `query:"host"`
	// Parent: Only forks and children of this session
	Parent string `query:"parent"`
	// Children: Only sub-agents that this session started
	Children string `query:"children"`
	// Forks: Only forks of this session
	Forks string `query:"forks"`
	// Tag: Only sessions with this tag, on them or on one of their messages: the tag, or a part of it
	Tag string `query:"tag"`
	// On: Only sessions with a prompt of a person on this day or in this week or month; of a time (2026-02-11T10:00) in
	// the hour from then
	On string `query:"on"`
	// Branch: Only sessions on this git branch, or with this part of its name
	Branch string `query:"branch"`
	// Errors: Only sessions with a reply or a model call that failed
	Errors *bool `query:"errors"`
	// Starred: Only starred sessions
	Starred *bool `query:"starred"`
	// Archived: Only archived sessions, which lists leave out
	Archived *bool `query:"archived"`
	// Q: Part of the title, the id or the id in the source program
	Q string `query:"q"`
	// ParentID: The same as parent
	ParentID string `query:"parent_id"`
	// ParentKind: With parent_id: only forks, or only children. One of: fork, child
	ParentKind string `query:"parent_kind"`
	// Since: Only sessions active at or after this time: RFC 3339, a day, or words like last week, in the time zone of
	// the configuration
	Since string `query:"since"`
	// Until: Only sessions active before this time or day
	Until string `query:"until"`
	// Trash: List the trash instead
	Trash *bool `query:"trash"`
}

// ListSessions: List sessions, newest active first.
func (c *Client) ListSessions(ctx context.Context, query ListSessionsQuery,
	options ...Option,
) (*List[ListedSession], error) {
	return ask[List[ListedSession]](ctx, c, "GET",
		"/v1/sessions",
		queryOf(query), nil, options)
}

// ListStates: List a session's JSON documents.
func (c *Client) ListStates(ctx context.Context, id string, options ...Option) (*List[State], error) {
	return ask[List[State]](ctx, c, "GET",
		"/v1/sessions/"+escape(id)+"/states",
		nil, nil, options)
}

// ListSubpathsQuery has the parameters of ListSubpaths; those with zero values are not sent.
type ListSubpathsQuery struct {
	// Project: The program's name of the project
	Project string `query:"project"`
	// Session: The program's id of the session
	Session string `query:"session"`
}

// ListSubpaths: List the subpaths of a session that have transcripts.
func (c *Client) ListSubpaths(ctx context.Context, program string, query ListSubpathsQuery,
	options ...Option,
) (*List[string], error) {
	return ask[List[string]](ctx, c, "GET",
		"/v1/sources/"+escape(program)+"/subpaths",
		queryOf(query), nil, options)
}

// ListSummariesQuery has the parameters of ListSummaries; those with zero values are not sent.
type ListSummariesQuery struct {
	// Project: The program's name of the project
	Project string `query:"project"`
	// Limit: Items per answer; default 50
	Limit int64 `query:"limit"`
	// Cursor: next_cursor of the previous answer
	Cursor string `query:"cursor"`
	// Session: Only of this session
	Session string `query:"session"`
}

// ListSummaries: List the clients' summaries of sessions.
func (c *Client) ListSummaries(ctx context.Context, program string, query ListSummariesQuery,
	options ...Option,
) (*List[Summary], error) {
	return ask[List[Summary]](ctx, c, "GET",
		"/v1/sources/"+escape(program)+"/summaries",
		queryOf(query), nil, options)
}

// ListTags: List the tags, those of the most sessions first.
func (c *Client) ListTags(ctx context.Context, options ...Option) (*List[TagInUse], error) {
	return ask[List[TagInUse]](ctx, c, "GET",
		"/v1/tags",
		nil, nil, options)
}

// ListTranscriptsQuery has the parameters of ListTranscripts; those with zero values are not sent.
type ListTranscriptsQuery struct {
	// Project: The program's name of the project
	Project string `query:"project"`
	// Limit: Items per answer; default 50
	Limit int64 `query:"limit"`
	// Cursor: next_cursor of the previous answer
	Cursor string `query:"cursor"`
}

// ListTranscripts: List the sessions of a project that have transcripts.
func (c *Client) ListTranscripts(ctx context.Context, program string, query ListTranscriptsQuery,
	options ...Option,
) (*List[Transcript], error) {
	return ask[List[Transcript]](ctx, c, "GET",
		"/v1/sources/"+escape(program)+"/sessions",
		queryOf(query), nil, options)
}

// MakeBackup: Make a backup.
func (c *Client) MakeBackup(ctx context.Context, body BackupRequest, options ...Option) (*Backup, error) {
	return ask[Backup](ctx, c, "POST",
		"/v1/backups",
		nil, body, options, keyed)
}

// MoveHead: Move the head: continue from another message. The messages up to the old head stay as a branch.
// Compactions that lie on the new path take effect. With summarize the answer is 202, and a summary of the abandoned
// branch is made in the background. It is appended at the new head, or beside the path if a message was appended
// there in the meantime.
func (c *Client) MoveHead(ctx context.Context, id string, body HeadRequest, options ...Option) (*Session, error) {
	return ask[Session](ctx, c, "PUT",
		"/v1/sessions/"+escape(id)+"/head",
		nil, body, options, keyed)
}

// PatchKey: Label a routing key.
func (c *Client) PatchKey(ctx context.Context, key string, body KeyPatchRequest,
	options ...Option,
) (*KeyGenerations, error) {
	return ask[KeyGenerations](ctx, c, "PATCH",
		"/v1/keys/"+escape(key),
		nil, body, options)
}

// PatchSession: Change a session by a JSON merge patch.
func (c *Client) PatchSession(ctx context.Context, id string, body SessionPatchRequest,
	options ...Option,
) (*Session, error) {
	return ask[Session](ctx, c, "PATCH",
		"/v1/sessions/"+escape(id),
		nil, body, options, keyed)
}

// PatchState: Change a JSON document by a JSON merge patch.
func (c *Client) PatchState(ctx context.Context, id string, name string, body any,
	options ...Option,
) (json.RawMessage, error) {
	return value(ask[json.RawMessage](ctx, c, "PATCH",
		"/v1/sessions/"+escape(id)+"/states/"+escape(name),
		nil, body, options, keyed))
}

// PatchStates: Change several JSON documents by JSON merge patches in one step. All of them change, or none.
func (c *Client) PatchStates(ctx context.Context, id string, body StatesRequest,
	options ...Option,
) (*List[State], error) {
	return ask[List[State]](ctx, c, "PATCH",
		"/v1/sessions/"+escape(id)+"/states",
		nil, body, options, keyed)
}

// PinMessage: Pin a message: keep it in the context.
func (c *Client) PinMessage(ctx context.Context, id string, seq string, options ...Option) (*Session, error) {
	return ask[Session](ctx, c, "PUT",
		"/v1/sessions/"+escape(id)+"/messages/"+escape(seq)+"/pin",
		nil, nil, options, keyed)
}

// PopMessageQuery has the parameters of PopMessage; those with zero values are not sent.
type PopMessageQuery struct {
	// Dialect: Answer in this form: a provider's, or ui, the AI SDK's UIMessage; default: native, sessiond's own
	Dialect Dialect `query:"dialect"`
}

// PopMessage: Take the last message back. The answer is the message that is the head, and the head moves before it,
// in one step. Nothing is deleted: the message stays as a branch, and the next append begins another.
func (c *Client) PopMessage(ctx context.Context, id string, query PopMessageQuery, body PopRequest,
	options ...Option,
) (*Popped, error) {
	return ask[Popped](ctx, c, "POST",
		"/v1/sessions/"+escape(id)+"/messages/pop",
		queryOf(query), body, options, keyed)
}

// PutMessageNote: Write the note of a message. If-Match with the ETag that was read rejects the text if somebody else
// changed the note meanwhile.
func (c *Client) PutMessageNote(ctx context.Context, id string, seq string, body NoteRequest,
	options ...Option,
) (*Mark, error) {
	return ask[Mark](ctx, c, "PUT",
		"/v1/sessions/"+escape(id)+"/messages/"+escape(seq)+"/note",
		nil, body, options)
}

// PutSessionNote: Write the note of a session. If-Match with the ETag that was read rejects the text if somebody else
// changed the note meanwhile.
func (c *Client) PutSessionNote(ctx context.Context, id string, body NoteRequest, options ...Option) (*Mark, error) {
	return ask[Mark](ctx, c, "PUT",
		"/v1/sessions/"+escape(id)+"/note",
		nil, body, options)
}

// PutState: Write a JSON document.
func (c *Client) PutState(ctx context.Context, id string, name string, body any,
	options ...Option,
) (json.RawMessage, error) {
	return value(ask[json.RawMessage](ctx, c, "PUT",
		"/v1/sessions/"+escape(id)+"/states/"+escape(name),
		nil, body, options, keyed))
}

// PutStates: Write several JSON documents in one step. All of them change, or none. Documents that the request does
// not name stay. The answer lists those that were written.
func (c *Client) PutStates(ctx context.Context, id string, body StatesRequest,
	options ...Option,
) (*List[State], error) {
	return ask[List[State]](ctx, c, "PUT",
		"/v1/sessions/"+escape(id)+"/states",
		nil, body, options, keyed)
}

// ReadCompaction: Read a compaction.
func (c *Client) ReadCompaction(ctx context.Context, id string, cid string, options ...Option) (*Compaction, error) {
	return ask[Compaction](ctx, c, "GET",
		"/v1/sessions/"+escape(id)+"/compactions/"+escape(cid),
		nil, nil, options)
}

// ReadContextQuery has the parameters of ReadContext; those with zero values are not sent.
type ReadContextQuery struct {
	// Model: The model's id; default: the session's
	Model string `query:"model"`
	// Dialect: The provider's form of the context; default: that of the last turn, else openai.chat
	Dialect Dialect `query:"dialect"`
	// Window: The model's window, in tokens; default: the session's, else the catalogue's
	Window int64 `query:"window"`
	// MaxOutput: Tokens to reserve for the reply
	MaxOutput *int64 `query:"max_output"`
	// Explain: Explain where each number comes from and how tokens are counted
	Explain *bool `query:"explain"`
}

// ReadContext: Read the context that the model should see now. Nothing is written, so there is no context_id. A turn
// answers the same context and records it.
func (c *Client) ReadContext(ctx context.Context, id string, query ReadContextQuery,
	options ...Option,
) (*Context, error) {
	return ask[Context](ctx, c, "GET",
		"/v1/sessions/"+escape(id)+"/context",
		queryOf(query), nil, options)
}

// ReadConversation: Read a conversation.
func (c *Client) ReadConversation(ctx context.Context, conversation_id string,
	options ...Option,
) (*Conversation, error) {
	return ask[Conversation](ctx, c, "GET",
		"/v1/conversations/"+escape(conversation_id),
		nil, nil, options)
}

// ReadConversationItemQuery has the parameters of ReadConversationItem; those with zero values are not sent.
type ReadConversationItemQuery struct {
	// Include: Fields that OpenAI's API leaves out unless asked. Here every answer has all that was stored
	Include []string `query:"include"`
}

// ReadConversationItem: Read an item of a conversation.
func (c *Client) ReadConversationItem(ctx context.Context, conversation_id string, item_id string,
	query ReadConversationItemQuery,
	options ...Option,
) (json.RawMessage, error) {
	return value(ask[json.RawMessage](ctx, c, "GET",
		"/v1/conversations/"+escape(conversation_id)+"/items/"+escape(item_id),
		queryOf(query), nil, options))
}

// ReadKeyQuery has the parameters of ReadKey; those with zero values are not sent.
type ReadKeyQuery struct {
	// Limit: Items per answer; default 50
	Limit int64 `query:"limit"`
	// Cursor: next_cursor of the previous answer
	Cursor string `query:"cursor"`
	// Order: asc or desc; default: the order that the summary names. One of: asc, desc
	Order string `query:"order"`
}

// ReadKey: Read a routing key with its generations, newest first.
func (c *Client) ReadKey(ctx context.Context, key string, query ReadKeyQuery,
	options ...Option,
) (*KeyGenerations, error) {
	return ask[KeyGenerations](ctx, c, "GET",
		"/v1/keys/"+escape(key),
		queryOf(query), nil, options)
}

// ReadMessageQuery has the parameters of ReadMessage; those with zero values are not sent.
type ReadMessageQuery struct {
	// Dialect: Answer in this form: a provider's, or ui, the AI SDK's UIMessage; default: native, sessiond's own
	Dialect Dialect `query:"dialect"`
}

// ReadMessage: Read a message.
func (c *Client) ReadMessage(ctx context.Context, id string, seq string, query ReadMessageQuery,
	options ...Option,
) (Item, error) {
	return value(ask[Item](ctx, c, "GET",
		"/v1/sessions/"+escape(id)+"/messages/"+escape(seq),
		queryOf(query), nil, options))
}

// ReadMessageNote: Read the note of a message.
func (c *Client) ReadMessageNote(ctx context.Context, id string, seq string, options ...Option) (*Mark, error) {
	return ask[Mark](ctx, c, "GET",
		"/v1/sessions/"+escape(id)+"/messages/"+escape(seq)+"/note",
		nil, nil, options)
}

// ReadSessionQuery has the parameters of ReadSession; those with zero values are not sent.
type ReadSessionQuery struct {
	// Rollup: Sum up the session and its descendants, without forks, also where it has none
	Rollup *bool `query:"rollup"`
}

// ReadSession: Read a session.
func (c *Client) ReadSession(ctx context.Context, id string, query ReadSessionQuery,
	options ...Option,
) (*SessionDetail, error) {
	return ask[SessionDetail](ctx, c, "GET",
		"/v1/sessions/"+escape(id),
		queryOf(query), nil, options)
}

// ReadSessionNote: Read the note of a session.
func (c *Client) ReadSessionNote(ctx context.Context, id string, options ...Option) (*Mark, error) {
	return ask[Mark](ctx, c, "GET",
		"/v1/sessions/"+escape(id)+"/note",
		nil, nil, options)
}

// ReadState: Read a JSON document.
func (c *Client) ReadState(ctx context.Context, id string, name string, options ...Option) (json.RawMessage, error) {
	return value(ask[json.RawMessage](ctx, c, "GET",
		"/v1/sessions/"+escape(id)+"/states/"+escape(name),
		nil, nil, options))
}

// ReadTreeQuery has the parameters of ReadTree; those with zero values are not sent.
type ReadTreeQuery struct {
	// Limit: Segments per answer; default 50
	Limit int64 `query:"limit"`
	// Cursor: next_cursor of the previous answer
	Cursor string `query:"cursor"`
}

// ReadTree: List a session's tree, oldest segments first. A segment is a run of messages without a branch.
func (c *Client) ReadTree(ctx context.Context, id string, query ReadTreeQuery, options ...Option) (*Tree, error) {
	return ask[Tree](ctx, c, "GET",
		"/v1/sessions/"+escape(id)+"/tree",
		queryOf(query), nil, options)
}

// ReadUsageQuery has the parameters of ReadUsage; those with zero values are not sent.
type ReadUsageQuery struct {
	// GroupBy: The sums to return; default: all. A sub-agent counts for the project of the session that started it
	GroupBy []string `query:"group_by"`
	// Since: The first day, YYYY-MM-DD
	Since string `query:"since"`
	// Until: The last day, YYYY-MM-DD
	Until string `query:"until"`
	// Source: Only sessions of this program: its name (claude-code), or a part of it
	Source string `query:"source"`
	// Project: Only sessions of this project: its folder, its name in lists (cli, workspace/cli), or a part of it
	Project string `query:"project"`
	// Tag: Only sessions with this tag, on them or on one of their messages, and their sub-agents
	Tag string `query:"tag"`
}

// ReadUsage: Sum up sessions, messages, tokens and cost.
func (c *Client) ReadUsage(ctx context.Context, query ReadUsageQuery, options ...Option) (*Stats, error) {
	return ask[Stats](ctx, c, "GET",
		"/v1/usage",
		queryOf(query), nil, options)
}

// ReadVersion: Read the version.
func (c *Client) ReadVersion(ctx context.Context, options ...Option) (*Version, error) {
	return ask[Version](ctx, c, "GET",
		"/version",
		nil, nil, options)
}

// RecordCall: Record a model call.
func (c *Client) RecordCall(ctx context.Context, id string, body CallRequest, options ...Option) (*Call, error) {
	return ask[Call](ctx, c, "POST",
		"/v1/sessions/"+escape(id)+"/calls",
		nil, body, options, keyed)
}

// RecordFlush: Acknowledge a memory flush. A turn requests a memory flush with the directive memory_flush, the event
// stream with an event of type flush.asked. Acknowledge it after the agent has saved its memory.
func (c *Client) RecordFlush(ctx context.Context, id string, body FlushRequest, options ...Option) (*Flush, error) {
	return ask[Flush](ctx, c, "POST",
		"/v1/sessions/"+escape(id)+"/flushes",
		nil, body, options, keyed)
}

// RedoCompaction: Redo an undone compaction.
func (c *Client) RedoCompaction(ctx context.Context, id string, cid string,
	options ...Option,
) (*ShiftedSession, error) {
	return ask[ShiftedSession](ctx, c, "POST",
		"/v1/sessions/"+escape(id)+"/compactions/"+escape(cid)+"/redo",
		nil, nil, options, keyed)
}

// RouteMessage: Find the session of an incoming message. The answer is 200 if the key's session continues, and 201 if
// a new one begins: at the first message, after a reset command, at the daily boundary or after idle time.
func (c *Client) RouteMessage(ctx context.Context, body RouteRequest, options ...Option) (*Routed, error) {
	return ask[Routed](ctx, c, "POST",
		"/v1/route",
		nil, body, options, keyed)
}

// RunQueryQuery has the parameters of RunQuery; those with zero values are not sent.
type RunQueryQuery struct {
	// Arguments: Parameters of the query, as GET /v1/queries lists them: limit=3
	Arguments map[string]string `query:"arguments,form"`
}

// RunQuery: Run a named query.
func (c *Client) RunQuery(ctx context.Context, name string, query RunQueryQuery, options ...Option) (*Result, error) {
	return ask[Result](ctx, c, "GET",
		"/v1/queries/"+escape(name),
		queryOf(query), nil, options)
}

// RunSQL: Run one read-only SQL statement.
func (c *Client) RunSQL(ctx context.Context, body SqlRequest, options ...Option) (*Result, error) {
	return ask[Result](ctx, c, "POST",
		"/v1/sql",
		nil, body, options)
}

// SearchMessagesQuery has the parameters of SearchMessages; those with zero values are not sent.
type SearchMessagesQuery struct {
	// Metadata: Filters on fields of the sessions' metadata: metadata[user]=u_7, also written metadata.user=u_7, takes
	// the sessions whose metadata has this user. A field in a field is metadata[user][id]. Several filters must all
	// match.
	Metadata map[string]string `query:"metadata,deepObject"`
	// Q: Words to search for: word, "as written", begin* for beginnings of three letters or more (fewer in the last
	// word), -word to exclude; and filters: role: origin: source: project: session: key: path: tool: (-role: to exclude)
	// after: before: (the first 32 words count)
	Q string `query:"q"`
	// Source: Only sessions of this program: its name (claude-code), or a part of it
	Source string `query:"source"`
	// Project: Only sessions of this project: its folder, its name in lists (cli, workspace/cli), or a part of it
	Project string `query:"project"`
	// Model: Only sessions of this model, or with this part of its name (opus)
	Model string `query:"model"`
	// Directory: Only sessions of this working directory or below it: its path, its last name, or a part of it
	Directory string `query:"directory"`
	// Key: Only sessions of this routing key
	Key string `query:"key"`
	// Owner: Only sessions of this owner
	Owner string `query:"owner"`
	// Host: Only sessions that began on this host
	Host string `query:"host"`
	// Parent: Only forks and children of this session
	Parent string `query:"parent"`
	// Children: Only sub-agents that this session started
	Children string `query:"children"`
	// Forks: Only forks of this session
	Forks string `query:"forks"`
	// Tag: Only sessions with this tag, on them or on one of their messages: the tag, or a part of it
	Tag string `query:"tag"`
	// On: Only sessions with a prompt of a person on this day or in this week or month; of a time (2026-02-11T10:00) in
	// the hour from then
	On string `query:"on"`
	// Branch: Only sessions on this git branch, or with this part of its name
	Branch string `query:"branch"`
	// Errors: Only sessions with a reply or a model call that failed
	Errors *bool `query:"errors"`
	// Starred: Only starred sessions
	Starred *bool `query:"starred"`
	// Archived: Only archived sessions, which lists leave out
	Archived *bool `query:"archived"`
	// Session: Only in this session
	Session string `query:"session"`
	// Role: Only messages of this role. One of: system, user, assistant, tool
	Role string `query:"role"`
	// Since: Only messages at or after this time: RFC 3339, a day, or words like last week, in the time zone of the
	// configuration
	Since string `query:"since"`
	// Until: Only messages before this time or day
	Until string `query:"until"`
	// Order: rank (the default): best first; newest: newest first. One of: rank, newest
	Order string `query:"order"`
	// Group: message (the default): hits are messages; session: sessions, each with up to three of its best messages.
	// One of: message, session
	Group string `query:"group"`
	// Limit: Hits per answer, or sessions; default 20
	Limit int64 `query:"limit"`
	// Expand: Messages to return before and after each hit, the first 1,000 bytes of each text; default 0
	Expand *int64 `query:"expand"`
}

// SearchMessages: Search messages.
func (c *Client) SearchMessages(ctx context.Context, query SearchMessagesQuery, options ...Option) (*Search, error) {
	return ask[Search](ctx, c, "GET",
		"/v1/search",
		queryOf(query), nil, options)
}

// TagMessage: Tag a message.
func (c *Client) TagMessage(ctx context.Context, id string, seq string, tag string,
	options ...Option,
) (*Session, error) {
	return ask[Session](ctx, c, "PUT",
		"/v1/sessions/"+escape(id)+"/messages/"+escape(seq)+"/tags/"+escape(tag),
		nil, nil, options, keyed)
}

// TagSession: Tag a session.
func (c *Client) TagSession(ctx context.Context, id string, tag string, options ...Option) (*Session, error) {
	return ask[Session](ctx, c, "PUT",
		"/v1/sessions/"+escape(id)+"/tags/"+escape(tag),
		nil, nil, options, keyed)
}

// TakeTurn: Append messages and get the next context. The append and the context are independent: if no context can
// be built, the messages are stored all the same, context is null, and problem says why. Send request, with model and
// tools, to the provider; append its reply together with the record of the call, which names context_id.
func (c *Client) TakeTurn(ctx context.Context, id string, body TurnRequest, options ...Option) (*Turn, error) {
	return ask[Turn](ctx, c, "POST",
		"/v1/sessions/"+escape(id)+"/turns",
		nil, body, options, keyed)
}

// UndoCompaction: Undo the compaction in effect, or cancel a running one.
func (c *Client) UndoCompaction(ctx context.Context, id string, cid string,
	options ...Option,
) (*ShiftedSession, error) {
	return ask[ShiftedSession](ctx, c, "DELETE",
		"/v1/sessions/"+escape(id)+"/compactions/"+escape(cid),
		nil, nil, options, keyed)
}

// UnlabelMessage: Remove a message's first tag.
func (c *Client) UnlabelMessage(ctx context.Context, id string, seq string, options ...Option) (*Session, error) {
	return ask[Session](ctx, c, "DELETE",
		"/v1/sessions/"+escape(id)+"/messages/"+escape(seq)+"/label",
		nil, nil, options, keyed)
}

// UnpinMessage: Unpin a message.
func (c *Client) UnpinMessage(ctx context.Context, id string, seq string, options ...Option) (*Session, error) {
	return ask[Session](ctx, c, "DELETE",
		"/v1/sessions/"+escape(id)+"/messages/"+escape(seq)+"/pin",
		nil, nil, options, keyed)
}

// UntagMessage: Remove a tag of a message.
func (c *Client) UntagMessage(ctx context.Context, id string, seq string, tag string,
	options ...Option,
) (*Session, error) {
	return ask[Session](ctx, c, "DELETE",
		"/v1/sessions/"+escape(id)+"/messages/"+escape(seq)+"/tags/"+escape(tag),
		nil, nil, options, keyed)
}

// UntagSession: Remove a tag of a session.
func (c *Client) UntagSession(ctx context.Context, id string, tag string, options ...Option) (*Session, error) {
	return ask[Session](ctx, c, "DELETE",
		"/v1/sessions/"+escape(id)+"/tags/"+escape(tag),
		nil, nil, options, keyed)
}

// UntrashSession: Take a session out of the trash.
func (c *Client) UntrashSession(ctx context.Context, id string, options ...Option) (*Session, error) {
	return ask[Session](ctx, c, "POST",
		"/v1/sessions/"+escape(id)+"/untrash",
		nil, nil, options, keyed)
}

// UpdateConversation: Replace a conversation's metadata.
func (c *Client) UpdateConversation(ctx context.Context, conversation_id string, body ConversationUpdateRequest,
	options ...Option,
) (*Conversation, error) {
	return ask[Conversation](ctx, c, "POST",
		"/v1/conversations/"+escape(conversation_id),
		nil, body, options, keyed)
}

// Anchor is an object of the API.
type Anchor struct {
	// At: Time of the reply
	At time.Time `json:"at"`
	// ContextID: The context of the reported call, like ctx_12
	ContextID string `json:"context_id,omitzero"`
	// InputTokens: Reported input, cached tokens included
	InputTokens int64 `json:"input_tokens"`
	// Message: The reply of the reported call
	Message string `json:"message"`
	// MessagesSince: Number of later messages
	MessagesSince int64 `json:"messages_since"`
	// Model: The model's id, as the provider names it
	Model string `json:"model,omitzero"`
	// OutputTokens: Reported output
	OutputTokens int64 `json:"output_tokens"`
	// Tokens: Reported input and output together
	Tokens int64 `json:"tokens"`
	// TokensSince: Estimate of later messages, in tokens
	TokensSince int64 `json:"tokens_since"`
}

// AppendRequest is a body of the API.
type AppendRequest struct {
	// Call: The model call behind the last reply
	Call *CallRequest `json:"call,omitzero"`
	// Dialect: Form of the messages; default: detected
	Dialect Dialect `json:"dialect,omitzero"`
	// ExpectHead: The head that the caller expects, else 409; null: the session must be empty
	ExpectHead Field[string] `json:"expect_head,omitzero"`
	// Messages: The messages to append: {role, content}, or a provider's form, such as its reply, or sessiond's own
	// {role, parts}
	Messages []any `json:"messages"`
	// Parent: Append after this message instead of the head: begins a branch, and the head moves there
	Parent string `json:"parent,omitzero"`
}

// Appended is an object of the API.
type Appended struct {
	// ContextTokens: Size of the context at the head, in reference tokens (sessiond's own count, the same for all
	// models)
	ContextTokens int64 `json:"context_tokens"`
	// Head: The message that the next message follows, like 20260211_001.42; null: the session is empty
	Head *string `json:"head"`
	// Messages: The stored messages, without their content
	Messages []Stored `json:"messages"`
	// Revision: Counts every change; the number in the ETag
	Revision int64 `json:"revision"`
	// Warnings: What was changed before storing, and why
	Warnings []string `json:"warnings,omitzero"`
}

// AppendedLines is an object of the API.
type AppendedLines struct {
	// Bytes: Their size, with a line feed each
	Bytes int64 `json:"bytes"`
	// Lines: Number of lines
	Lines int64 `json:"lines"`
	// Session: The program's id of the session
	Session string `json:"session"`
	// Stored: Number of lines of the request that were new
	Stored int64 `json:"stored"`
	// StoredAt: Time of the last write
	StoredAt time.Time `json:"stored_at"`
}

// Backup is an object of the API.
type Backup struct {
	// Bytes: Size in bytes
	Bytes int64 `json:"bytes"`
	// CreatedAt: Time of creation, RFC 3339 in UTC
	CreatedAt time.Time `json:"created_at"`
	// Path: The backup's absolute path
	Path string `json:"path"`
}

// BackupRequest is a body of the API.
type BackupRequest struct {
	// Path: Name of a new file in the backup folder; default: a name with the time. sessiond does not delete it
	Path string `json:"path,omitzero"`
}

// Bucket is an object of the API.
type Bucket struct {
	// Calls: Model calls
	Calls int64 `json:"calls"`
	// CostUSD: US dollars of the calls with a price; null: no call has one
	CostUSD *float64 `json:"cost_usd"`
	// Day: Local day, YYYY-MM-DD; when grouped by day
	Day string `json:"day,omitzero"`
	// Messages: Number of messages
	Messages int64 `json:"messages"`
	// Model: The model's id; when grouped by model
	Model string `json:"model,omitzero"`
	// Month: Month, 2026-02; when grouped by month
	Month string `json:"month,omitzero"`
	// Project: The project's folder; when grouped by project. Left out: none, or the session was purged
	Project string `json:"project,omitzero"`
	// Prompts: Messages of a person
	Prompts int64 `json:"prompts"`
	// Purpose: What calls were made for; when grouped by purpose
	Purpose string `json:"purpose,omitzero"`
	// Sessions: Sessions created in the time range, sub-agents included
	Sessions int64 `json:"sessions"`
	// Source: The program; when grouped by source
	Source string `json:"source,omitzero"`
	// Subagents: The sub-agents among the sessions
	Subagents int64 `json:"subagents"`
	// Tokens: Tokens as providers reported them
	Tokens UsageTokens `json:"tokens"`
	// UnpricedCalls: Calls without a known price
	UnpricedCalls int64 `json:"unpriced_calls"`
	// Week: ISO week, 2026-W07; when grouped by week
	Week string `json:"week,omitzero"`
}

// Call is an object of the API.
type Call struct {
	// CacheReadTokens: Input tokens read from the provider's cache, as the provider reported
	CacheReadTokens int64 `json:"cache_read_tokens"`
	// CacheWrite1hTokens: The part of cache_write_tokens that stays in the cache for an hour
	CacheWrite1hTokens int64 `json:"cache_write_1h_tokens,omitzero"`
	// CacheWriteTokens: Input tokens written to the provider's cache, as the provider reported
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	// CostUSD: US dollars; null: no price is known
	CostUSD *float64 `json:"cost_usd"`
	// CreatedAt: Time of the call, RFC 3339 in UTC
	CreatedAt time.Time `json:"created_at"`
	// Day: Local day of the call, YYYY-MM-DD
	Day string `json:"day,omitzero"`
	// Directory: Working directory, an absolute path
	Directory string `json:"directory,omitzero"`
	// Error: The error's text, if it failed
	Error string `json:"error,omitzero"`
	// InputTokens: Input tokens without cached tokens, as the provider reported
	InputTokens int64 `json:"input_tokens"`
	// LatencyMs: Milliseconds from the request to the end of the reply
	LatencyMs int64 `json:"latency_ms,omitzero"`
	// Metadata: The caller's own JSON object
	Metadata json.RawMessage `json:"metadata,omitzero"`
	// Model: The model's id, as the provider names it
	Model string `json:"model"`
	// OutputTokens: Output tokens including reasoning, as the provider reported
	OutputTokens int64 `json:"output_tokens"`
	// PriceSource: reported (by the provider or the program), catalogue, override (your own prices)
	PriceSource string `json:"price_source,omitzero"`
	// Provider: The model's provider, like openai, anthropic, gemini
	Provider string `json:"provider"`
	// Purpose: Purpose of the call; default chat
	Purpose string `json:"purpose"`
	// ReasoningTokens: The part of output_tokens that was reasoning
	ReasoningTokens int64 `json:"reasoning_tokens"`
	// Requests: Requests that the call stands for where these have a price, as web searches
	Requests int64 `json:"requests,omitzero"`
	// ServiceTier: The provider's tier of service, as fast, priority, flex or batch; absent: the standard one
	ServiceTier string `json:"service_tier,omitzero"`
	// SessionID: The id of a session, like 20260211_001
	SessionID string `json:"session_id,omitzero"`
	// Source: The program that made the call
	Source string `json:"source,omitzero"`
	// Status: ok or failed; default ok
	Status string `json:"status"`
}

// CallRequest is a body of the API.
type CallRequest struct {
	// CacheReadTokens: Input tokens read from the provider's cache, as the provider reported
	CacheReadTokens *int64 `json:"cache_read_tokens,omitzero"`
	// CacheWrite1hTokens: The part of cache_write_tokens that stays in the cache for an hour
	CacheWrite1hTokens *int64 `json:"cache_write_1h_tokens,omitzero"`
	// CacheWriteTokens: Input tokens written to the provider's cache, as the provider reported
	CacheWriteTokens *int64 `json:"cache_write_tokens,omitzero"`
	// ContextID: The context that the call was made with, like ctx_12
	ContextID string `json:"context_id,omitzero"`
	// CostUSD: Cost in US dollars, as the provider charged it; default: by the catalogue's price
	CostUSD *float64 `json:"cost_usd,omitzero"`
	// CreatedAt: Time of creation, RFC 3339 in UTC
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Error: The error's text, if it failed
	Error string `json:"error,omitzero"`
	// ExternalID: The caller's id of the call; a call with the same id is counted once
	ExternalID string `json:"external_id,omitzero"`
	// InputTokens: Input tokens without cached tokens
	InputTokens *int64 `json:"input_tokens,omitzero"`
	// LatencyMs: Milliseconds from the request to the end of the reply
	LatencyMs *int64 `json:"latency_ms,omitzero"`
	// Metadata: The caller's own JSON object
	Metadata any `json:"metadata,omitempty"`
	// Model: The model's id, as the provider names it
	Model string `json:"model,omitzero"`
	// OutputTokens: Output tokens including reasoning
	OutputTokens *int64 `json:"output_tokens,omitzero"`
	// Provider: The model's provider, like openai, anthropic, gemini
	Provider string `json:"provider,omitzero"`
	// Purpose: Purpose of the call; default chat. One of: chat, summary, title, branch_summary, tool, other
	Purpose string `json:"purpose,omitzero"`
	// ReasoningTokens: The part of output_tokens that was reasoning
	ReasoningTokens *int64 `json:"reasoning_tokens,omitzero"`
	// Requests: Of the model web_search: how many searches the call stands for
	Requests *int64 `json:"requests,omitzero"`
	// ServiceTier: The provider's tier of service, as fast, priority, flex or batch; default: the standard one
	ServiceTier string `json:"service_tier,omitzero"`
	// Status: ok or failed; default ok. One of: ok, failed
	Status string `json:"status,omitzero"`
	// Usage: The usage object of the provider's reply, as it is, instead of the numbers
	Usage any `json:"usage,omitempty"`
}

// CompactRequest is a body of the API.
type CompactRequest struct {
	// ContextID: Of an overflow: the rejected context
	ContextID string `json:"context_id,omitzero"`
	// DryRun: Answer with the plan and write nothing
	DryRun *bool `json:"dry_run,omitzero"`
	// Instructions: What the summary must mention
	Instructions string `json:"instructions,omitzero"`
	// KeepRecentTokens: Keep at least so many tokens verbatim; default: by the settings
	KeepRecentTokens *int64 `json:"keep_recent_tokens,omitzero"`
	// MaxOutput: Tokens to reserve for the reply; default: by the settings
	MaxOutput *int64 `json:"max_output,omitzero"`
	// Model: The model's id, as the provider names it
	Model string `json:"model,omitzero"`
	// ReportedTokens: Of an overflow: the context's size as the provider counted it, in tokens
	ReportedTokens *int64 `json:"reported_tokens,omitzero"`
	// ReportedWindow: Of an overflow: the model's window as the provider stated it, in tokens
	ReportedWindow *int64 `json:"reported_window,omitzero"`
	// Settings: Settings of the context manager for this compaction
	Settings *Settings `json:"settings,omitzero"`
	// Strategy: summarize, truncate (a prefix is hidden) or clear (everything is hidden); default: by the settings. One
	// of: summarize, truncate, clear
	Strategy string `json:"strategy,omitzero"`
	// Summary: A summary that the caller made
	Summary string `json:"summary,omitzero"`
	// Trigger: manual (the default), or overflow: the provider rejected the context as too large. One of: manual,
	// overflow
	Trigger string `json:"trigger,omitzero"`
	// Window: The model's window, in tokens; default: the catalogue's
	Window *int64 `json:"window,omitzero"`
}

// Compacted is an object of the API.
type Compacted struct {
	// ActivatedAt: Time it took effect; missing: never
	ActivatedAt time.Time `json:"activated_at,omitzero"`
	// CreatedAt: Time of creation, RFC 3339 in UTC
	CreatedAt time.Time `json:"created_at"`
	// Details: Read and modified files, pruned outputs and other details of how it was made
	Details json.RawMessage `json:"details,omitzero"`
	// DryRun: This is a plan; nothing was written
	DryRun bool `json:"dry_run,omitzero"`
	// DurationMs: Milliseconds it took
	DurationMs int64 `json:"duration_ms"`
	// FirstKept: The first message that is kept; missing: none
	FirstKept string `json:"first_kept,omitzero"`
	// HiddenTokens: Size of the hidden messages, in reference tokens
	HiddenTokens int64 `json:"hidden_tokens"`
	// ID: The compaction's id, like cmp_12; empty in a dry run
	ID string `json:"id"`
	// MessageCount: Number of newly hidden messages
	MessageCount int64 `json:"message_count"`
	// Model: Model of the summary; missing: no model was used
	Model string `json:"model,omitzero"`
	// Plan: What the compaction hides and keeps
	Plan Preview `json:"plan"`
	// PrefixSummary: Summary of the hidden beginning of a split turn
	PrefixSummary string `json:"prefix_summary,omitzero"`
	// Previous: The compaction that was in effect before it
	Previous string `json:"previous,omitzero"`
	// Provider: Provider of the summary's model; missing: no model was used
	Provider string `json:"provider,omitzero"`
	// Reason: Why it failed or was skipped
	Reason string `json:"reason,omitzero"`
	// Replacement: Messages that stand in place of the hidden ones, of an imported compaction
	Replacement json.RawMessage `json:"replacement,omitzero"`
	// SessionID: The id of a session, like 20260211_001
	SessionID string `json:"session_id"`
	// SpanSummary: Summary of the newly hidden messages alone
	SpanSummary string `json:"span_summary,omitzero"`
	// Status: running, staged (ready, not in effect yet), done, failed, skipped
	Status string `json:"status"`
	// Strategy: summarize, prune (old tool output becomes a line), truncate (a prefix is hidden), clear (everything is
	// hidden)
	Strategy string `json:"strategy"`
	// Summary: The summary that contexts show
	Summary string `json:"summary,omitzero"`
	// SummaryTokens: Size of the summary, in reference tokens
	SummaryTokens int64 `json:"summary_tokens"`
	// Through: The last message that the compaction hides
	Through string `json:"through,omitzero"`
	// TokensAfter: Size of the context after it, in reference tokens
	TokensAfter int64 `json:"tokens_after"`
	// TokensBefore: Size of the context before it, in reference tokens
	TokensBefore int64 `json:"tokens_before"`
	// Trigger: threshold, overflow, manual, import
	Trigger string `json:"trigger"`
	// Undone: It is undone in this session
	Undone bool `json:"undone,omitzero"`
	// UndoneAt: Time of the undo
	UndoneAt time.Time `json:"undone_at,omitzero"`
}

// Compaction is an object of the API.
type Compaction struct {
	// ActivatedAt: Time it took effect; missing: never
	ActivatedAt time.Time `json:"activated_at,omitzero"`
	// CreatedAt: Time of creation, RFC 3339 in UTC
	CreatedAt time.Time `json:"created_at"`
	// Details: Read and modified files, pruned outputs and other details of how it was made
	Details json.RawMessage `json:"details,omitzero"`
	// DurationMs: Milliseconds it took
	DurationMs int64 `json:"duration_ms"`
	// FirstKept: The first message that is kept; missing: none
	FirstKept string `json:"first_kept,omitzero"`
	// HiddenTokens: Size of the hidden messages, in reference tokens
	HiddenTokens int64 `json:"hidden_tokens"`
	// ID: The compaction's id, like cmp_12; empty in a dry run
	ID string `json:"id"`
	// MessageCount: Number of newly hidden messages
	MessageCount int64 `json:"message_count"`
	// Model: Model of the summary; missing: no model was used
	Model string `json:"model,omitzero"`
	// PrefixSummary: Summary of the hidden beginning of a split turn
	PrefixSummary string `json:"prefix_summary,omitzero"`
	// Previous: The compaction that was in effect before it
	Previous string `json:"previous,omitzero"`
	// Provider: Provider of the summary's model; missing: no model was used
	Provider string `json:"provider,omitzero"`
	// Reason: Why it failed or was skipped
	Reason string `json:"reason,omitzero"`
	// Replacement: Messages that stand in place of the hidden ones, of an imported compaction
	Replacement json.RawMessage `json:"replacement,omitzero"`
	// SessionID: The id of a session, like 20260211_001
	SessionID string `json:"session_id"`
	// SpanSummary: Summary of the newly hidden messages alone
	SpanSummary string `json:"span_summary,omitzero"`
	// Status: running, staged (ready, not in effect yet), done, failed, skipped
	Status string `json:"status"`
	// Strategy: summarize, prune (old tool output becomes a line), truncate (a prefix is hidden), clear (everything is
	// hidden)
	Strategy string `json:"strategy"`
	// Summary: The summary that contexts show
	Summary string `json:"summary,omitzero"`
	// SummaryTokens: Size of the summary, in reference tokens
	SummaryTokens int64 `json:"summary_tokens"`
	// Through: The last message that the compaction hides
	Through string `json:"through,omitzero"`
	// TokensAfter: Size of the context after it, in reference tokens
	TokensAfter int64 `json:"tokens_after"`
	// TokensBefore: Size of the context before it, in reference tokens
	TokensBefore int64 `json:"tokens_before"`
	// Trigger: threshold, overflow, manual, import
	Trigger string `json:"trigger"`
	// Undone: It is undone in this session
	Undone bool `json:"undone,omitzero"`
	// UndoneAt: Time of the undo
	UndoneAt time.Time `json:"undone_at,omitzero"`
}

// CompactionStats is an object of the API.
type CompactionStats struct {
	// CostUSD: US dollars of their summaries, also of failed ones; null: no price is known
	CostUSD *float64 `json:"cost_usd"`
	// Count: Compactions that took effect and were not undone
	Count int64 `json:"count"`
	// TokensSaved: Reference tokens removed from contexts
	TokensSaved int64 `json:"tokens_saved"`
}

// Context is an object of the API.
type Context struct {
	// Adjustments: Changes that the provider's rules or the reserve required
	Adjustments []string `json:"adjustments"`
	// Compaction: The compaction in effect; null: none
	Compaction *ViewOverlay `json:"compaction"`
	// ContextID: Name it as context_id in the record of the call made with this context. Missing: the context was only
	// read, or calls are pending
	ContextID string `json:"context_id,omitzero"`
	// Counting: With explain: how tokens were counted
	Counting *Counting `json:"counting,omitzero"`
	// Dialect: The provider's form of request
	Dialect Dialect `json:"dialect"`
	// Directives: Requests to the caller
	Directives []Directive `json:"directives"`
	// Losses: Content that was left out or shortened
	Losses []string `json:"losses"`
	// Model: The model's id, as the provider names it
	Model string `json:"model"`
	// PendingCalls: Ids of tool calls without a result: append their results first, or take the turn with close_calls
	PendingCalls []string `json:"pending_calls"`
	// Prefix: How much of the context before it extends
	Prefix Prefix `json:"prefix"`
	// Provenance: Source of each item
	Provenance []Provenance `json:"provenance"`
	// Request: The fields that go into the provider's request, beside model and tools: messages of openai.chat, input
	// and instructions of openai.responses, messages and system of anthropic, contents and systemInstruction of gemini;
	// null while calls are pending
	Request json.RawMessage `json:"request"`
	// Settings: With explain: each setting, with its source
	Settings []Setting `json:"settings,omitzero"`
	// ThinkingLevel: off: the provider would reject this request with thinking on. Missing: choose freely. One of: off
	ThinkingLevel string `json:"thinking_level,omitzero"`
	// Tokens: Size of the context and the limits of the model
	Tokens ContextTokens `json:"tokens"`
	// ToolNames: Tools whose names the provider does not take: the name in the request, and the tool's own. Declare the
	// tool under the first, and run the second when the model calls it
	ToolNames json.RawMessage `json:"tool_names,omitzero"`
	// Warnings: Warnings, for people
	Warnings []string `json:"warnings"`
}

// ContextSize is an object of the API.
type ContextSize struct {
	// Reported: false: no report of a provider holds for this context, the number is an estimate
	Reported bool `json:"reported"`
	// Tokens: By the provider's newest report and the messages since, else by sessiond's own count
	Tokens int64 `json:"tokens"`
	// Window: Tokens that the model accepts; missing: not known
	Window int64 `json:"window,omitzero"`
}

// ContextTokens is an object of the API.
type ContextTokens struct {
	// Error: Two standard errors of total, in tokens
	Error int64 `json:"error"`
	// Method: anchor (a provider's report, plus an estimate of later messages) or estimate
	Method string `json:"method"`
	// Reserve: Tokens kept free for the reply
	Reserve int64 `json:"reserve"`
	// Threshold: Compaction begins above this size
	Threshold int64 `json:"threshold"`
	// Total: Size of the context, in tokens of the model
	Total int64 `json:"total"`
	// Window: The model's window, in tokens
	Window int64 `json:"window"`
}

// Conversation is an object of the API.
type Conversation struct {
	// CreatedAt: Time of creation, in seconds since 1970
	CreatedAt int64 `json:"created_at"`
	// ID: conv_ and the id of the session
	ID string `json:"id"`
	// Metadata: The members of the session's metadata that are texts
	Metadata json.RawMessage `json:"metadata"`
	// Object: conversation. One of: conversation
	Object string `json:"object"`
}

// ConversationRequest is a body of the API.
type ConversationRequest struct {
	// Items: The first items, up to 20
	Items []any `json:"items,omitzero"`
	// Metadata: Up to 16 pairs of texts, kept in the session's metadata
	Metadata any `json:"metadata,omitempty"`
}

// ConversationUpdateRequest is a body of the API.
type ConversationUpdateRequest struct {
	// Metadata: Up to 16 pairs of texts, which replace those there were; null: none
	Metadata any `json:"metadata"`
}

// Counting is an object of the API.
type Counting struct {
	// Anchor: The provider's report that the count starts from; null: none
	Anchor *Anchor `json:"anchor"`
	// Error: Two standard errors of the total, in tokens
	Error int64 `json:"error"`
	// Estimate: sessiond's own count of everything, in tokens
	Estimate int64 `json:"estimate"`
	// Estimated: The part of the total that no provider counted, in tokens
	Estimated int64 `json:"estimated"`
	// Excess: Above 1 if parts were cut to fit: total is estimate times this
	Excess float64 `json:"excess"`
	// Family: Tokenizer family of the model
	Family string `json:"family"`
	// High: total + error: compaction goes by it
	High int64 `json:"high"`
	// Low: total − error
	Low int64 `json:"low"`
	// Method: anchor or estimate
	Method string `json:"method"`
	// Overhead: Size of tools and framing
	Overhead Overhead `json:"overhead"`
	// Scale: Factor of the model, learned from reports; 1: nothing is learned
	Scale float64 `json:"scale"`
}

// Deleted is an object of the API.
type Deleted struct {
	// Deleted: true
	Deleted bool `json:"deleted"`
	// ID: Its id
	ID string `json:"id"`
	// Object: conversation.deleted. One of: conversation.deleted
	Object string `json:"object"`
}

// DeletedLines is an object of the API.
type DeletedLines struct {
	// Sessions: The sessions that were imported from them, and are purged
	Sessions []string `json:"sessions"`
}

// Directive is an object of the API.
type Directive struct {
	// Choices: Of compaction_choice: the strategies
	Choices []string `json:"choices,omitzero"`
	// Generation: Of memory_flush: send it back with the acknowledgement; "" before the first compaction
	Generation string `json:"generation,omitzero"`
	// Prompt: Text for the model, in the user's role
	Prompt string `json:"prompt,omitzero"`
	// SystemPrompt: System text for that run
	SystemPrompt string `json:"system_prompt,omitzero"`
	// Type: memory_flush (run the prompt, so that the agent saves its memory), continue, or compaction_choice (compact
	// with one of choices)
	Type string `json:"type"`
}

// FieldError is an object of the API.
type FieldError struct {
	// Message: What is wrong with it
	Message string `json:"message"`
	// Path: The field or parameter, like call.usage
	Path string `json:"path"`
}

// FileSession is an object of the API.
type FileSession struct {
	// Files: The files that it read or changed
	Files []string `json:"files"`
	// First: The first operation
	First FileTouch `json:"first"`
	// Last: The last operation
	Last FileTouch `json:"last"`
	// MoreFiles: Number of further files, which files does not name
	MoreFiles int64 `json:"more_files,omitzero"`
	// Ops: Number of messages for each operation: read, write, edit, delete
	Ops json.RawMessage `json:"ops"`
	// Session: The session
	Session Session `json:"session"`
}

// FileTouch is an object of the API.
type FileTouch struct {
	// At: Time, RFC 3339 in UTC
	At time.Time `json:"at"`
	// MessageID: The id of a message, like 20260211_001.42
	MessageID string `json:"message_id"`
	// Op: read, write, edit or delete
	Op string `json:"op"`
	// Path: An absolute path
	Path string `json:"path"`
}

// Flush is an object of the API.
type Flush struct {
	// At: Time, RFC 3339 in UTC
	At time.Time `json:"at"`
	// Generation: The compaction in effect at the request, like cmp_12; "": none
	Generation string `json:"generation"`
	// Outcome: asked, ok or failed
	Outcome string `json:"outcome"`
}

// FlushRequest is a body of the API.
type FlushRequest struct {
	// Generation: generation of the directive; default: that of the newest request
	Generation string `json:"generation,omitzero"`
	// Outcome: ok (the default), or failed: a later turn requests it again. One of: ok, failed
	Outcome string `json:"outcome,omitzero"`
}

// ForkRequest is a body of the API.
type ForkRequest struct {
	// At: The last message that the fork shares: a seq of this session, or the id of any message of its tree; default:
	// the head
	At string `json:"at,omitzero"`
	// States: Names of the documents to copy; default: none
	States []string `json:"states,omitzero"`
	// Title: Title, for people; default: this session's title and the fork's number
	Title string `json:"title,omitzero"`
}

// Freshness is an object of the API.
type Freshness struct {
	// Boundary: The daily boundary in force; null: no daily rule
	Boundary *time.Time `json:"boundary"`
	// IdleExpiresAt: Time at which the session becomes stale; null: no idle rule
	IdleExpiresAt *time.Time `json:"idle_expires_at"`
	// Stale: The next message begins a new session
	Stale bool `json:"stale"`
}

// Fullness is an object of the API.
type Fullness struct {
	// PercentUsed: total_tokens in percent of the window; null: unknown
	PercentUsed *int64 `json:"percent_used"`
	// RemainingTokens: Tokens left in the window; null: unknown
	RemainingTokens *int64 `json:"remaining_tokens"`
	// TotalTokens: Size of the last call's prompt, in tokens of the model; null: unknown
	TotalTokens *int64 `json:"total_tokens"`
	// Window: The model's window, in tokens
	Window int64 `json:"window"`
}

// HeadRequest is a body of the API.
type HeadRequest struct {
	// Seq: The message to continue from; null: before the first message
	Seq Field[string] `json:"seq,omitzero"`
	// Summarize: Add a short summary of the abandoned branch at the new head; it is made in the background, and the
	// answer is 202
	Summarize *bool `json:"summarize,omitzero"`
}

// Health is an object of the API.
type Health struct {
	// Status: ok. One of: ok
	Status string `json:"status"`
}

// Hit is an object of the API.
type Hit struct {
	// After: With expand: the messages after it, oldest first, their beginnings
	After []Item `json:"after,omitzero"`
	// Before: With expand: the messages before it, oldest first, their beginnings
	Before []Item `json:"before,omitzero"`
	// CreatedAt: Time of the message, RFC 3339 in UTC
	CreatedAt time.Time `json:"created_at"`
	// Marked: Its tags and note, a line each, if they have the words
	Marked string `json:"marked,omitzero"`
	// MessageID: The message that was found, like 20260211_001.42
	MessageID string `json:"message_id"`
	// Role: system, user, assistant or tool
	Role string `json:"role"`
	// Score: Rank: higher is better; comparable only within one answer
	Score float64 `json:"score"`
	// Seq: Number of the message in its session, from 1
	Seq int64 `json:"seq"`
	// SessionID: The id of a session, like 20260211_001
	SessionID string `json:"session_id"`
	// Snippet: Text around the words that were found
	Snippet string `json:"snippet"`
}

// Hook is an object of the API.
type Hook struct {
	// Text: What to add to the context; empty: nothing
	Text string `json:"text"`
	// Version: Version of the daemon
	Version string `json:"version"`
}

// HookRequest is a body of the API.
type HookRequest struct {
	// Directory: The working directory: earlier sessions of its project are searched
	Directory string `json:"directory"`
	// Event: The event, by its name in Claude Code. One of: SessionStart, UserPromptSubmit, PreToolUse
	Event string `json:"event"`
	// File: Of PreToolUse: the file that is about to change
	File string `json:"file,omitzero"`
	// Program: The program that asks, like codex
	Program string `json:"program"`
	// Prompt: Of UserPromptSubmit: the prompt
	Prompt string `json:"prompt,omitzero"`
	// Session: The program's id of the session
	Session string `json:"session,omitzero"`
	// Settings: What the answer depends on beside this request, by the command: its version, database and settings. 409
	// if the daemon has others
	Settings string `json:"settings,omitzero"`
	// Source: Of SessionStart: startup or compact
	Source string `json:"source,omitzero"`
}

// ItemList is an object of the API.
type ItemList struct {
	// Data: The items
	Data []json.RawMessage `json:"data"`
	// FirstID: The id of the first one; null: there is none
	FirstID *string `json:"first_id"`
	// HasMore: Others follow
	HasMore bool `json:"has_more"`
	// LastID: The id of the last one, for after; null: there is none
	LastID *string `json:"last_id"`
	// Object: list. One of: list
	Object string `json:"object"`
}

// ItemPlace is an object of the API.
type ItemPlace struct {
	// ID: Its id
	ID string `json:"id"`
	// Seq: Number of the message in its session, from 1
	Seq int64 `json:"seq"`
}

// ItemsRequest is a body of the API.
type ItemsRequest struct {
	// Items: The items, up to 20, in OpenAI's form
	Items []any `json:"items"`
}

// Key is an object of the API.
type Key struct {
	// ActiveAt: Time of the last message in a turn that a person began
	ActiveAt time.Time `json:"active_at"`
	// Context: How full the window is, by the last report
	Context *Fullness `json:"context"`
	// DisplayName: A name for people, from the connector; null: none
	DisplayName *string `json:"display_name"`
	// Generation: Number of the session under its key, from 1; 0: no key
	Generation int64 `json:"generation"`
	// InboundAt: Time of the last message of a person
	InboundAt *time.Time `json:"inbound_at"`
	// Key: The routing key, like agent:main:main
	Key string `json:"key"`
	// Kind: Kind of conversation. One of: direct, group, global, unknown
	Kind string `json:"kind"`
	// Label: A person's name for the key; unique
	Label string `json:"label,omitzero"`
	// MessageCount: Messages of the current session
	MessageCount int64 `json:"message_count"`
	// Model: The model's id, as the provider names it
	Model string `json:"model,omitzero"`
	// SessionID: The current session of the key
	SessionID string `json:"session_id"`
	// Stale: The next message begins a new session
	Stale bool `json:"stale"`
	// StartedAt: Time the current session began
	StartedAt time.Time `json:"started_at"`
	// Title: Title of the row, for people
	Title string `json:"title"`
}

// KeyGenerations is an object of the API.
type KeyGenerations struct {
	// Data: The sessions of the key, newest first
	Data []Session `json:"data"`
	// Key: The routing key, like agent:main:main
	Key string `json:"key"`
	// Label: A person's name for the key; unique
	Label string `json:"label,omitzero"`
	// NextCursor: Send it as cursor to get the next page; null: this is the last page
	NextCursor *string `json:"next_cursor"`
	// ParentKey: Of a thread: the conversation above it
	ParentKey *string `json:"parent_key"`
	// Policy: When the key begins a new session
	Policy Policy `json:"policy"`
	// Source: What the key stands for. One of: chat, cron, hook, subagent, acp
	Source string `json:"source"`
	// Type: Kind of conversation. One of: dm, group, thread
	Type string `json:"type"`
}

// KeyPatchRequest is a body of the API.
type KeyPatchRequest struct {
	// Label: 1 to 64 characters, unique among keys; null removes it
	Label Field[string] `json:"label,omitzero"`
}

// Label is an object of the API.
type Label struct {
	// MessageID: The tagged message
	MessageID string `json:"message_id"`
	// Text: The tag
	Text string `json:"text"`
}

// LabelRequest is a body of the API.
type LabelRequest struct {
	// Text: 1 to 64 characters after trimming
	Text string `json:"text"`
}

// LinesRequest is a body of the API.
type LinesRequest struct {
	// ExpectLines: How many lines the transcript must have, for a summary that continues one; else the answer is 409
	ExpectLines *int64 `json:"expect_lines,omitzero"`
	// Lines: The lines, each an object, in their order. One whose uuid the transcript has is left out
	Lines []any `json:"lines"`
	// Summary: Replaces the client's own summary of the session; not with a subpath
	Summary any `json:"summary,omitempty"`
}

// Link is an object of the API.
type Link struct {
	// CallID: Of a child: the id of that call
	CallID string `json:"call_id,omitzero"`
	// Kind: fork or child
	Kind string `json:"kind"`
	// MessageID: Of a fork: the last message that it shares. Of a child: the message whose call started it
	MessageID string `json:"message_id,omitzero"`
	// ParentID: The session that this one was forked from or started by
	ParentID string `json:"parent_id"`
	// SessionID: The fork or child
	SessionID string `json:"session_id"`
	// Title: Title of the fork or child, for people
	Title string `json:"title,omitzero"`
}

// ListedSession is an object of the API.
type ListedSession struct {
	// ActiveAt: Time of the last message in a turn that a person began
	ActiveAt time.Time `json:"active_at"`
	// ArchivedAt: Time it was archived
	ArchivedAt time.Time `json:"archived_at,omitzero"`
	// CacheReadTokens: Input tokens read from the provider's cache, as the provider reported
	CacheReadTokens int64 `json:"cache_read_tokens"`
	// CacheWriteTokens: Input tokens written to the provider's cache, as the provider reported
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	// CompactionCount: Compactions that took effect in it
	CompactionCount int64 `json:"compaction_count"`
	// Context: Size of the context at the head, now
	Context *ContextSize `json:"context"`
	// ContextTokens: Size of the context at the head, in reference tokens (sessiond's own count, the same for all
	// models)
	ContextTokens int64 `json:"context_tokens"`
	// CostUSD: US dollars; null: no price is known
	CostUSD *float64 `json:"cost_usd"`
	// CreatedAt: Time of creation, RFC 3339 in UTC
	CreatedAt time.Time `json:"created_at"`
	// Day: Local day of creation, YYYY-MM-DD
	Day string `json:"day"`
	// DeletedAt: Time it was put into the trash
	DeletedAt time.Time `json:"deleted_at,omitzero"`
	// Directory: Working directory, an absolute path
	Directory string `json:"directory,omitzero"`
	// Draft: Hidden from lists until its first reply
	Draft bool `json:"draft,omitzero"`
	// EndReason: Why it ended: daily, idle, command, rpc, run, overflow, role_order, corrupt
	EndReason string `json:"end_reason,omitzero"`
	// EndedAt: Time a reset ended it
	EndedAt time.Time `json:"ended_at,omitzero"`
	// Epoch: Counts up when a context no longer extends the context before it
	Epoch int64 `json:"epoch"`
	// ForeignFrom: The file, given by hand, from which it was imported; hooks leave such a session out. Missing: it is
	// the user's own
	ForeignFrom string `json:"foreign_from,omitzero"`
	// Generation: Number of the session under its key, from 1; 0: no key
	Generation int64 `json:"generation,omitzero"`
	// GitBranch: Git branch at the beginning
	GitBranch string `json:"git_branch,omitzero"`
	// Head: The message that the next message follows, like 20260211_001.42; null: the session is empty
	Head *string `json:"head"`
	// Host: Name of the host on which it began
	Host string `json:"host,omitzero"`
	// ID: The session's id, YYYYMMDD_NNN: the day of creation and a counter; it is never used again
	ID string `json:"id"`
	// InboundAt: Time of the last message of a person
	InboundAt *time.Time `json:"inbound_at,omitzero"`
	// InputTokens: Input tokens without cached tokens, as the provider reported
	InputTokens int64 `json:"input_tokens"`
	// Key: The routing key, like agent:main:main
	Key string `json:"key,omitzero"`
	// Kind: chat, subagent, cron, hook, other
	Kind string `json:"kind"`
	// LastSeq: The highest seq so far
	LastSeq int64 `json:"last_seq"`
	// MessageCount: Number of its own messages; a fork does not count the messages that it shares
	MessageCount int64 `json:"message_count"`
	// Metadata: The caller's own JSON object
	Metadata json.RawMessage `json:"metadata"`
	// Model: The model's id, as the provider names it
	Model string `json:"model,omitzero"`
	// OutputTokens: Output tokens including reasoning, as the provider reported
	OutputTokens int64 `json:"output_tokens"`
	// Owner: Whose it is; missing: the person's who runs the daemon
	Owner string `json:"owner,omitzero"`
	// ParentID: The session that this one was forked from or started by
	ParentID string `json:"parent_id,omitzero"`
	// ParentKind: fork (it shares the parent's path up to a message) or child (a sub-agent)
	ParentKind string `json:"parent_kind,omitzero"`
	// Project: Git root of the directory, else the directory
	Project string `json:"project,omitzero"`
	// Provider: The model's provider, like openai, anthropic, gemini
	Provider string `json:"provider,omitzero"`
	// Revision: Counts every change; the number in the ETag
	Revision int64 `json:"revision"`
	// Rollup: Sums of the session and its sub-agents, at any depth; missing: it started none
	Rollup *Rollup `json:"rollup,omitzero"`
	// SaidCount: How many of its own messages are words of a person or a model: without calls, results and rows of the
	// program
	SaidCount int64 `json:"said_count"`
	// Settings: Its own settings of the context manager; they override the configuration
	Settings *Settings `json:"settings,omitzero"`
	// Source: The program that the session comes from: sessiond, codex, claude-code …
	Source string `json:"source"`
	// SourceID: Its id in the source program
	SourceID string `json:"source_id,omitzero"`
	// StarredAt: Time a person starred it
	StarredAt time.Time `json:"starred_at,omitzero"`
	// Tags: Its tags, in the order in which they were set
	Tags []string `json:"tags,omitzero"`
	// Title: Title, for people
	Title string `json:"title"`
	// TitleSource: given, first_message, model (a model wrote the title) or source (the source program did)
	TitleSource string `json:"title_source,omitzero"`
	// TotalTokens: Size of its own messages, in reference tokens
	TotalTokens int64 `json:"total_tokens"`
	// UnpricedCalls: Calls without a known price
	UnpricedCalls int64 `json:"unpriced_calls"`
	// UpdatedAt: Time of the last change
	UpdatedAt time.Time `json:"updated_at"`
	// Window: The model's window, in tokens; default: the catalogue's
	Window int64 `json:"window,omitzero"`
}

// Mark is an object of the API.
type Mark struct {
	// CreatedAt: Time it was set
	CreatedAt time.Time `json:"created_at"`
	// Kind: pin, tag or note
	Kind string `json:"kind"`
	// MessageID: The marked message; missing: the session itself
	MessageID string `json:"message_id,omitzero"`
	// Revision: Of a note: its ETag
	Revision int64 `json:"revision,omitzero"`
	// Text: The tag, or the note's text
	Text string `json:"text,omitzero"`
}

// Message is an object of the API.
type Message struct {
	// Author: The speaker's name in the provider's form
	Author string `json:"author,omitzero"`
	// Content: All its text. In a list, a part whose text this is has no text of its own
	Content string `json:"content"`
	// CreatedAt: Time of creation, RFC 3339 in UTC
	CreatedAt time.Time `json:"created_at"`
	// Day: Local day of creation, YYYY-MM-DD
	Day string `json:"day"`
	// Dialect: The form it came in: openai.chat, openai.responses, anthropic, gemini, ui, native
	Dialect string `json:"dialect,omitzero"`
	// Display: It is shown to people
	Display bool `json:"display"`
	// ExternalID: Its id in the source program; unique within the session
	ExternalID string `json:"external_id,omitzero"`
	// Finish: Why the reply ended: stop, tool_calls, length, error, aborted, refusal, paused
	Finish string `json:"finish,omitzero"`
	// ID: The message's id: its session and its seq, like 20260211_001.42
	ID string `json:"id"`
	// InContext: Contexts contain it
	InContext bool `json:"in_context"`
	// Kind: message, bash (a command that the person ran), custom_message, custom, branch_summary, marker (a change of
	// the model or the title), unknown (kept as it came)
	Kind string `json:"kind"`
	// Metadata: The caller's own JSON object
	Metadata json.RawMessage `json:"metadata,omitzero"`
	// Model: Of a reply: the model's id
	Model string `json:"model,omitzero"`
	// Origin: Who made the message: person, model, tool, program
	Origin string `json:"origin"`
	// Parent: The message before it on its path; null: it is the first
	Parent *string `json:"parent"`
	// Parts: Its content, in order
	Parts []Part `json:"parts"`
	// Provider: Of a reply: the model's provider
	Provider string `json:"provider,omitzero"`
	// Role: system, user, assistant or tool
	Role string `json:"role"`
	// Seq: Number of the message in its session, from 1
	Seq int64 `json:"seq"`
	// Tokens: Size in reference tokens (sessiond's own count, the same for all models)
	Tokens int64 `json:"tokens"`
}

// MessageList is an object of the API.
type MessageList struct {
	// Data: The items of this page
	Data []Item `json:"data"`
	// NextCursor: Send it as cursor to get the next page; null: this is the last page
	NextCursor *string `json:"next_cursor"`
	// Places: With dialect: the message of each item of data; of an item made of several, the last
	Places []ItemPlace `json:"places,omitzero"`
}

// Missing is an object of the API.
type Missing struct {
	// DidYouMean: A word that messages have, one letter different
	DidYouMean string `json:"did_you_mean,omitzero"`
	// Searched: Nothing else was found, so did_you_mean was searched instead
	Searched bool `json:"searched,omitzero"`
	// Word: As it was written in the query
	Word string `json:"word"`
}

// NamedTime is an object of the API.
type NamedTime struct {
	// Filter: What limits the query to that time, if it is added to it
	Filter string `json:"filter"`
	// Flags: The same as flags of the command
	Flags string `json:"flags,omitzero"`
	// Since: Its beginning; without a year, that of the last year
	Since time.Time `json:"since,omitzero"`
	// Text: As it was written in the query
	Text string `json:"text"`
	// Until: Its end, if it has one and is over
	Until time.Time `json:"until,omitzero"`
}

// NewSessionRequest is a body of the API.
type NewSessionRequest struct {
	// Directory: Working directory, an absolute path
	Directory string `json:"directory,omitzero"`
	// Draft: Hidden from lists until its first reply
	Draft *bool `json:"draft,omitzero"`
	// GitBranch: Git branch at the beginning
	GitBranch string `json:"git_branch,omitzero"`
	// Key: A routing key: this session becomes its next generation
	Key string `json:"key,omitzero"`
	// Kind: Kind of session; default chat, of a child subagent. One of: chat, subagent, cron, hook, other
	Kind string `json:"kind,omitzero"`
	// Metadata: The caller's own JSON object
	Metadata any `json:"metadata,omitempty"`
	// Model: The model's id, as the provider names it
	Model string `json:"model,omitzero"`
	// ParentCall: The id of the tool call that starts this session
	ParentCall string `json:"parent_call,omitzero"`
	// ParentID: The session that starts this one
	ParentID string `json:"parent_id,omitzero"`
	// ParentKind: child (the default with parent_id); POST /v1/sessions/{id}/fork makes a fork. One of: child
	ParentKind string `json:"parent_kind,omitzero"`
	// ParentMessage: The parent's message whose call starts this session: a seq of the parent, or an id
	ParentMessage string `json:"parent_message,omitzero"`
	// Provider: The model's provider, like openai, anthropic, gemini
	Provider string `json:"provider,omitzero"`
	// Settings: Settings of the context manager that override the configuration
	Settings *Settings `json:"settings,omitzero"`
	// Title: Title, for people
	Title string `json:"title,omitzero"`
	// Window: The model's window, in tokens; default: the catalogue's
	Window *int64 `json:"window,omitzero"`
}

// NoteRequest is a body of the API.
type NoteRequest struct {
	// Text: At most 10,000 characters; an empty text removes the note
	Text string `json:"text"`
}

// OpenAIError is an object of the API.
type OpenAIError struct {
	// Error: What failed
	Error OpenAIFault `json:"error"`
}

// OpenAIFault is an object of the API.
type OpenAIFault struct {
	// Code: The kind of error, like invalid_api_key; null: none
	Code *string `json:"code"`
	// Message: What happened, why, and what to do
	Message string `json:"message"`
	// Param: The invalid field or parameter; null: none
	Param *string `json:"param"`
	// Type: invalid_request_error or server_error
	Type string `json:"type"`
}

// Overhead is an object of the API.
type Overhead struct {
	// Method: none, counted (from tools), given (overhead_tokens), kept (from the turn before) or learned (from reports)
	Method string `json:"method"`
	// Tokens: Tokens outside the messages
	Tokens int64 `json:"tokens"`
}

// Param is an object of the API.
type Param struct {
	// Description: Its meaning and its default
	Description string `json:"description"`
	// Name: The parameter's name
	Name string `json:"name"`
}

// Part is an object of the API.
type Part struct {
	// Arguments: Of a tool call: the arguments as the model wrote them, usually JSON
	Arguments string `json:"arguments,omitzero"`
	// Blob: SHA-256, in hex, of a text or of bytes over 64 KiB
	Blob string `json:"blob,omitzero"`
	// CallID: Of a tool call and its result: the call's id
	CallID string `json:"call_id,omitzero"`
	// Cut: Bytes that are left out here: read the message for the whole part
	Cut int64 `json:"cut,omitzero"`
	// DurationMs: Of a tool result: milliseconds that the tool took
	DurationMs int64 `json:"duration_ms,omitzero"`
	// Extra: Fields of the provider's form that have no field of their own here
	Extra json.RawMessage `json:"extra,omitzero"`
	// IsError: Of a tool result: the tool failed; missing: unknown
	IsError bool `json:"is_error,omitzero"`
	// Kind: text, reasoning, tool_call, tool_result, image, audio, file, refusal, data
	Kind string `json:"kind"`
	// Text: Its text
	Text string `json:"text,omitzero"`
	// Tokens: Size in reference tokens (sessiond's own count, the same for all models)
	Tokens int64 `json:"tokens"`
	// ToolName: Name of the tool
	ToolName string `json:"tool_name,omitzero"`
}

// Policy is an object of the API.
type Policy struct {
	// AtHour: Local hour of the daily reset, 0 to 23, in mode daily and both
	AtHour int64 `json:"at_hour"`
	// IdleMinutes: Minutes without a message after which a new session begins; null: no idle rule
	IdleMinutes *int64 `json:"idle_minutes"`
	// Mode: daily (at at_hour), idle (after idle_minutes), both, off. One of: daily, idle, both, off
	Mode string `json:"mode"`
}

// PopRequest is a body of the API.
type PopRequest struct {
	// ExpectHead: The head that the caller expects, else 409; null: the session must be empty
	ExpectHead Field[string] `json:"expect_head,omitzero"`
}

// Popped is an object of the API.
type Popped struct {
	// Head: The message that the next message follows, like 20260211_001.42; null: the session is empty
	Head *string `json:"head"`
	// Items: With a dialect: all items that the message is in it, in order
	Items []Item `json:"items,omitzero"`
	// Message: The message; null: there was none. Of several items in the dialect the last one
	Message Item `json:"message"`
	// Revision: Counts every change; the number in the ETag
	Revision int64 `json:"revision"`
}

// Prefix is an object of the API.
type Prefix struct {
	// BrokenBy: Why the context does not extend the one before: model, dialect, system, initial, tools, epoch, head,
	// late_result, trimmed, images, system_message
	BrokenBy string `json:"broken_by,omitzero"`
	// Epoch: Counts up when a context no longer extends the context before it
	Epoch int64 `json:"epoch"`
	// StableTokens: Tokens at the beginning that are the same as in the context before
	StableTokens int64 `json:"stable_tokens"`
}

// Preview is an object of the API.
type Preview struct {
	// CostUSD: Estimated cost of a model's summary, in US dollars; null: unknown
	CostUSD *float64 `json:"cost_usd"`
	// FirstKept: The first message that is kept; missing: none
	FirstKept string `json:"first_kept,omitzero"`
	// HiddenMessages: Number of messages to hide
	HiddenMessages int64 `json:"hidden_messages"`
	// HiddenTokens: Size of the messages to hide, in tokens of the model
	HiddenTokens int64 `json:"hidden_tokens"`
	// KeptMessages: Number of messages to keep
	KeptMessages int64 `json:"kept_messages"`
	// KeptTokens: Size of the kept messages, in tokens of the model
	KeptTokens int64 `json:"kept_tokens"`
	// NoGain: Why there is nothing to compact
	NoGain string `json:"no_gain,omitzero"`
	// Strategy: summarize, prune (old tool output becomes a line), truncate (a prefix is hidden), clear (everything is
	// hidden)
	Strategy string `json:"strategy"`
	// Through: The last message that the compaction hides
	Through string `json:"through,omitzero"`
	// TokensAfter: Size of the context after it, in tokens of the model
	TokensAfter int64 `json:"tokens_after"`
	// TokensBefore: Size of the context before it, in tokens of the model
	TokensBefore int64 `json:"tokens_before"`
	// TurnStart: Of a split turn: its first message, which contexts show again
	TurnStart string `json:"turn_start,omitzero"`
}

// Problem is an object of the API.
type Problem struct {
	// Code: malformed, unauthorized, forbidden, not_found, conflict, compaction_required, precondition_failed,
	// too_large, invalid, does_not_fit, internal, busy, storage_full, unavailable
	Code string `json:"code"`
	// Detail: What happened, why, and what to do
	Detail string `json:"detail"`
	// Errors: The invalid fields
	Errors []FieldError `json:"errors,omitzero"`
	// Head: Of a stale expect_head: the current head
	Head string `json:"head,omitzero"`
	// RequestID: Of an internal error: the id of its log entry
	RequestID string `json:"request_id,omitzero"`
	// Status: The HTTP status
	Status int64 `json:"status"`
	// Title: The kind of problem; the same for each occurrence
	Title string `json:"title"`
	// Type: urn:sessiond:problem: followed by the code
	Type string `json:"type"`
}

// Provenance is an object of the API.
type Provenance struct {
	// Compaction: Of a summary: its compaction, like cmp_12
	Compaction string `json:"compaction,omitzero"`
	// Kind: system, tools, initial, pinned, summary, turn_start, last_person, replacement, words, message, closed_call,
	// recall, volatile, lead
	Kind string `json:"kind"`
	// Message: Index in the context's messages, from 0; -1: system text or tools
	Message int64 `json:"message"`
	// Sources: The messages that it comes from
	Sources []string `json:"sources,omitzero"`
	// Tokens: Size in tokens of the model
	Tokens int64 `json:"tokens"`
}

// Query is an object of the API.
type Query struct {
	// Description: The question that it answers
	Description string `json:"description"`
	// Name: The query's name
	Name string `json:"name"`
	// Params: Its parameters
	Params []Param `json:"params"`
	// SQL: Its SQL
	SQL string `json:"sql"`
}

// Ready is an object of the API.
type Ready struct {
	// Detail: What a person should look at although the daemon is ready: the search index knew messages that the
	// database has not
	Detail string `json:"detail,omitzero"`
	// Engine: sqlite or postgresql. One of: sqlite, postgresql
	Engine string `json:"engine"`
}

// Result is an object of the API.
type Result struct {
	// Columns: Names of the columns
	Columns []string `json:"columns"`
	// Rows: The rows; each has one value for each column
	Rows [][]json.RawMessage `json:"rows"`
	// Truncated: Rows are missing: a limit was reached
	Truncated bool `json:"truncated"`
}

// Rollup is an object of the API.
type Rollup struct {
	// CacheReadTokens: Input tokens read from the provider's cache, as the provider reported
	CacheReadTokens int64 `json:"cache_read_tokens"`
	// CacheWriteTokens: Input tokens written to the provider's cache, as the provider reported
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	// Children: Sessions below it, at any depth
	Children int64 `json:"children"`
	// CostUSD: US dollars; null: no price is known
	CostUSD *float64 `json:"cost_usd"`
	// InputTokens: Input tokens without cached tokens, as the provider reported
	InputTokens int64 `json:"input_tokens"`
	// MessageCount: Number of messages
	MessageCount int64 `json:"message_count"`
	// OutputTokens: Output tokens including reasoning, as the provider reported
	OutputTokens int64 `json:"output_tokens"`
	// TotalTokens: Size of all messages, in reference tokens
	TotalTokens int64 `json:"total_tokens"`
	// UnpricedCalls: Calls without a known price
	UnpricedCalls int64 `json:"unpriced_calls"`
}

// RouteRequest is a body of the API.
type RouteRequest struct {
	// Account: The account of the channel that received the message; default: the only one
	Account string `json:"account,omitzero"`
	// Agent: The agent's name; default: the configured one
	Agent string `json:"agent,omitzero"`
	// At: Time of arrival; default: now
	At time.Time `json:"at,omitzero"`
	// Authorized: The sender may reset the session; default: by routing.commanders in the configuration
	Authorized *bool `json:"authorized,omitzero"`
	// Channel: The chat program, like telegram or discord
	Channel string `json:"channel,omitzero"`
	// ChatType: Kind of conversation: direct (the default), group, channel, room
	ChatType string `json:"chat_type,omitzero"`
	// Error: Of event failed: the provider's error text
	Error string `json:"error,omitzero"`
	// Event: message (the default); system: a heartbeat, which neither resets nor refreshes; run: a job or webhook
	// starts, always in a new session (the default of their keys); reset: a program requests a new session; failed: a
	// run ended in error. One of: message, system, run, reset, failed
	Event string `json:"event,omitzero"`
	// From: Instead of these fields: the origin as older connectors write it, like group:ID
	From string `json:"from,omitzero"`
	// Hook: Key of a webhook; true: a new key for each request
	Hook any `json:"hook,omitempty"`
	// Job: A scheduled job's id
	Job string `json:"job,omitzero"`
	// Key: A routing key; default: built from the fields below
	Key string `json:"key,omitzero"`
	// Metadata: Fields that the connector knows, like subject and displayName; merged into the session's metadata. Empty
	// values change nothing
	Metadata any `json:"metadata,omitempty"`
	// Peer: The id of the group or person; default for a direct message: the sender
	Peer string `json:"peer,omitzero"`
	// Running: A turn is running; default: derived from the last message
	Running *bool `json:"running,omitzero"`
	// Sender: The id of the person who sent the message
	Sender string `json:"sender,omitzero"`
	// Text: The person's text, without any wrapper
	Text string `json:"text,omitzero"`
	// Thread: Id of a thread in the conversation
	Thread string `json:"thread,omitzero"`
	// Timezone: Time zone of the daily boundary; default: the configured one
	Timezone string `json:"timezone,omitzero"`
	// Topic: Id of a forum topic
	Topic string `json:"topic,omitzero"`
}

// Routed is an object of the API.
type Routed struct {
	// Created: This request made the session
	Created bool `json:"created"`
	// Failure: Of event failed: what the error means. One of: overflow, compaction_failure, role_order, corrupt, other
	Failure *string `json:"failure"`
	// Freshness: Whether the session is out of date, and when it will be
	Freshness Freshness `json:"freshness"`
	// Generation: Number of the session under its key, from 1; 0: no key
	Generation int64 `json:"generation"`
	// Greet: A reset without further text: the agent may greet
	Greet bool `json:"greet"`
	// Key: The routing key, like agent:main:main
	Key string `json:"key"`
	// Model: provider/model for the next run; null: the agent chooses
	Model *string `json:"model"`
	// ParentKey: Of a thread: the conversation above it
	ParentKey *string `json:"parent_key"`
	// Previous: The session that ended
	Previous *string `json:"previous"`
	// Reason: Why the previous session ended; null: no session ended. One of: daily, idle, command, rpc, run, overflow,
	// role_order, corrupt
	Reason *string `json:"reason"`
	// Session: The session to use
	Session Session `json:"session"`
	// SessionID: The session to use
	SessionID string `json:"session_id"`
	// Source: What the key stands for. One of: chat, cron, hook, subagent, acp
	Source string `json:"source"`
	// Text: The text for the model, without a reset command
	Text string `json:"text"`
	// Trigger: The reset command that the text began with
	Trigger *string `json:"trigger"`
	// Type: Kind of conversation. One of: dm, group, thread
	Type string `json:"type"`
}

// Search is an object of the API.
type Search struct {
	// Elsewhere: When the filters find nothing: filters that would find something
	Elsewhere []string `json:"elsewhere,omitzero"`
	// Hits: The messages that were found; for a question (who, what, …?) also messages beside the best ones, which may
	// have none of its words
	Hits []Hit `json:"hits,omitzero"`
	// Missing: Words that no message has: what was found is without them
	Missing []Missing `json:"missing,omitzero"`
	// Notes: In words: what was not found, what was not searched, and what else would find something
	Notes []string `json:"notes,omitzero"`
	// Partial: The index is behind, and some messages were not searched
	Partial bool `json:"partial,omitzero"`
	// Pending: Messages that are not in the index yet; they were searched without it
	Pending int64 `json:"pending"`
	// Sessions: With group=session, instead of hits: the sessions that were found, best first
	Sessions []SessionHit `json:"sessions,omitzero"`
	// Stopped: The search was stopped after 5 s, and there may be more and better hits: narrow it
	Stopped bool `json:"stopped,omitzero"`
	// Time: A time that the query names, like last week: its messages are preferred, not required
	Time *NamedTime `json:"time,omitzero"`
}

// Segment is an object of the API.
type Segment struct {
	// Children: The first messages of the next segments, oldest first
	Children []string `json:"children"`
	// Count: Number of messages
	Count int64 `json:"count"`
	// First: Its first message
	First TreeMessage `json:"first"`
	// Hanging: Forks that begin in it and children that it started
	Hanging []Link `json:"hanging,omitzero"`
	// Head: Its last message is the head
	Head bool `json:"head,omitzero"`
	// Labels: Tags of its messages, in order; the first of a message is its label
	Labels []Label `json:"labels,omitzero"`
	// Last: Its last message; equal to first in a segment of one message
	Last TreeMessage `json:"last"`
	// OnPath: It lies on the path to the head
	OnPath bool `json:"on_path"`
	// Overlays: Compactions that took effect and end in it
	Overlays []TreeCut `json:"overlays,omitzero"`
	// Parent: The message before its first one; null: none
	Parent *string `json:"parent"`
	// Shared: It lies on the path that a fork shares
	Shared bool `json:"shared,omitzero"`
	// Tokens: Size of its messages that contexts contain, in reference tokens
	Tokens int64 `json:"tokens"`
}

// Session is an object of the API.
type Session struct {
	// ActiveAt: Time of the last message in a turn that a person began
	ActiveAt time.Time `json:"active_at"`
	// ArchivedAt: Time it was archived
	ArchivedAt time.Time `json:"archived_at,omitzero"`
	// CacheReadTokens: Input tokens read from the provider's cache, as the provider reported
	CacheReadTokens int64 `json:"cache_read_tokens"`
	// CacheWriteTokens: Input tokens written to the provider's cache, as the provider reported
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	// CompactionCount: Compactions that took effect in it
	CompactionCount int64 `json:"compaction_count"`
	// ContextTokens: Size of the context at the head, in reference tokens (sessiond's own count, the same for all
	// models)
	ContextTokens int64 `json:"context_tokens"`
	// CostUSD: US dollars; null: no price is known
	CostUSD *float64 `json:"cost_usd"`
	// CreatedAt: Time of creation, RFC 3339 in UTC
	CreatedAt time.Time `json:"created_at"`
	// Day: Local day of creation, YYYY-MM-DD
	Day string `json:"day"`
	// DeletedAt: Time it was put into the trash
	DeletedAt time.Time `json:"deleted_at,omitzero"`
	// Directory: Working directory, an absolute path
	Directory string `json:"directory,omitzero"`
	// Draft: Hidden from lists until its first reply
	Draft bool `json:"draft,omitzero"`
	// EndReason: Why it ended: daily, idle, command, rpc, run, overflow, role_order, corrupt
	EndReason string `json:"end_reason,omitzero"`
	// EndedAt: Time a reset ended it
	EndedAt time.Time `json:"ended_at,omitzero"`
	// Epoch: Counts up when a context no longer extends the context before it
	Epoch int64 `json:"epoch"`
	// ForeignFrom: The file, given by hand, from which it was imported; hooks leave such a session out. Missing: it is
	// the user's own
	ForeignFrom string `json:"foreign_from,omitzero"`
	// Generation: Number of the session under its key, from 1; 0: no key
	Generation int64 `json:"generation,omitzero"`
	// GitBranch: Git branch at the beginning
	GitBranch string `json:"git_branch,omitzero"`
	// Head: The message that the next message follows, like 20260211_001.42; null: the session is empty
	Head *string `json:"head"`
	// Host: Name of the host on which it began
	Host string `json:"host,omitzero"`
	// ID: The session's id, YYYYMMDD_NNN: the day of creation and a counter; it is never used again
	ID string `json:"id"`
	// InboundAt: Time of the last message of a person
	InboundAt *time.Time `json:"inbound_at,omitzero"`
	// InputTokens: Input tokens without cached tokens, as the provider reported
	InputTokens int64 `json:"input_tokens"`
	// Key: The routing key, like agent:main:main
	Key string `json:"key,omitzero"`
	// Kind: chat, subagent, cron, hook, other
	Kind string `json:"kind"`
	// LastSeq: The highest seq so far
	LastSeq int64 `json:"last_seq"`
	// MessageCount: Number of its own messages; a fork does not count the messages that it shares
	MessageCount int64 `json:"message_count"`
	// Metadata: The caller's own JSON object
	Metadata json.RawMessage `json:"metadata"`
	// Model: The model's id, as the provider names it
	Model string `json:"model,omitzero"`
	// OutputTokens: Output tokens including reasoning, as the provider reported
	OutputTokens int64 `json:"output_tokens"`
	// Owner: Whose it is; missing: the person's who runs the daemon
	Owner string `json:"owner,omitzero"`
	// ParentID: The session that this one was forked from or started by
	ParentID string `json:"parent_id,omitzero"`
	// ParentKind: fork (it shares the parent's path up to a message) or child (a sub-agent)
	ParentKind string `json:"parent_kind,omitzero"`
	// Project: Git root of the directory, else the directory
	Project string `json:"project,omitzero"`
	// Provider: The model's provider, like openai, anthropic, gemini
	Provider string `json:"provider,omitzero"`
	// Revision: Counts every change; the number in the ETag
	Revision int64 `json:"revision"`
	// SaidCount: How many of its own messages are words of a person or a model: without calls, results and rows of the
	// program
	SaidCount int64 `json:"said_count"`
	// Settings: Its own settings of the context manager; they override the configuration
	Settings *Settings `json:"settings,omitzero"`
	// Source: The program that the session comes from: sessiond, codex, claude-code …
	Source string `json:"source"`
	// SourceID: Its id in the source program
	SourceID string `json:"source_id,omitzero"`
	// StarredAt: Time a person starred it
	StarredAt time.Time `json:"starred_at,omitzero"`
	// Tags: Its tags, in the order in which they were set
	Tags []string `json:"tags,omitzero"`
	// Title: Title, for people
	Title string `json:"title"`
	// TitleSource: given, first_message, model (a model wrote the title) or source (the source program did)
	TitleSource string `json:"title_source,omitzero"`
	// TotalTokens: Size of its own messages, in reference tokens
	TotalTokens int64 `json:"total_tokens"`
	// UnpricedCalls: Calls without a known price
	UnpricedCalls int64 `json:"unpriced_calls"`
	// UpdatedAt: Time of the last change
	UpdatedAt time.Time `json:"updated_at"`
	// Window: The model's window, in tokens; default: the catalogue's
	Window int64 `json:"window,omitzero"`
}

// SessionDetail is an object of the API.
type SessionDetail struct {
	// ActiveAt: Time of the last message in a turn that a person began
	ActiveAt time.Time `json:"active_at"`
	// ArchivedAt: Time it was archived
	ArchivedAt time.Time `json:"archived_at,omitzero"`
	// CacheReadTokens: Input tokens read from the provider's cache, as the provider reported
	CacheReadTokens int64 `json:"cache_read_tokens"`
	// CacheWriteTokens: Input tokens written to the provider's cache, as the provider reported
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	// CompactionCount: Compactions that took effect in it
	CompactionCount int64 `json:"compaction_count"`
	// Context: Size of the context at the head, now
	Context *ContextSize `json:"context"`
	// ContextTokens: Size of the context at the head, in reference tokens (sessiond's own count, the same for all
	// models)
	ContextTokens int64 `json:"context_tokens"`
	// CostUSD: US dollars; null: no price is known
	CostUSD *float64 `json:"cost_usd"`
	// CreatedAt: Time of creation, RFC 3339 in UTC
	CreatedAt time.Time `json:"created_at"`
	// Day: Local day of creation, YYYY-MM-DD
	Day string `json:"day"`
	// DeletedAt: Time it was put into the trash
	DeletedAt time.Time `json:"deleted_at,omitzero"`
	// Directory: Working directory, an absolute path
	Directory string `json:"directory,omitzero"`
	// Draft: Hidden from lists until its first reply
	Draft bool `json:"draft,omitzero"`
	// EndReason: Why it ended: daily, idle, command, rpc, run, overflow, role_order, corrupt
	EndReason string `json:"end_reason,omitzero"`
	// EndedAt: Time a reset ended it
	EndedAt time.Time `json:"ended_at,omitzero"`
	// Epoch: Counts up when a context no longer extends the context before it
	Epoch int64 `json:"epoch"`
	// ForeignFrom: The file, given by hand, from which it was imported; hooks leave such a session out. Missing: it is
	// the user's own
	ForeignFrom string `json:"foreign_from,omitzero"`
	// Generation: Number of the session under its key, from 1; 0: no key
	Generation int64 `json:"generation,omitzero"`
	// GitBranch: Git branch at the beginning
	GitBranch string `json:"git_branch,omitzero"`
	// Head: The message that the next message follows, like 20260211_001.42; null: the session is empty
	Head *string `json:"head"`
	// Host: Name of the host on which it began
	Host string `json:"host,omitzero"`
	// ID: The session's id, YYYYMMDD_NNN: the day of creation and a counter; it is never used again
	ID string `json:"id"`
	// InboundAt: Time of the last message of a person
	InboundAt *time.Time `json:"inbound_at,omitzero"`
	// InputTokens: Input tokens without cached tokens, as the provider reported
	InputTokens int64 `json:"input_tokens"`
	// Key: The routing key, like agent:main:main
	Key string `json:"key,omitzero"`
	// Kind: chat, subagent, cron, hook, other
	Kind string `json:"kind"`
	// LastSeq: The highest seq so far
	LastSeq int64 `json:"last_seq"`
	// Link: How it hangs on its parent; missing: no parent
	Link *Link `json:"link,omitzero"`
	// MessageCount: Number of its own messages; a fork does not count the messages that it shares
	MessageCount int64 `json:"message_count"`
	// Metadata: The caller's own JSON object
	Metadata json.RawMessage `json:"metadata"`
	// Model: The model's id, as the provider names it
	Model string `json:"model,omitzero"`
	// OutputTokens: Output tokens including reasoning, as the provider reported
	OutputTokens int64 `json:"output_tokens"`
	// Owner: Whose it is; missing: the person's who runs the daemon
	Owner string `json:"owner,omitzero"`
	// ParentID: The session that this one was forked from or started by
	ParentID string `json:"parent_id,omitzero"`
	// ParentKind: fork (it shares the parent's path up to a message) or child (a sub-agent)
	ParentKind string `json:"parent_kind,omitzero"`
	// Project: Git root of the directory, else the directory
	Project string `json:"project,omitzero"`
	// Provider: The model's provider, like openai, anthropic, gemini
	Provider string `json:"provider,omitzero"`
	// Revision: Counts every change; the number in the ETag
	Revision int64 `json:"revision"`
	// Rollup: Sums of the session and its sub-agents, at any depth; missing: it started none
	Rollup *Rollup `json:"rollup,omitzero"`
	// SaidCount: How many of its own messages are words of a person or a model: without calls, results and rows of the
	// program
	SaidCount int64 `json:"said_count"`
	// Settings: Its own settings of the context manager; they override the configuration
	Settings *Settings `json:"settings,omitzero"`
	// Source: The program that the session comes from: sessiond, codex, claude-code …
	Source string `json:"source"`
	// SourceID: Its id in the source program
	SourceID string `json:"source_id,omitzero"`
	// StarredAt: Time a person starred it
	StarredAt time.Time `json:"starred_at,omitzero"`
	// Tags: Its tags, in the order in which they were set
	Tags []string `json:"tags,omitzero"`
	// Title: Title, for people
	Title string `json:"title"`
	// TitleSource: given, first_message, model (a model wrote the title) or source (the source program did)
	TitleSource string `json:"title_source,omitzero"`
	// TotalTokens: Size of its own messages, in reference tokens
	TotalTokens int64 `json:"total_tokens"`
	// UnpricedCalls: Calls without a known price
	UnpricedCalls int64 `json:"unpriced_calls"`
	// UpdatedAt: Time of the last change
	UpdatedAt time.Time `json:"updated_at"`
	// Window: The model's window, in tokens; default: the catalogue's
	Window int64 `json:"window,omitzero"`
}

// SessionHit is an object of the API.
type SessionHit struct {
	// ActiveAt: Time of the last message in a turn that a person began
	ActiveAt time.Time `json:"active_at"`
	// Passages: Its best messages, up to three; none if only its title was found
	Passages []Hit `json:"passages"`
	// Project: Its folder
	Project string `json:"project"`
	// Score: Rank: higher is better; comparable only within one answer
	Score float64 `json:"score"`
	// SessionID: The id of a session, like 20260211_001
	SessionID string `json:"session_id"`
	// Source: The program that it comes from
	Source string `json:"source"`
	// StarredAt: Time a person starred it
	StarredAt time.Time `json:"starred_at,omitzero"`
	// Title: Title, for people
	Title string `json:"title"`
}

// SessionPatchRequest is a body of the API.
type SessionPatchRequest struct {
	// Archived: true: hide it from lists; false: list it again
	Archived Field[bool] `json:"archived,omitzero"`
	// Metadata: Merged into the stored object; null empties it
	Metadata Field[any] `json:"metadata,omitzero"`
	// Model: The model's id; null removes it
	Model Field[string] `json:"model,omitzero"`
	// Provider: The model's provider; null removes it
	Provider Field[string] `json:"provider,omitzero"`
	// Settings: Merged into the stored object; null empties it
	Settings Field[Settings] `json:"settings,omitzero"`
	// Starred: true: star it, so that people find it again; false: remove the star
	Starred Field[bool] `json:"starred,omitzero"`
	// Title: Title, for people; null removes it
	Title Field[string] `json:"title,omitzero"`
	// Window: The model's window, in tokens; null: the catalogue's
	Window Field[int64] `json:"window,omitzero"`
}

// Setting is an object of the API.
type Setting struct {
	// Name: The setting's name
	Name string `json:"name"`
	// Source: Who set it: request, session, file, model, preset NAME, default
	Source string `json:"source"`
	// Value: The value in force
	Value json.RawMessage `json:"value"`
}

// Settings is an object of the API.
type Settings struct {
	// CacheSlots: Marks for the provider's cache, 0 to 4
	CacheSlots *int64 `json:"cache_slots,omitzero"`
	// Fraction: Compact above this part of the window, 0 to 1; 0 and 1: no automatic compaction. Default 0.8
	Fraction *float64 `json:"fraction,omitzero"`
	// Instructions: What each summary must keep; at most 8000 bytes
	Instructions string `json:"instructions,omitzero"`
	// KeepRecentMessages: Messages to keep verbatim; default 5
	KeepRecentMessages *int64 `json:"keep_recent_messages,omitzero"`
	// KeepRecentTokens: Tokens to keep verbatim; default: a twentieth of the threshold, at least 20000, at most a fifth
	// of the threshold
	KeepRecentTokens *int64 `json:"keep_recent_tokens,omitzero"`
	// PartMaxTokens: A larger output of a tool is sent as head, marker and tail; default: a quarter of the window, at
	// most 50000
	PartMaxTokens *int64 `json:"part_max_tokens,omitzero"`
	// Preset: A named set of numbers; a number set beside it wins. Default balanced
	Preset string `json:"preset,omitzero"`
	// ProtectedTools: Tools whose output is never pruned; default ["skill"]
	ProtectedTools []string `json:"protected_tools,omitzero"`
	// PruneMinimum: Prune only if it saves so many tokens; 0: never. Default 20000
	PruneMinimum *int64 `json:"prune_minimum,omitzero"`
	// PruneProtect: The newest tool outputs, of so many tokens, are not pruned; default 40000
	PruneProtect *int64 `json:"prune_protect,omitzero"`
	// RecallTokens: Tokens to recall for each message of a person; 0: no recall. Default: at most 1000
	RecallTokens *int64 `json:"recall_tokens,omitzero"`
	// ReserveFloor: Smallest reserve, in tokens; 0: none. Default 20000
	ReserveFloor *int64 `json:"reserve_floor,omitzero"`
	// ReserveTokens: Tokens to keep free for the reply; default 16384
	ReserveTokens *int64 `json:"reserve_tokens,omitzero"`
	// Strategy: summarize (the default), truncate, clear, or ask: the caller chooses
	Strategy string `json:"strategy,omitzero"`
	// Summarizer: Which of the configured summarizers writes summaries; default: the one with the preset's name, else
	// the configuration's summarizer
	Summarizer string `json:"summarizer,omitzero"`
	// SummaryMaxTokens: Longest summary, in tokens; default: a fiftieth of the threshold, at least 4000, at most 8000
	// and three tenths of the threshold
	SummaryMaxTokens *int64 `json:"summary_max_tokens,omitzero"`
}

// ShiftedSession is an object of the API.
type ShiftedSession struct {
	// ActiveAt: Time of the last message in a turn that a person began
	ActiveAt time.Time `json:"active_at"`
	// ArchivedAt: Time it was archived
	ArchivedAt time.Time `json:"archived_at,omitzero"`
	// CacheReadTokens: Input tokens read from the provider's cache, as the provider reported
	CacheReadTokens int64 `json:"cache_read_tokens"`
	// CacheWriteTokens: Input tokens written to the provider's cache, as the provider reported
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	// CompactionCount: Compactions that took effect in it
	CompactionCount int64 `json:"compaction_count"`
	// ContextTokens: Size of the context at the head, in reference tokens (sessiond's own count, the same for all
	// models)
	ContextTokens int64 `json:"context_tokens"`
	// CostUSD: US dollars; null: no price is known
	CostUSD *float64 `json:"cost_usd"`
	// CreatedAt: Time of creation, RFC 3339 in UTC
	CreatedAt time.Time `json:"created_at"`
	// Day: Local day of creation, YYYY-MM-DD
	Day string `json:"day"`
	// DeletedAt: Time it was put into the trash
	DeletedAt time.Time `json:"deleted_at,omitzero"`
	// Directory: Working directory, an absolute path
	Directory string `json:"directory,omitzero"`
	// Draft: Hidden from lists until its first reply
	Draft bool `json:"draft,omitzero"`
	// EndReason: Why it ended: daily, idle, command, rpc, run, overflow, role_order, corrupt
	EndReason string `json:"end_reason,omitzero"`
	// EndedAt: Time a reset ended it
	EndedAt time.Time `json:"ended_at,omitzero"`
	// Epoch: Counts up when a context no longer extends the context before it
	Epoch int64 `json:"epoch"`
	// ForeignFrom: The file, given by hand, from which it was imported; hooks leave such a session out. Missing: it is
	// the user's own
	ForeignFrom string `json:"foreign_from,omitzero"`
	// Generation: Number of the session under its key, from 1; 0: no key
	Generation int64 `json:"generation,omitzero"`
	// GitBranch: Git branch at the beginning
	GitBranch string `json:"git_branch,omitzero"`
	// Head: The message that the next message follows, like 20260211_001.42; null: the session is empty
	Head *string `json:"head"`
	// Host: Name of the host on which it began
	Host string `json:"host,omitzero"`
	// ID: The session's id, YYYYMMDD_NNN: the day of creation and a counter; it is never used again
	ID string `json:"id"`
	// InboundAt: Time of the last message of a person
	InboundAt *time.Time `json:"inbound_at,omitzero"`
	// InputTokens: Input tokens without cached tokens, as the provider reported
	InputTokens int64 `json:"input_tokens"`
	// Key: The routing key, like agent:main:main
	Key string `json:"key,omitzero"`
	// Kind: chat, subagent, cron, hook, other
	Kind string `json:"kind"`
	// LastSeq: The highest seq so far
	LastSeq int64 `json:"last_seq"`
	// MessageCount: Number of its own messages; a fork does not count the messages that it shares
	MessageCount int64 `json:"message_count"`
	// Metadata: The caller's own JSON object
	Metadata json.RawMessage `json:"metadata"`
	// Model: The model's id, as the provider names it
	Model string `json:"model,omitzero"`
	// OutputTokens: Output tokens including reasoning, as the provider reported
	OutputTokens int64 `json:"output_tokens"`
	// Owner: Whose it is; missing: the person's who runs the daemon
	Owner string `json:"owner,omitzero"`
	// ParentID: The session that this one was forked from or started by
	ParentID string `json:"parent_id,omitzero"`
	// ParentKind: fork (it shares the parent's path up to a message) or child (a sub-agent)
	ParentKind string `json:"parent_kind,omitzero"`
	// Project: Git root of the directory, else the directory
	Project string `json:"project,omitzero"`
	// Provider: The model's provider, like openai, anthropic, gemini
	Provider string `json:"provider,omitzero"`
	// Revision: Counts every change; the number in the ETag
	Revision int64 `json:"revision"`
	// SaidCount: How many of its own messages are words of a person or a model: without calls, results and rows of the
	// program
	SaidCount int64 `json:"said_count"`
	// Settings: Its own settings of the context manager; they override the configuration
	Settings *Settings `json:"settings,omitzero"`
	// Source: The program that the session comes from: sessiond, codex, claude-code …
	Source string `json:"source"`
	// SourceID: Its id in the source program
	SourceID string `json:"source_id,omitzero"`
	// StarredAt: Time a person starred it
	StarredAt time.Time `json:"starred_at,omitzero"`
	// Tags: Its tags, in the order in which they were set
	Tags []string `json:"tags,omitzero"`
	// Title: Title, for people
	Title string `json:"title"`
	// TitleSource: given, first_message, model (a model wrote the title) or source (the source program did)
	TitleSource string `json:"title_source,omitzero"`
	// TotalTokens: Size of its own messages, in reference tokens
	TotalTokens int64 `json:"total_tokens"`
	// UnpricedCalls: Calls without a known price
	UnpricedCalls int64 `json:"unpriced_calls"`
	// UpdatedAt: Time of the last change
	UpdatedAt time.Time `json:"updated_at"`
	// Warnings: The context is larger than the window: the next turn compacts again
	Warnings []string `json:"warnings,omitzero"`
	// Window: The model's window, in tokens; default: the catalogue's
	Window int64 `json:"window,omitzero"`
}

// SqlRequest is a body of the API.
type SqlRequest struct {
	// Rows: Largest number of rows; default 1000
	Rows *int64 `json:"rows,omitzero"`
	// SQL: One statement that only reads
	SQL string `json:"sql"`
}

// State is an object of the API.
type State struct {
	// Name: The document's name
	Name string `json:"name"`
	// Revision: Counts its changes, also after a deletion; the number in the ETag
	Revision int64 `json:"revision"`
	// SessionID: The id of a session, like 20260211_001
	SessionID string `json:"session_id"`
	// Size: Bytes
	Size int64 `json:"size"`
	// UpdatedAt: Time of the last change
	UpdatedAt time.Time `json:"updated_at"`
}

// StateChangeRequest is a body of the API.
type StateChangeRequest struct {
	// Delete: Delete the document, instead of value
	Delete *bool `json:"delete,omitzero"`
	// IfRevision: Only if this is the document's revision; 0: only if it does not exist; else 412
	IfRevision *int64 `json:"if_revision,omitzero"`
	// Name: The document's name
	Name string `json:"name"`
	// Value: Of PUT: the document; of PATCH: a JSON merge patch of it
	Value any `json:"value,omitempty"`
}

// StatesRequest is a body of the API.
type StatesRequest struct {
	// States: The changes, at most one of a document
	States []StateChangeRequest `json:"states"`
}

// Stats is an object of the API.
type Stats struct {
	// ByDay: Sums by day, oldest first
	ByDay []Bucket `json:"by_day"`
	// ByModel: Sums by model, highest cost first
	ByModel []Bucket `json:"by_model"`
	// ByProject: Sums by project, highest cost first
	ByProject []Bucket `json:"by_project"`
	// ByPurpose: Sums by purpose of the calls, highest cost first
	ByPurpose []Bucket `json:"by_purpose"`
	// BySource: Sums by program, highest cost first
	BySource []Bucket `json:"by_source"`
	// Calls: Model calls
	Calls int64 `json:"calls"`
	// Compactions: Compactions and what they saved
	Compactions CompactionStats `json:"compactions"`
	// CostUSD: US dollars of the calls with a price; null: no call has one
	CostUSD *float64 `json:"cost_usd"`
	// Messages: Number of messages
	Messages int64 `json:"messages"`
	// Prompts: Messages of a person
	Prompts int64 `json:"prompts"`
	// Sessions: Sessions created in the time range, sub-agents included
	Sessions int64 `json:"sessions"`
	// Subagents: The sub-agents among the sessions
	Subagents int64 `json:"subagents"`
	// Tokens: Tokens as providers reported them
	Tokens UsageTokens `json:"tokens"`
	// UnpricedCalls: Calls without a known price
	UnpricedCalls int64 `json:"unpriced_calls"`
}

// Stored is an object of the API.
type Stored struct {
	// CreatedAt: Time of creation, RFC 3339 in UTC
	CreatedAt time.Time `json:"created_at"`
	// Deliver: Of a reply that contains the token NO_REPLY: the text to send to the person; "": send nothing
	Deliver string `json:"deliver,omitzero"`
	// ExternalID: Its id in the source program; unique within the session
	ExternalID string `json:"external_id,omitzero"`
	// ID: Its id
	ID string `json:"id"`
	// Parent: The message before it on its path; null: it is the first
	Parent *string `json:"parent"`
	// Role: system, user, assistant or tool
	Role string `json:"role"`
	// Seq: Number of the message in its session, from 1
	Seq int64 `json:"seq"`
	// Tokens: Size in reference tokens (sessiond's own count, the same for all models)
	Tokens int64 `json:"tokens"`
}

// Summary is an object of the API.
type Summary struct {
	// Bytes: Their size, with a line feed each
	Bytes int64 `json:"bytes"`
	// Lines: Number of lines
	Lines int64 `json:"lines"`
	// Session: The program's id of the session
	Session string `json:"session"`
	// StoredAt: Time of the last write
	StoredAt time.Time `json:"stored_at"`
	// Summary: As it was stored; null: there is none
	Summary json.RawMessage `json:"summary"`
}

// TagInUse is an object of the API.
type TagInUse struct {
	// Sessions: How many sessions have it, on them or on one of their messages
	Sessions int64 `json:"sessions"`
	// Tag: The tag, as it was written
	Tag string `json:"tag"`
}

// Transcript is an object of the API.
type Transcript struct {
	// Bytes: Their size, with a line feed each
	Bytes int64 `json:"bytes"`
	// Lines: Number of lines
	Lines int64 `json:"lines"`
	// Session: The program's id of the session
	Session string `json:"session"`
	// StoredAt: Time of the last write
	StoredAt time.Time `json:"stored_at"`
}

// Tree is an object of the API.
type Tree struct {
	// Data: The items of this page
	Data []Segment `json:"data"`
	// Head: The message that the next message follows, like 20260211_001.42; null: the session is empty
	Head *string `json:"head"`
	// Leaves: Number of branches in the whole tree
	Leaves int64 `json:"leaves"`
	// NextCursor: Send it as cursor to get the next page; null: this is the last page
	NextCursor *string `json:"next_cursor"`
	// Segments: Segments in the whole tree
	Segments int64 `json:"segments"`
}

// TreeCut is an object of the API.
type TreeCut struct {
	// ID: The compaction's id, like cmp_12
	ID string `json:"id"`
	// InForce: It is in effect at the head
	InForce bool `json:"in_force,omitzero"`
	// Strategy: summarize, prune (old tool output becomes a line), truncate (a prefix is hidden), clear (everything is
	// hidden)
	Strategy string `json:"strategy"`
	// Through: The last message that the compaction hides
	Through string `json:"through"`
	// Undone: It is undone in this session
	Undone bool `json:"undone,omitzero"`
}

// TreeMessage is an object of the API.
type TreeMessage struct {
	// CreatedAt: Time of creation, RFC 3339 in UTC
	CreatedAt time.Time `json:"created_at"`
	// Finish: Why the reply ended: stop, tool_calls, length, error, aborted, refusal, paused
	Finish string `json:"finish,omitzero"`
	// ID: The message's id, like 20260211_001.42
	ID string `json:"id"`
	// Kind: message, bash, custom_message, custom, branch_summary, marker, unknown
	Kind string `json:"kind"`
	// Origin: Who made the message: person, model, tool, program
	Origin string `json:"origin"`
	// Preview: The beginning of its text
	Preview string `json:"preview,omitzero"`
	// Role: system, user, assistant or tool
	Role string `json:"role"`
	// ToolName: Tool of its first call
	ToolName string `json:"tool_name,omitzero"`
}

// Turn is an object of the API.
type Turn struct {
	// Appended: What was stored
	Appended Appended `json:"appended"`
	// Context: The next context; null: problem says why
	Context *Context `json:"context"`
	// Problem: Why there is no context
	Problem *Problem `json:"problem,omitzero"`
}

// TurnRequest is a body of the API.
type TurnRequest struct {
	// Call: The model call behind the last reply
	Call *CallRequest `json:"call,omitzero"`
	// CliBackend: A program with a context of its own runs the turn: it requests no memory flush
	CliBackend *bool `json:"cli_backend,omitzero"`
	// CloseCalls: Answer tool calls that have no result with an error result, so that the context can be sent
	CloseCalls *bool `json:"close_calls,omitzero"`
	// Dialect: The provider's form of the context; default: that of the last turn, else openai.chat
	Dialect Dialect `json:"dialect,omitzero"`
	// ExpectHead: The head that the caller expects, else 409; null: the session must be empty
	ExpectHead Field[string] `json:"expect_head,omitzero"`
	// Explain: Explain where each number comes from and how tokens are counted
	Explain *bool `json:"explain,omitzero"`
	// Heartbeat: An automatic turn: it requests no memory flush
	Heartbeat *bool `json:"heartbeat,omitzero"`
	// Initial: The caller's text or parts that stand before the conversation; stored like system
	Initial any `json:"initial,omitempty"`
	// MaxOutput: Tokens to reserve for the reply
	MaxOutput *int64 `json:"max_output,omitzero"`
	// Messages: Messages to append; none: only build the context
	Messages []any `json:"messages,omitzero"`
	// Model: The model's id, as the provider names it
	Model string `json:"model,omitzero"`
	// OverheadTokens: Tokens outside the messages, if the caller counted them; instead of tools
	OverheadTokens *int64 `json:"overhead_tokens,omitzero"`
	// Parent: Append after this message instead of the head: begins a branch, and the head moves there
	Parent string `json:"parent,omitzero"`
	// Settings: Settings of the context manager for this context
	Settings *Settings `json:"settings,omitzero"`
	// System: The system text. It is stored: a later turn without system uses it again; "" removes it
	System Field[string] `json:"system,omitzero"`
	// Tools: The tool schemas that the caller sends to the provider: they are counted, not returned
	Tools any `json:"tools,omitempty"`
	// Volatile: Text that changes from turn to turn, like the date. It is added to the newest message and stays there,
	// so that the provider's cache stays valid
	Volatile string `json:"volatile,omitzero"`
	// Window: The model's window, in tokens; default: the session's, else the catalogue's
	Window *int64 `json:"window,omitzero"`
	// WorkspaceAccess: The agent's access to its files; only with rw (the default) a turn requests a memory flush. One
	// of: rw, ro, none
	WorkspaceAccess string `json:"workspace_access,omitzero"`
}

// UsageTokens is an object of the API.
type UsageTokens struct {
	// CacheRead: Input tokens read from the provider's cache
	CacheRead int64 `json:"cache_read"`
	// CacheWrite: Input tokens written to the provider's cache
	CacheWrite int64 `json:"cache_write"`
	// Input: Input tokens without cached tokens
	Input int64 `json:"input"`
	// Output: Output tokens including reasoning
	Output int64 `json:"output"`
}

// Version is an object of the API.
type Version struct {
	// Commit: Commit that it was built from
	Commit string `json:"commit,omitzero"`
	// Date: Time of that commit
	Date string `json:"date,omitzero"`
	// Go: Version of Go that built it
	Go string `json:"go"`
	// Schema: The newest migration of this program
	Schema int64 `json:"schema,omitzero"`
	// Version: Version of the program
	Version string `json:"version"`
}

// ViewOverlay is an object of the API.
type ViewOverlay struct {
	// ID: The compaction's id, like cmp_12; missing: it exists only in this answer
	ID string `json:"id,omitzero"`
	// Status: done, staged (ready, used for a reading request) or ephemeral (only in this answer)
	Status string `json:"status"`
	// Strategy: summarize, prune (old tool output becomes a line), truncate (a prefix is hidden), clear (everything is
	// hidden)
	Strategy string `json:"strategy"`
}

// Dialect is a form of messages and contexts: a provider's, or sessiond's own.
type Dialect string

// The forms of messages.
const (
	Anthropic       Dialect = "anthropic"
	Gemini          Dialect = "gemini"
	Native          Dialect = "native"
	OpenAIChat      Dialect = "openai.chat"
	OpenAIResponses Dialect = "openai.responses"
	UI              Dialect = "ui"
)
