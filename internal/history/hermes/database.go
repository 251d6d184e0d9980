package hermes

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// reads is the version of this reader. Another one reads every session again.
const reads = 1

// The tables that are read.
const (
	tableSessions = "sessions"
	tableMessages = "messages"
	tableUsage    = "session_model_usage"
)

// readDatabase reads the sessions of a database that changed. Builds add columns without a version: only those without
// which there is no message must be there.
func readDatabase(in *history.Intake, db *history.SQLite) {
	has := db.Schema(tableSessions, tableMessages, tableUsage)
	in.Fail(db.TakeErr())
	if in.Err() == nil && !(has.Has(tableSessions, "id") && has.Has(tableMessages, "session_id") &&
		has.Has(tableMessages, "role") && has.Has(tableMessages, "content")) {
		in.Fail(session.Errorf(session.Invalid,
			"no sessions of Hermes: it has no tables sessions and messages with columns id, session_id, role and content"))
	}
	if in.Err() != nil {
		return
	}
	used := map[string][]history.Row{}
	if has.Has(tableUsage, "session_id") {
		db.EachRow(tableUsage, has[tableUsage], "ORDER BY rowid", func(r history.Row) {
			used[r.Get("session_id")] = append(used[r.Get("session_id")], r)
		})
	}
	extents := db.Extents(tableMessages, `MAX(rowid)`, fmt.Sprintf(`CAST(TOTAL(%s) + 1e6 * TOTAL(%s) AS INTEGER)`,
		has.Column(tableMessages, "active", "0"), has.Column(tableMessages, "compacted", "0")))
	all := sessions(db, has)
	if in.Fail(db.TakeErr()); in.Err() != nil {
		return
	}
	for i := range all {
		s := &all[i]
		part := in.Part(s.id, fmt.Sprint(reads, printOf(append(used[s.id], s.row)), extents[s.id]))
		if part == nil {
			continue
		}
		t := &talk{in: part, keys: history.Repeats{}, profile: profileOf(in.Found.Path)}
		t.about(s)
		db.EachRow(tableMessages, has[tableMessages], `WHERE session_id = ? ORDER BY rowid`, t.row, s.id)
		t.end()
		t.ledger(s.row, used[s.id])
		in.ReadPart(part, s.id, db, func() { part.AddWhole(&t.whole) })
	}
}

// profileOf names the profile of a database, "" for the usual one.
func profileOf(path string) string {
	if folder := filepath.Dir(path); filepath.Base(filepath.Dir(folder)) == "profiles" {
		return filepath.Base(folder)
	}
	return ""
}

func printOf(rows []history.Row) string {
	sum := sha256.New()
	for _, row := range rows {
		fmt.Fprintf(sum, "%q\n", row)
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// about is a session as its table has it.
type about struct {
	row        history.Row
	id, parent string
	link       link
	depth      int // of sessions that it comes from
}

// link says how a session comes from its parent.
type link string

const (
	isAgent        link = "sub-agent"
	isBranch       link = "branch"     // its first messages are copies of the parent's
	isContinuation link = "compaction" // it begins with a summary of the parent
	isReset        link = "reset"      // a new conversation
)

// kept are the columns of a session that say what it is. Others name persons, chats and devices.
var kept = []string{
	"id", "source", "model", "model_config", "parent_session_id", "started_at", "ended_at", "end_reason", "title", "cwd",
	"git_branch", "last_activity_at", "archived", "input_tokens", "output_tokens", "cache_read_tokens",
	"cache_write_tokens", "reasoning_tokens", "billing_provider", "estimated_cost_usd", "actual_cost_usd", "cost_status",
	"cost_source",
}

// sessions returns all sessions, those that others come from first.
func sessions(db *history.SQLite, has history.Schema) (all []about) {
	columns := slices.DeleteFunc(slices.Clone(has[tableSessions]), func(name string) bool {
		return !slices.Contains(kept, name)
	})
	at := map[string]int{}
	db.EachRow(tableSessions, columns, `WHERE id IS NOT NULL`, func(r history.Row) {
		at[r.Get("id")] = len(all)
		all = append(all, about{row: r, id: r.Get("id"), parent: r.Get("parent_session_id")})
	})
	for i := range all {
		s := &all[i]
		var parent history.Row
		if above, ok := at[s.parent]; ok {
			parent = all[above].row
		}
		s.link = linkOf(s.row, parent)
		for id := s.parent; id != "" && s.depth < history.MaxForks; s.depth++ {
			above, ok := at[id]
			if id = ""; ok {
				id = all[above].parent
			}
		}
	}
	slices.SortStableFunc(all, func(a, b about) int {
		return cmp.Or(a.depth-b.depth, timeOf(a.row.Get("started_at")).Compare(timeOf(b.row.Get("started_at")).Time),
			strings.Compare(a.id, b.id))
	})
	return all
}

// linkOf returns how a session comes from its parent, whose row is nil if it is gone. A mark that names another session
// was inherited.
func linkOf(s, parent history.Row) link {
	id := s.Get("parent_session_id")
	if id == "" || id == s.Get("id") {
		return ""
	}
	marks, _ := jsonx.ReadFields([]byte(s.Get("model_config")))
	switch source := s.Get("source"); {
	case marks.String("_delegate_from") == id || source == "subagent" || source == "tool":
		return isAgent
	case marks.String("_branched_from") == id:
		return isBranch
	case marks.String("_reset_from") == id:
		return isReset
	}
	switch parent.Get("end_reason") {
	case "compression":
		return isContinuation
	case "branched":
		return isBranch
	}
	return isReset
}

// timeOf reads seconds since 1970. Damaged pages give times far from ours.
func timeOf(text string) session.Time {
	at := history.TimeOf(jsontext.Value(text))
	if at.Year() < 2000 || at.Year() > 2100 {
		return session.Time{}
	}
	return at
}

// about says what a session is.
func (t *talk) about(s *about) {
	w, row := &t.whole, s.row
	w.Records, w.New.SourceID, w.Title = 1, s.id, row.Get("title")
	w.New.Directory, w.New.GitBranch = row.Get("cwd"), row.Get("git_branch")
	w.New.Model, w.New.Provider = row.Get("model"), row.Get("billing_provider")
	if at := timeOf(row.Get("started_at")); !at.IsZero() {
		w.New.CreatedAt = &at
	}
	changed := timeOf(cmp.Or(row.Get("last_activity_at"), row.Get("ended_at"), row.Get("started_at")))
	if w.Written = changed.Time; row.Get("archived") == "1" && !changed.IsZero() {
		w.Archived = &changed
	}
	w.Notes = jsonx.Object{jsonx.MemberOf("record", inDatabase)}
	for _, note := range [][2]string{{"channel", row.Get("source")}, {"profile", t.profile}} {
		if note[1] != "" {
			w.Notes = append(w.Notes, jsonx.MemberOf(note[0], note[1]))
		}
	}
	switch row.Get("source") {
	case "cron":
		w.New.Kind = "cron"
	case "tool", "subagent":
		w.New.Kind = "subagent"
	}
	switch s.link {
	case isAgent:
		w.New.Kind, w.ParentID = "subagent", s.parent
	case isBranch, isContinuation:
		if from := t.in.Session(s.parent); from != nil {
			w.Origins = []*session.Session{from}
		} else {
			t.in.Await(s.parent)
		}
	case isReset:
		w.Notes = append(w.Notes, jsonx.MemberOf("after", s.parent))
	}
	t.link = s.link
}

// inDatabase and inFile say which record of a session was read.
const (
	inDatabase = "database"
	inFile     = "file"
)

// ledger adds what a session used. The rows of models are sums that grow. Those of the conversation itself, without a
// task, are also counted in the session's row, whose rest has none of its own: chats of a gateway, and older builds.
func (t *talk) ledger(s history.Row, rows []history.Row) {
	rest := callOf(s)
	for _, r := range rows {
		c, task := callOf(r), r.Get("task")
		c.Model, c.CreatedAt = r.Get("model"), timeOf(cmp.Or(r.Get("last_seen"), r.Get("first_seen")))
		c.Purpose = purposes[task]
		if task != "" && c.Purpose == "" {
			c.Purpose = session.PurposeOther
		}
		note := map[string]string{"sum": "of a model in the session"}
		if task != "" {
			note["task"] = task
		}
		sum := sha256.Sum256([]byte(fmt.Sprintf("%q", []string{
			c.Model, c.Provider, r.Get("billing_base_url"), r.Get("billing_mode"), task,
		})))
		c.ExternalID, c.Metadata = "hermes:"+t.whole.New.SourceID+":"+hex.EncodeToString(sum[:6]), session.JSONOf(note)
		if task == "" || task == "voice_chat" {
			subtract(&rest, &c)
		}
		t.call(c)
	}
	rest.Model, rest.CreatedAt = s.Get("model"), timeOf(cmp.Or(s.Get("ended_at"), s.Get("last_activity_at")))
	rest.ExternalID = "hermes:" + t.whole.New.SourceID
	rest.Metadata = session.JSONOf(map[string]string{"sum": "of the session"})
	t.call(rest)
}

// call adds a row of the ledger unless it says nothing.
func (t *talk) call(c history.Call) {
	if c.Sum = true; c.ContextTokens()+c.OutputTokens > 0 {
		t.whole.Calls = append(t.whole.Calls, c)
	}
}

// purposes are those of the tasks that have one of their own.
var purposes = map[string]session.Purpose{
	"": session.PurposeChat, "voice_chat": session.PurposeChat, "compression": session.PurposeSummary,
	"title_generation": session.PurposeTitle,
}

// callOf reads the counts of a row, whose input is without caches and whose output is with the reasoning.
func callOf(r history.Row) (c history.Call) {
	for column, to := range map[string]*int64{
		"input_tokens": &c.InputTokens, "output_tokens": &c.OutputTokens, "cache_read_tokens": &c.CacheReadTokens,
		"cache_write_tokens": &c.CacheWriteTokens, "reasoning_tokens": &c.ReasoningTokens,
	} {
		*to = history.Count(jsontext.Value(r.Get(column)))
	}
	c.ReasoningTokens = min(c.ReasoningTokens, c.OutputTokens)
	c.Provider = r.Get("billing_provider")
	for _, column := range []string{"estimated_cost_usd", "actual_cost_usd"} { // what was paid wins
		if nano, ok := history.NanoUSD(jsontext.Value(r.Get(column))); ok && nano > 0 {
			c.CostNanoUSD = &nano
		}
	}
	if c.CostNanoUSD == nil && r.Get("cost_status") == "included" {
		c.CostNanoUSD = new(int64) // in a subscription: the store shows the list's price, as of all programs
	}
	return c
}

// subtract takes what is counted elsewhere off a sum.
func subtract(sum, c *history.Call) {
	for to, n := range map[*int64]int64{
		&sum.InputTokens: c.InputTokens, &sum.OutputTokens: c.OutputTokens, &sum.CacheReadTokens: c.CacheReadTokens,
		&sum.CacheWriteTokens: c.CacheWriteTokens, &sum.ReasoningTokens: c.ReasoningTokens,
	} {
		*to = max(0, *to-n)
	}
	if sum.CostNanoUSD != nil && c.CostNanoUSD != nil {
		sum.CostNanoUSD = new(max(0, *sum.CostNanoUSD-*c.CostNanoUSD))
	}
}
