package sessiond_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"sessiond/internal/dialect"
	"sessiond/internal/history"
	own "sessiond/internal/history/sessiond"
	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
	"sessiond/internal/tokens"
	"sessiond/internal/touched"
)

// TestMain lowers the number of generated histories: each makes two databases and five copies.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
	m.Run()
}

// failer is what a test and a rapid check have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// clock returns a later time whenever it is asked.
func clock(at time.Time) func() time.Time {
	return func() time.Time {
		at = at.Add(1700 * time.Millisecond)
		return at
	}
}

// open makes a store in a folder of the test, which outlives a check of rapid.
func open(t failer, dir string) *store.Store {
	t.Helper()
	return openAt(t, dir, time.Date(2026, 2, 11, 9, 0, 0, 0, time.UTC))
}

// openLater makes one for what was stored in another: its clock is hours ahead.
func openLater(t failer, dir string) *store.Store {
	t.Helper()
	return openAt(t, dir, time.Date(2026, 2, 11, 20, 0, 0, 0, time.UTC))
}

func openAt(t failer, dir string, at time.Time) *store.Store {
	t.Helper()
	s := testkit.Must(store.Open(context.Background(), storetest.New(t, filepath.Join(dir, "sessions.db")), store.Options{
		Now: clock(at), Zone: time.UTC, Measure: tokens.Reference().Measure, Touched: touched.Files,
	}))(t)
	return s
}

func export(t failer, s *store.Store, mask *redact.Masker, ids ...session.ID) []byte {
	t.Helper()
	ctx := context.Background()
	ordered := testkit.Must(own.Order(ctx, s, ids))(t)
	var out bytes.Buffer
	w := own.NewWriter(&out, s, mask)
	for _, id := range ordered {
		testkit.Check(t, w.Session(ctx, id))
	}
	if len(ids) == 0 {
		testkit.Check(t, w.StoreData(ctx))
	}
	testkit.Check(t, w.Close())
	return out.Bytes()
}

func importFile(t failer, s *store.Store, dir string, data []byte, source own.Source) history.Accounting {
	t.Helper()
	path := filepath.Join(dir, "export.jsonl")
	testkit.Check(t, os.WriteFile(path, data, 0o600))
	im := history.Importer{Store: s}
	done := testkit.Must(im.Run(context.Background(), &source, []string{path}))(t)
	if !done.Records.Balanced() {
		t.Errorf("the counts do not add up: %+v", done.Records)
	}
	return done
}

func sound(t failer, s *store.Store) {
	t.Helper()
	checks := testkit.Must(s.Doctor(context.Background(), true))(t)
	for _, c := range checks {
		if !c.OK {
			t.Errorf("doctor: %s: %s", c.Name, c.Detail)
		}
	}
}

// past makes histories by what a user of the store can do.
type past struct {
	*rapid.T
	s        *store.Store
	sessions []session.ID
	calls    int
	keeps    bool // nothing is purged
}

func (p *past) must(err error) {
	p.Helper()
	switch session.CodeOf(err) {
	case "", session.Conflict, session.NotFound: // an overlay that another one is in the way of, and the like
	default:
		p.Fatal(err)
	}
}

func (p *past) text(label string) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "hello", "a <b> & \"c\"\n", "café ☕ 日本語", "line\u2028separator",
			"\x1b[31mred\x1b[0m\u0085", strings.Repeat("long ", 14_000),
		}),
		rapid.StringMatching(`[a-z ]{1,40}`),
	).Draw(p.T, label)
}

// message makes one by a dialect, as a caller gives it, or part by part.
func (p *past) message() []session.Message {
	raw := map[int]string{
		0: `{"role":"user","content":"a NUL \u0000 and half a pair \ud83d here"}`,
		1: `{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}`,
		2: `{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"read","arguments":"{\"path\": \"a.txt\"}"}}]}`,
		3: `{"role":"tool","tool_call_id":"c%d","content":"what it said"}`,
	}
	kind := rapid.IntRange(0, 7).Draw(p.T, "kind")
	if form, ok := raw[kind]; ok {
		if kind == 2 {
			p.calls++
		}
		if strings.Contains(form, "%d") {
			form = fmt.Sprintf(form, p.calls)
		}
		d, err := dialect.Decode(dialect.OpenAIChat, []jsontext.Value{jsontext.Value(form)})
		p.must(err)
		return d.Messages
	}
	m := session.Message{
		Role: session.User, InContext: rapid.Bool().Draw(p.T, "in context"),
		Display: rapid.Bool().Draw(p.T, "display"),
	}
	switch kind {
	case 4:
		m.Role, m.Model, m.Provider, m.Finish, m.Author = session.Assistant, "gpt-5", "openai", session.FinishStop, "ann"
		m.Parts = []session.Part{{Kind: session.PartReasoning, Text: p.text("thought")}, session.TextPart(p.text("text"))}
	case 5:
		m.Kind, m.Role, m.Origin = session.KindUnknown, "", session.Program
		m.Parts = []session.Part{{
			Kind:  session.PartData,
			Extra: session.JSON("{ \"a\" : [1, 2.50, \"\\ud800\"],\n \"a\":null}"), Text: p.text("line"),
		}}
		m.Metadata = session.JSON(`{"k":"v"}`)
	case 6:
		for i := range session.MaxParts {
			m.Parts = append(m.Parts, session.TextPart(fmt.Sprint("part ", i)))
		}
	default:
		bytes := []byte{0, 1, 2, 255}
		failed, took := true, int64(12)
		m.Role = session.Tool
		m.Parts = []session.Part{
			{Kind: session.PartToolResult, CallID: "nobody called", IsError: &failed, DurationMS: &took, Text: p.text("result")},
			{Kind: session.PartFile, Blob: &session.Blob{MediaType: "application/x", Data: bytes}},
			{Kind: session.PartImage, Blob: &session.Blob{MediaType: "image/png", Data: bytes}},
		}
	}
	return []session.Message{m}
}

// step does one thing to a session.
func (p *past) step(id session.ID) {
	ctx := context.Background()
	sess, err := p.s.Session(ctx, id)
	p.must(err)
	anywhere := func() *session.MessageRef {
		if sess.HeadID == nil {
			return nil
		}
		var path []session.MessageRef
		p.must(p.s.Walk(ctx, *sess.HeadID, func(m session.Message) bool { path = append(path, m.ID); return true }))
		for seq := int64(1); seq <= sess.LastSeq; seq++ {
			path = append(path, session.MessageRef{Session: id, Seq: seq})
		}
		ref := rapid.SampledFrom(path).Draw(p.T, "message")
		return &ref
	}
	row := func(ref session.MessageRef) *int64 {
		m, err := p.s.Message(ctx, ref)
		p.must(err)
		return &m.RowID
	}
	switch rapid.IntRange(0, 12).Draw(p.T, "step") {
	default:
		in := store.Append{Session: id, Messages: p.message()}
		if rapid.IntRange(0, 3).Draw(p.T, "branch") == 0 {
			in.Parent = anywhere()
		}
		if rapid.Bool().Draw(p.T, "with a call") {
			cost := int64(1234)
			in.Call = &session.Call{
				Provider: "openai", Model: "gpt-5", InputTokens: 10, OutputTokens: 3, CostNanoUSD: &cost,
				Metadata: session.JSON(`{"a":1}`),
			}
		}
		_, err := p.s.Append(ctx, in)
		p.must(err)
	case 6, 7:
		ref := anywhere()
		if ref == nil {
			return
		}
		status := rapid.SampledFrom([]session.Status{
			session.StatusDone, session.StatusStaged, session.StatusRunning,
			session.StatusFailed,
		}).Draw(p.T, "status")
		through := row(*ref)
		on, err := p.s.OnPath(ctx, *sess.HeadID, *through)
		p.must(err)
		if !on {
			return
		}
		m, err := p.s.Message(ctx, *ref)
		p.must(err)
		_, err = p.s.AddCompaction(ctx, session.Compaction{
			SessionID: id, PreviousID: sess.CompactionID, Strategy: session.StrategySummarize, Trigger: session.TriggerManual,
			Status:    status,
			ThroughID: through, HiddenTokens: m.PathTokens, SummaryTokens: 7, Summary: p.text("summary"),
			Details: session.JSON(`{"read_files":["a"],"modified_files":[]}`),
		})
		p.must(err)
	case 8:
		all, err := p.s.Compactions(ctx, id)
		p.must(err)
		for _, c := range all {
			if c.Undone {
				_, err = p.s.RedoCompaction(ctx, id, c.RowID)
			} else if sess.CompactionID != nil && c.RowID == *sess.CompactionID {
				_, err = p.s.UndoCompaction(ctx, id, c.RowID)
			}
			p.must(err)
		}
	case 9:
		if ref := anywhere(); ref != nil {
			_, err := p.s.SetMark(ctx, id, *ref, rapid.SampledFrom([]string{store.MarkPin, store.MarkLabel}).Draw(p.T, "mark"),
				"a place", true)
			p.must(err)
		}
	case 10:
		ref := anywhere()
		if ref == nil {
			return
		}
		_, err := p.s.SaveContext(ctx, session.Context{
			SessionID: id, HeadID: sess.HeadID, CompactionID: sess.CompactionID,
			Epoch: sess.Epoch, Tokens: 5, Limits: session.JSON(`{"part":7,"shown":0}`),
		},
			map[string]string{session.BlockSystem: p.text("system"), session.BlockTools: `[{"name":"read"}]`},
			[]session.Frozen{{
				SessionID: id, MessageID: *row(*ref), Kind: session.FrozenRecall, CompactionID: sess.CompactionID,
				Content: session.JSON(`{"text":"recalled"}`),
			}})
		p.must(err)
	case 12:
		if !p.keeps && rapid.Bool().Draw(p.T, "purge") {
			p.purge(id)
		}
	case 11:
		title, archived, starred, metadata := p.text("title"), rapid.Bool().Draw(p.T, "archived"),
			rapid.Bool().Draw(p.T, "starred"), session.JSON(`{"user_id":7}`)
		_, err := p.s.PatchSession(ctx, id, store.SessionPatch{
			Title: &title, Archived: &archived, Starred: &starred,
			Metadata: &metadata,
		})
		p.must(err)
		_, err = p.s.SetTrash(ctx, id, rapid.IntRange(0, 5).Draw(p.T, "trash") == 0, nil, nil)
		p.must(err)
	}
}

// purge deletes a session.
func (p *past) purge(id session.ID) {
	p.sessions = slices.DeleteFunc(p.sessions, func(other session.ID) bool { return other == id })
	purge(p.T, p.s, id)
}

func (p *past) live() {
	ctx := context.Background()
	for range rapid.IntRange(1, 30).Draw(p.T, "steps") {
		begin := rapid.IntRange(0, 5).Draw(p.T, "begin")
		if begin > 0 && len(p.sessions) > 0 {
			p.step(rapid.SampledFrom(p.sessions).Draw(p.T, "session"))
			continue
		}
		in := store.NewSession{Directory: "/home/dev/x", Key: "", Draft: rapid.Bool().Draw(p.T, "draft")}
		if len(p.sessions) > 0 && rapid.Bool().Draw(p.T, "kin") {
			in.ParentID = rapid.SampledFrom(p.sessions).Draw(p.T, "parent")
			in.ParentKind = rapid.SampledFrom([]string{session.ParentFork, session.ParentFork, session.ParentChild}).Draw(p.T,
				"kind")
		}
		if rapid.IntRange(0, 3).Draw(p.T, "keyed") == 0 {
			in.Key = "agent:main:main"
		}
		if in.ParentKind == session.ParentFork {
			fork := store.Fork{Session: in.ParentID}
			if parent, err := p.s.Session(ctx, in.ParentID); err == nil && parent.LastSeq > 0 && rapid.Bool().Draw(p.T, "from") {
				fork.At = &session.MessageRef{Session: in.ParentID, Seq: rapid.Int64Range(1, parent.LastSeq).Draw(p.T, "at")}
			}
			if made, err := p.s.Fork(ctx, fork); err == nil {
				p.sessions = append(p.sessions, made.ID)
			} else if session.CodeOf(err) != session.Invalid && session.CodeOf(err) != session.Conflict {
				p.Fatal(err)
			}
			continue
		}
		made, err := p.s.CreateSession(ctx, in)
		p.must(err)
		p.sessions = append(p.sessions, made.ID)
	}
}

func firstDifference(a, b []byte) string {
	x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(x), len(y)) {
		if !bytes.Equal(x[i], y[i]) {
			return fmt.Sprintf("line %d:\n%.1500s\n%.1500s", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

func TestAnExportComesBackAsTheSameBytes(t *testing.T) {
	root := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		dir, copyDir := filepath.Join(root, fmt.Sprint(n), "a"), filepath.Join(root, fmt.Sprint(n), "b")
		for _, d := range []string{dir, copyDir} {
			testkit.Check(rt, os.MkdirAll(d, 0o700))
		}
		defer os.RemoveAll(filepath.Join(root, fmt.Sprint(n)))
		p := &past{T: rt, s: open(rt, dir)}
		defer func() { p.s.Close() }()
		p.live()
		before := export(rt, p.s, nil)
		other := openLater(rt, copyDir)
		defer func() { other.Close() }()
		done := importFile(rt, other, copyDir, before, own.Source{})
		if done.Sessions.New != len(p.sessions) || len(done.Errors) > 0 {
			rt.Fatalf("%d sessions came in as %+v, %+v", len(p.sessions), done.Sessions, done.Errors)
		}
		if after := export(rt, other, nil); !bytes.Equal(before, after) {
			rt.Fatalf("the export of the import differs in %s", firstDifference(before, after))
		}
		sound(rt, other)
		again := importFile(rt, other, copyDir, before, own.Source{})
		if again.Sessions.Unchanged != len(p.sessions) || again.Records.Imported != 0 {
			rt.Errorf("the second import: %+v", again)
		}
		if after := export(rt, other, nil); !bytes.Equal(before, after) {
			rt.Errorf("the second import wrote: %s", firstDifference(before, after))
		}
		// What went on since goes on there too. What was purged since would stay there.
		p.keeps = true
		p.live()
		before = export(rt, p.s, nil)
		if grown := importFile(rt, other, copyDir, before, own.Source{}); len(grown.Errors) > 0 {
			rt.Fatalf("the later export: %+v", grown)
		}
		if after := export(rt, other, nil); !bytes.Equal(before, after) {
			rt.Errorf("after the later export: %s", firstDifference(before, after))
		}
		sound(rt, other)
	})
}
