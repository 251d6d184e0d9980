package store

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sessiond/internal/session"
)

func TestRowsInsertedTogetherComeBackAsTheyWereGiven(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	b := ImportBatch{Session: NewSession{Source: session.SourcePi, SourceID: "many"}}
	for i := range 356 {
		m := says(session.User, fmt.Sprint("text ", i))
		m.Origin, m.Author, m.Provider, m.Model, m.Dialect = session.Person, "ann", "p", "m", "d"
		switch {
		case i >= 240:
			m.Role, m.Origin, m.Author, m.Provider, m.Model = session.Assistant, session.Model, fmt.Sprint(i), fmt.Sprint(i), ""
			m.Extra, m.InContext, m.Display = session.JSON(fmt.Sprintf(`{"i":%d}`, i)), i%2 == 0, i%3 == 0
		case i >= 120 && i%2 == 0:
			m.Author = "bob"
		}
		m.ExternalID = fmt.Sprint("key ", i)
		in := ImportMessage{Message: m}
		if i > 0 {
			in.ParentKey = fmt.Sprint("key ", i-1)
		}
		b.Messages = append(b.Messages, in)
	}
	want := make([]session.Message, len(b.Messages))
	for i := range want {
		want[i] = b.Messages[i].Message
	}
	res := must(s.Import(ctx, b))(t)
	if res.Messages != len(want) {
		t.Fatalf("%d messages", res.Messages)
	}
	type columns struct{ Author, Provider, Model, Dialect, Key, Text, Extra, Role, Origin string }
	of := func(m *session.Message) columns {
		return columns{m.Author, m.Provider, m.Model, m.Dialect, m.ExternalID, m.Parts[0].Text, string(m.Extra), string(m.Role), string(m.Origin)}
	}
	i := 0
	if err := s.EachMessage(ctx, res.Session.ID, res.Session.LastSeq, func(m *session.Message) error {
		if diff := cmp.Diff(of(&want[i]), of(m)); diff != "" || m.InContext != want[i].InContext || m.Display != want[i].Display {
			t.Errorf("message %d: %s", i, diff)
		}
		i++
		return nil
	}); err != nil || i != len(want) {
		t.Errorf("%d messages came back, %v", i, err)
	}
	mustBeHealthy(t, s)
}

func TestTheStatementOfSeveralRows(t *testing.T) {
	b := bulk{tx: &tx{}, table: "t", columns: "a, b,\n\t\tc", unless: " ON CONFLICT DO NOTHING"}
	q := b.query(2, 3)
	if got := q.text(); got != "INSERT INTO t (a, b,\n\t\tc) VALUES (?, ?, ?), (?, ?, ?) ON CONFLICT DO NOTHING" {
		t.Errorf("%s", got)
	}
	b.checked, b.only, b.unless = true, true, ""
	q = b.query(1, 1)
	if got := q.text(); got != "INSERT OR FAIL INTO t (a, b,\n\t\tc) VALUES (?)" {
		t.Errorf("%s", got)
	}
}
