package goose

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// The tables of Goose that are read. Others are counted by their names, never read:
// provider_inventory_* holds hashes made with secrets.
const (
	tableSessions       = "sessions"
	tableMessages       = "messages"
	tableLedger         = "usage_ledger"
	tableThreads        = "threads"
	tableThreadMessages = "thread_messages"
	tableVersion        = "schema_version"
)

// database is one sessions.db in one snapshot.
type database struct {
	*history.SQLite
	in      *history.Intake
	has     history.Schema
	version int64

	rows     map[string]history.Extent // messages by session
	ledger   map[string]history.Extent
	order    []string            // sessions, oldest first
	begin    map[string]string   // the first message of each session; nil: not read yet
	starting map[string][]string // sessions by their first message, oldest first
}

// readDatabase reads the sessions of a database that changed. Which tables and columns there are
// decides what is read, not the version.
func readDatabase(in *history.Intake, opened *history.SQLite) {
	d := &database{SQLite: opened, in: in}
	if d.has = d.Schema(tableSessions, tableMessages, tableLedger, tableThreads, tableThreadMessages,
		tableVersion); !d.ok() {
		return
	}
	d.has.Require(tableMessages, "id", "session_id", "content_json")
	if !d.has.Has(tableSessions, "id") || !d.has.Has(tableMessages, "id") {
		in.Fail(session.Errorf(session.Invalid,
			"no Goose database: it has no tables of sessions and messages as Goose makes them"))
		return
	}
	for table, columns := range map[string][]string{
		tableLedger:         {"id", "session_id"},
		tableThreadMessages: {"id", "thread_id", "session_id"},
	} {
		if why := d.has.Require(table, columns...); why != "" {
			in.Problem(0, why)
		}
	}
	if d.has.Has(tableVersion, "version") {
		d.Get(&d.version, `SELECT COALESCE(MAX(CAST(version AS INTEGER)), 0) FROM schema_version`)
	}
	d.sessions()
	d.threads()
	d.countOthers()
	if d.ok() {
		in.EachGone(d.noteGone)
	}
}

// ok reports whether the queries until now found what they asked for.
func (d *database) ok() bool {
	d.in.Fail(d.TakeErr())
	return d.in.Err() == nil
}

// sessions reads the sessions, oldest first, then what is left of sessions whose row is gone.
func (d *database) sessions() {
	d.rows = d.Extents(tableMessages, `MAX(id)`, `0`)
	if len(d.has[tableLedger]) > 0 {
		d.ledger = d.Extents(tableLedger, `MAX(id)`, `0`)
	}
	var sessions []about
	marks := map[string]string{}
	d.EachRow(tableSessions, d.has[tableSessions], "", func(r history.Row) {
		a := aboutRow(r)
		marks[a.id] = markOf(r)
		sessions = append(sessions, a)
	})
	if !d.ok() {
		return
	}
	slices.SortStableFunc(sessions, func(a, b about) int {
		return cmp.Or(a.created, &session.Time{}).Compare(cmp.Or(b.created, &session.Time{}).Time)
	})
	for i := range sessions {
		d.order = append(d.order, sessions[i].id)
	}
	for _, a := range append(sessions, d.orphans(marks)...) {
		d.session(a, marks[a.id])
	}
}

// countOthers counts the tables beside the conversations.
func (d *database) countOthers() {
	for table := range d.has {
		switch table {
		case tableVersion:
			d.in.Skip(skipBookkeeping, 1)
		case tableSessions, tableMessages, tableLedger, tableThreads, tableThreadMessages:
		default:
			if !strings.HasPrefix(table, "sqlite_") {
				d.in.Skip(skipForeign, 1)
			}
		}
	}
}

// noteGone notes that Goose deleted a session. Its messages stay.
func (d *database) noteGone(s *session.Session) {
	notes := history.Notes(s, "goose")
	if notes.Get("gone") != nil {
		return
	}
	b := history.Batch{}
	b.ID = s.ID
	b.Fields = &history.Changes{Metadata: append(notes, jsonx.MemberOf("gone", "deleted in Goose")).Column()}
	d.in.Emit(b)
}

// markOf returns a mark that changes with a session's row.
func markOf(r history.Row) string {
	sum := sha256.New()
	for _, c := range r {
		fmt.Fprintf(sum, "%s=%d:%s;", c.Name, len(c.Text), c.Text)
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// orphans are sessions whose row is gone, but not their messages, or their usage.
func (d *database) orphans(there map[string]string) []about {
	lost := map[string]bool{}
	for _, of := range []map[string]history.Extent{d.rows, d.ledger} {
		for id := range of {
			if _, ok := there[id]; !ok {
				lost[id] = true
			}
		}
	}
	var found []about
	for id := range lost {
		a := about{id: history.Plain(id), title: "recovered"}
		a.typed("")
		a.note("recovered", "its row is gone")
		found = append(found, a)
	}
	slices.SortFunc(found, func(a, b about) int { return strings.Compare(a.id, b.id) })
	return found
}

// session reads one session if it changed. One that is damaged is a problem, and the next one is
// read.
func (d *database) session(a about, mark string) {
	name := a.id
	if a.created != nil {
		name += "|" + strconv.FormatInt(a.created.Unix(), 10)
	}
	part := d.in.Part(name, fmt.Sprint(reads, d.version, mark, d.rows[a.id], d.ledger[a.id]))
	if part == nil {
		return
	}
	r := newReader(part, a)
	r.origins = func() []*session.Session { return d.origins(a.id) }
	thread, isThread := strings.CutPrefix(a.id, threadPrefix)
	switch {
	case isThread:
		d.messages(r, tableThreadMessages, ofThread, thread)
	case d.rows[a.id].Count > 0:
		d.messages(r, tableMessages, ofSession, a.id)
	}
	if d.ledger[a.id].Count > 0 {
		d.usage(r)
	}
	d.in.ReadPart(part, a.id, d.SQLite, r.read)
}

// origins are the sessions that one may be a copy of: they begin with the same message, and
// are older.
func (d *database) origins(id string) []*session.Session {
	if d.begin == nil {
		d.beginnings()
	}
	alike := d.starting[d.begin[id]]
	return d.in.Origins(alike[:max(slices.Index(alike, id), 0)])
}

// beginnings reads when each session's first message was, and its id if Goose gave it one.
func (d *database) beginnings() {
	d.begin, d.starting = map[string]string{}, map[string][]string{}
	id := `''`
	if d.has.Has(tableMessages, "message_id") {
		id = `COALESCE(CAST(message_id AS TEXT), '')`
	}
	var list []struct {
		Session string  `db:"session_id"`
		Message string  `db:"message_id"`
		Created *string `db:"created"`
	}
	d.Select(&list, `SELECT CAST(session_id AS TEXT) AS session_id, `+id+` AS message_id, CAST(`+d.has.Column(tableMessages, "created_timestamp", "NULL")+` AS TEXT) AS created
		FROM messages WHERE session_id IS NOT NULL AND id IN (SELECT MIN(id) FROM messages GROUP BY session_id)`)
	for _, first := range list {
		if strings.HasPrefix(first.Message, "msg_"+first.Session+"_") {
			first.Message = "" // a migration gave it
		}
		at := session.Time{}
		if first.Created != nil {
			at, _ = timeOf([]byte(*first.Created))
		}
		d.begin[first.Session] = fmt.Sprint(first.Message, " ", at.Unix())
	}
	for _, id := range d.order {
		if begin, ok := d.begin[id]; ok {
			d.starting[begin] = append(d.starting[begin], id)
		}
	}
}
