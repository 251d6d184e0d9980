package store

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func TestAppendKeepsEveryColumn(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	yes, ms := true, int64(12)
	in := session.Message{
		Kind: session.KindCustomMessage, Role: session.Assistant, Origin: session.Program, Finish: session.FinishToolCalls,
		Author:    "ada",
		InContext: true, Display: false, Provider: "p", Model: "m", Dialect: "native", ExternalID: "e1",
		CreatedAt: session.At(time.Date(2020, 2, 29, 1, 2, 3, 4e6, time.UTC)), Metadata: session.JSON(`{"a":"<&>"}`),
		Extra: session.JSON(`[1,null]`),
		Parts: []session.Part{
			{Kind: session.PartReasoning, Text: "why", Extra: session.JSON(`{"signature":"x=="}`)},
			{Kind: session.PartToolCall, ToolName: "bash", CallID: "c", Arguments: "{ \"cmd\" :\t\"a < b\" }"},
			{Kind: session.PartToolResult, ToolName: "bash", CallID: "none", Text: "", IsError: &yes, DurationMS: &ms},
			{Kind: session.PartImage, Blob: &session.Blob{MediaType: "image/png", Data: []byte{0, 1, 255, 0}}},
		},
	}
	out := mustAppend(t, s, sess.ID, in)
	got := testkit.Must(s.MessageByID(ctx, out.Messages[0].RowID))(t)
	if diff := cmp.Diff(out.Messages[0], got); diff != "" {
		t.Error("read back (-stored +read):\n" + diff)
	}
	if got.Day != "2020-02-29" || got.Tokens != 22 || string(got.Parts[3].Blob.Data) != "\x00\x01\xff\x00" ||
		in.Parts[3].BlobSHA != nil {
		t.Errorf("%+v", got)
	}
}

func TestAppendRefusesAndStoresNothing(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	trashed := mustCreate(t, s, NewSession{})
	testkit.Must(s.SetTrash(ctx, trashed.ID, true, nil, nil))(t)
	taken := says(session.User, "first")
	taken.ExternalID = "taken"
	mustAppend(t, s, sess.ID, taken)
	with := func(change func(*session.Message)) []session.Message {
		m := says(session.User, "fine")
		change(&m)
		return []session.Message{says(session.User, "before it"), m}
	}
	big := strings.Repeat("x", session.BlobThreshold+1)
	for _, c := range []struct {
		name string
		in   Append
		code session.Code
		path string
	}{
		{"no such session", Append{Session: "20200101_001", Messages: with(func(*session.Message) {})}, session.NotFound, ""},
		{
			"a session in the trash",
			Append{Session: trashed.ID, Messages: with(func(*session.Message) {})},
			session.Conflict,
			"",
		},
		{"invalid UTF-8", Append{Session: sess.ID, Messages: with(func(m *session.Message) {
			m.Parts[0].Text = "a\xffb"
		})}, session.Invalid, "parts[0].text"},
		{"a lone surrogate", Append{Session: sess.ID, Messages: with(func(m *session.Message) {
			m.Parts[0].Text = "a\xed\xa0\x80b"
		})}, session.Invalid, "parts[0].text"},
		{"NUL", Append{Session: sess.ID, Messages: with(func(m *session.Message) {
			m.Parts[0].Text = "a\x00b"
		})}, session.Invalid, "parts[0].text"},
		{"NUL in a huge text", Append{Session: sess.ID, Messages: with(func(m *session.Message) {
			m.Parts[0].Text = big + "\x00"
		})}, session.Invalid, "parts[0].text"},
		{"NUL in arguments", Append{Session: sess.ID, Messages: with(func(m *session.Message) {
			m.Parts[0].Arguments = "\x00"
		})}, session.Invalid, "parts[0].arguments"},
		{"NUL in a call id", Append{Session: sess.ID, Messages: with(func(m *session.Message) {
			m.Parts[0].CallID = "\x00"
		})}, session.Invalid, "parts[0].call_id"},
		{"NUL in an author", Append{Session: sess.ID, Messages: with(func(m *session.Message) {
			m.Author = "\x00"
		})}, session.Invalid, "author"},
		{"invalid UTF-8 in metadata", Append{Session: sess.ID, Messages: with(func(m *session.Message) {
			m.Metadata = session.JSON("\"\xff\"")
		})}, session.Invalid, "metadata"},
		{"metadata that is no JSON", Append{Session: sess.ID, Messages: with(func(m *session.Message) {
			m.Metadata = session.JSON("{")
		})}, session.Invalid, ""},
		{"extra over 1,000 levels of SQLite", Append{Session: sess.ID, Messages: with(func(m *session.Message) {
			m.Extra = session.JSON(strings.Repeat("[", 1200) + strings.Repeat("]", 1200))
		})}, session.Invalid, ""},
		{"an unknown role", Append{Session: sess.ID, Messages: with(func(m *session.Message) {
			m.Role = "prophet"
		})}, session.Invalid, ""},
		{"an unknown kind of part", Append{Session: sess.ID, Messages: with(func(m *session.Message) {
			m.Parts[0].Kind = "smell"
		})}, session.Invalid, ""},
		{"1,025 parts", Append{Session: sess.ID, Messages: with(func(m *session.Message) {
			m.Parts = make([]session.Part, 1025)
		})}, session.Invalid, ""},
		{"an external id that is taken", Append{Session: sess.ID, Messages: with(func(m *session.Message) {
			m.ExternalID = "taken"
		})}, session.Conflict, ""},
		{
			"a stale head",
			Append{Session: sess.ID, Messages: with(func(*session.Message) {}), ExpectHead: &ExpectHead{}},
			session.Conflict, "expect_head",
		},
		{"a parent elsewhere", Append{
			Session: sess.ID, Messages: with(func(*session.Message) {}),
			Parent: ref(trashed.ID, 1),
		}, session.Invalid, "parent"},
		{
			"no such parent",
			Append{Session: sess.ID, Messages: with(func(*session.Message) {}), Parent: ref(sess.ID, 7)},
			session.Invalid, "parent",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.HasSuffix(c.name, "of SQLite") {
				onFile(t)
			}
			before := testkit.Must(s.Session(ctx, sess.ID))(t)
			out, err := s.Append(ctx, c.in)
			wants(t, err, c.code, "")
			if fields := fieldsOf(err); c.path != "" && (len(fields) != 1 || fields[0].Path != c.path) {
				t.Errorf("fields %v, not %s", fields, c.path)
			}
			if out.Messages != nil {
				t.Error("an answer beside the error")
			}
			testkit.Equal(t, before, testkit.Must(s.Session(ctx, sess.ID))(t))
		})
	}
	if n := count(t, s, `SELECT (SELECT COUNT(*) FROM messages) * 100 + (SELECT COUNT(*) FROM parts) * 10 + (SELECT COUNT(*) FROM blobs)`); n != 110 {
		t.Errorf("rows: %d", n)
	}
	mustBeHealthy(t, s)
}

func fieldsOf(err error) []session.FieldError {
	for err != nil {
		if e, ok := err.(*session.Error); ok {
			return e.Fields
		}
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return nil
		}
		err = u.Unwrap()
	}
	return nil
}

func TestSessionsRefuseTextThatSQLiteCannotHold(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	for _, in := range []NewSession{
		{Title: "\x00"},
		{Directory: "\xff"},
		{Metadata: session.JSON(`{`)},
		{Kind: "party"},
		{SourceID: "a\x00"},
		{Key: "\xfe"},
	} {
		_, err := s.CreateSession(ctx, in)
		wants(t, err, session.Invalid, "")
	}
	bad := "\x00"
	sess := mustCreate(t, s, NewSession{})
	_, err := s.PatchSession(ctx, sess.ID, SessionPatch{Title: &bad})
	wants(t, err, session.Invalid, "title")
	if n := count(t, s, `SELECT COUNT(*) FROM sessions`); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

func TestAMessageHoldsNoneToAThousandAndTwentyFourParts(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	full := session.Message{Role: session.User, InContext: true}
	for i := range session.MaxParts {
		full.Parts = append(full.Parts, session.TextPart(fmt.Sprint(i)))
	}
	out := mustAppend(t, s, sess.ID, session.Message{Role: session.User}, full, session.Message{Role: session.Assistant})
	for i, want := range []int{0, session.MaxParts, 0} {
		got := testkit.Must(s.MessageByID(ctx, out.Messages[i].RowID))(t)
		if len(got.Parts) != want {
			t.Errorf("message %d has %d parts, not %d", i, len(got.Parts), want)
		}
		for j, p := range got.Parts {
			if p.Text != fmt.Sprint(j) || p.Idx != int64(j) {
				t.Fatalf("part %d is %q", j, p.Text)
			}
		}
	}
}

func TestAnEmptyAppendChangesNothing(t *testing.T) {
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	out := mustAppend(t, s, sess.ID)
	after := testkit.Must(s.Session(context.Background(), sess.ID))(t)
	if out.Revision != sess.Revision || out.Head != nil || after.Revision != sess.Revision ||
		!after.UpdatedAt.Equal(sess.UpdatedAt.Time) {
		t.Errorf("%+v", after)
	}
}

func TestAHugeTextIsOneBlobForAllWhoSayIt(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	a, b := mustCreate(t, s, NewSession{}), mustCreate(t, s, NewSession{})
	huge, edge := strings.Repeat("größe\n", 200_000), strings.Repeat("x", session.BlobThreshold)
	mustAppend(t, s, a.ID, says(session.User, huge), says(session.User, edge))
	mustAppend(t, s, b.ID, says(session.User, huge), says(session.User, huge))
	if n := count(t, s, `SELECT COUNT(*) * 10 + (SELECT COUNT(*) FROM parts WHERE blob IS NOT NULL) FROM blobs`); n != 13 {
		t.Errorf("blobs and parts with one: %d", n)
	}
	for _, id := range []session.ID{a.ID, b.ID} {
		msgs, _, err := s.Messages(ctx, id, MessagePage{})
		if err != nil || msgs[0].Text() != huge || msgs[0].Parts[0].Blob.MediaType != session.TextBlob {
			t.Errorf("%s: %d bytes, %v", id, len(msgs[0].Text()), err)
		}
		if b := testkit.Must(s.Blob(ctx, *msgs[0].Parts[0].BlobSHA))(t); string(b.Data) != huge ||
			b.Size != int64(len(huge)) {
			t.Errorf("the blob holds %d bytes", b.Size)
		}
	}
	_, err := s.Blob(ctx, strings.Repeat("0", 64))
	wants(t, err, session.NotFound, "no blob")
	mustBeHealthy(t, s)
}

func TestAppendMovesTheSessionsTimesByWhoSpoke(t *testing.T) {
	ctx := context.Background()
	clock := time.Date(2026, 2, 11, 10, 0, 0, 0, time.UTC)
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return clock } })
	sess := mustCreate(t, s, NewSession{})
	start := clock
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	beat := says(session.User, "heartbeat")
	beat.Origin = session.Program
	for _, c := range []struct {
		name            string
		minute          int
		msg             session.Message
		active, inbound int // minutes; -1: unset
	}{
		{"a heartbeat is no activity", 1, beat, 0, -1},
		{"nor is the reply to it", 2, says(session.Assistant, "ok"), 0, -1},
		{"a person begins a turn", 3, says(session.User, "water the garden\nplease"), 3, 3},
		{"the reply belongs to it", 4, says(session.Assistant, "hi"), 4, 3},
		{"and its tools", 5, says(session.Tool, "done"), 5, 3},
		{"a program's turn again is none", 6, beat, 5, 3},
		{"nor its reply", 7, says(session.Assistant, "ok"), 5, 3},
		{"a clock set back moves nothing back", 2, says(session.User, "late"), 5, 3},
	} {
		clock = at(c.minute)
		mustAppend(t, s, sess.ID, c.msg)
		got := testkit.Must(s.Session(ctx, sess.ID))(t)
		if !got.ActiveAt.Equal(at(c.active)) || (c.inbound < 0) != (got.InboundAt == nil) ||
			got.InboundAt != nil && !got.InboundAt.Equal(at(c.inbound)) || !got.UpdatedAt.Equal(clock) {
			t.Errorf("%s: active %v, inbound %v", c.name, got.ActiveAt, got.InboundAt)
		}
	}
	if got := testkit.Must(s.Session(ctx, sess.ID))(t); got.Title != "water the garden" ||
		got.TitleSource != "first_message" {
		t.Errorf("title %q from %s", got.Title, got.TitleSource)
	}
}

func TestADraftIsListedAndCountedFromItsFirstReply(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{Draft: true})
	mustAppend(t, s, sess.ID, says(session.User, "hello"))
	if data, _, err := s.Sessions(ctx, Filter{}, Page{}); err != nil || len(data) != 0 {
		t.Errorf("a draft is listed: %d, %v", len(data), err)
	}
	mustBeHealthy(t, s)
	mustAppend(t, s, sess.ID, says(session.Assistant, "hi"))
	if data, _, err := s.Sessions(ctx, Filter{}, Page{}); err != nil || len(data) != 1 || data[0].Draft {
		t.Errorf("%d listed, %v", len(data), err)
	}
	mustBeHealthy(t, s)
}

func TestExpectHead(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	say := func(expect *ExpectHead) error {
		_, err := s.Append(ctx, Append{
			Session: sess.ID, Messages: []session.Message{says(session.User, "x")},
			ExpectHead: expect,
		})
		return err
	}
	wants(t, say(&ExpectHead{Ref: ref(sess.ID, 1)}), session.Conflict, "is empty")
	wants(t, say(&ExpectHead{}), "", "")
	wants(t, say(&ExpectHead{}), session.Conflict, string(sess.ID)+".1")
	wants(t, say(&ExpectHead{Ref: ref(sess.ID, 1)}), "", "")
	wants(t, say(&ExpectHead{Ref: ref(sess.ID, 1)}), session.Conflict, string(sess.ID)+".2")
	wants(t, say(nil), "", "")
}

func TestAppendWithAParentBranchesOff(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	mustAppend(t, s, sess.ID, says(session.User, "1"), says(session.Assistant, "22"), says(session.User, "333"))
	out := testkit.Must(s.Append(ctx, Append{
		Session: sess.ID, Parent: ref(sess.ID, 1),
		Messages: []session.Message{says(session.Assistant, "4444"), says(session.User, "55555")},
	}))(t)
	if out.ContextTokens != 1+4+5 || out.Head.Seq != 5 || out.Messages[0].Parent.Seq != 1 {
		t.Errorf("%+v", out)
	}
	texts := func(msgs []session.Message) (all []string) {
		for _, m := range msgs {
			all = append(all, m.Text())
		}
		return all
	}
	path := testkit.Must(s.Path(ctx, *out.Session.HeadID, 0))(t)
	testkit.Equal(t, []string{"1", "4444", "55555"}, texts(path))
	// The head itself as parent is no branch.
	same := testkit.Must(s.Append(ctx, Append{
		Session: sess.ID, Parent: ref(sess.ID, 5),
		Messages: []session.Message{says(session.User, "6")},
	}))(t)
	if same.Session.Epoch != out.Session.Epoch || out.Session.Epoch != 1 {
		t.Errorf("epochs %d, %d", out.Session.Epoch, same.Session.Epoch)
	}
	all, _, err := s.Messages(ctx, sess.ID, MessagePage{All: true})
	if err != nil || len(all) != 6 {
		t.Errorf("%d messages, %v", len(all), err)
	}
	mustBeHealthy(t, s)
}

func TestAppendTellsTheOutbox(t *testing.T) {
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	mustAppend(t, s, sess.ID, says(session.User, "a"), says(session.Assistant, "b"))
	var told []struct {
		Type string
		Seq  *int64
		Data *string
	}
	testkit.Check(t, s.Reader().Select(&told, `SELECT type, seq, data FROM events ORDER BY id`))
	if len(told) != 2 || told[0].Type != EventSessionCreated || told[1].Type != EventMessagesAppended ||
		*told[1].Seq != 2 || *told[1].Data != `{"from":1}` {
		t.Errorf("%+v", told)
	}
}

// A small append writes a page of the log for each table and index that it changes, so their number and
// the size of a page are its cost.
func TestSmallAppendWritesUnder25KBOfLog(t *testing.T) {
	onFile(t)
	s := openTest(t)
	one := Append{
		Session:  mustCreate(t, s, NewSession{}).ID,
		Messages: []session.Message{says(session.User, "What does it cost?")},
	}
	one.Idem = &Idempotency{Key: "first", Route: "r", Body: []byte("b")}
	testkit.Must(s.Append(t.Context(), one))(t)
	if done := testkit.Must(s.TruncateWAL(t.Context()))(t); !done {
		t.Fatal("the log is still read")
	}
	one.Idem = &Idempotency{Key: "second", Route: "r", Body: []byte("b")}
	testkit.Must(s.Append(t.Context(), one))(t)
	if log := testkit.Must(os.Stat(s.File() + "-wal"))(t); log.Size() > 25_000 {
		t.Errorf("the append wrote %d bytes of log", log.Size())
	}
}

func TestAppendRefusesImpossibleDates(t *testing.T) {
	now := time.Date(2026, 2, 11, 12, 0, 0, 0, time.UTC)
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now } })
	in := Append{Session: mustCreate(t, s, NewSession{}).ID, Messages: []session.Message{says(session.User, "hi")}}
	for date, good := range map[string]bool{
		"0001-01-02T00:00:00Z": false, "1969-12-31T23:59:59Z": false, "1970-01-01T00:00:00Z": true,
		"2026-02-12T11:59:59Z": true, "2026-02-12T12:00:01Z": false, "9999-12-31T23:59:59Z": false,
	} {
		in.Messages[0].CreatedAt = session.At(testkit.Must(time.Parse(time.RFC3339, date))(t))
		if _, err := s.Append(t.Context(), in); good != (err == nil) || err != nil && session.CodeOf(err) != session.Invalid {
			t.Errorf("%s: %v", date, err)
		}
	}
	if n := testkit.Must(s.Session(t.Context(), in.Session))(t).MessageCount; n != 2 {
		t.Errorf("%d messages are stored", n)
	}
}
