package history

import "sessiond/internal/store"

// The pieces of a batch are the store's own.
type (
	NewSession = store.NewSession
	Message    = store.ImportMessage
	Compaction = store.ImportCompaction
	Output     = store.ImportOutput
	Replaced   = store.ImportReplaced
	Place      = store.ImportPlace
	Mark       = store.ImportMark
	Call       = store.ImportCall
	Cursor     = store.ImportCursor
	Changes    = store.ImportFields
)

// Batch is what one transaction stores, and the records of the source that it stands for. A
// source that keeps many sessions in one database may give a cursor with the last batch of
// each session, under a path of its own (the database's path, "#", the session's id), which
// it reads with Known.Cursor; the last batch, which may name no session, has the database's.
type Batch struct {
	store.ImportBatch
	Records  Records
	Aside    bool // it says something of a session that another found thing holds, and does not count it
	Sessions int  // with the last cursor: sessions in the found thing, if it has others than were read now

	// Restore is a piece of a session that comes in under its own names, in the place of
	// everything else but Records. A source whose piece the store refuses may go on with
	// another session.
	Restore *store.RestoreBatch
}
