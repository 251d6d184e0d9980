package store

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/session"
)

func texts[T ~string](values []T) (all []string) {
	for _, v := range values {
		all = append(all, string(v))
	}
	slices.Sort(all)
	return all
}

func TestWhatIsAllowedIsWhatTheSchemaAllows(t *testing.T) {
	s := openTest(t)
	for table, columns := range map[string]map[string][]string{
		"messages":      {"kind": texts(messageKinds()), "role": texts(roles()), "origin": texts(origins()), "finish": texts(finishes())},
		"parts":         {"kind": texts(partKinds())},
		"calls":         {"purpose": texts(purposes()), "status": texts(callStatuses()), "price_source": texts(priceSources())},
		"touched_files": {"op": texts(fileOps())},
	} {
		var text string
		if err := s.get(context.Background(), &text, `SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?`, table); err != nil {
			t.Fatal(err)
		}
		checks := regexp.MustCompile(`CHECK \((\w+) (?:=|IN) \(?'(.*)'\)`).FindAllStringSubmatch(text, -1)
		if len(checks) != len(columns) {
			t.Errorf("%s has the lists %v", table, checks)
		}
		for _, check := range checks {
			column := check[1]
			want := strings.Split(strings.ReplaceAll(check[2], "', '", "' OR "+column+" = '"), "' OR "+column+" = '")
			slices.Sort(want)
			if !slices.Equal(columns[column], want) {
				t.Errorf("%s.%s: %q; the schema has %q", table, column, columns[column], want)
			}
		}
	}
}

// It does so itself where it is told how to check JSON; else the schema does.
func TestAnImportRefusesWhatTheSchemaDoes(t *testing.T) {
	for _, storable := range []func([]byte) bool{nil, json.Valid} {
		t.Run(fmt.Sprint("by itself: ", storable != nil), func(t *testing.T) { mustRefuse(t, storable) })
	}
}

func mustRefuse(t *testing.T, storable func([]byte) bool) {
	ctx := context.Background()
	s := openTest(t, func(o *Options) { o.Storable = storable })
	for name, spoil := range map[string]func(m *session.Message){
		"kind":           func(m *session.Message) { m.Kind = "talk" },
		"role":           func(m *session.Message) { m.Role = "function" },
		"origin":         func(m *session.Message) { m.Origin = "agent" },
		"finish":         func(m *session.Message) { m.Finish = "Stop" },
		"metadata":       func(m *session.Message) { m.Metadata = session.JSON(`{`) },
		"extra":          func(m *session.Message) { m.Extra = session.JSON(`[1,]`) },
		"a part's kind":  func(m *session.Message) { m.Parts[0].Kind = "" },
		"a part's extra": func(m *session.Message) { m.Parts[0].Extra = session.JSON(`{'a': 1}`) },
	} {
		b := ImportBatch{Session: NewSession{Source: session.SourcePi, SourceID: name}}
		for i := range 30 {
			in := record(fmt.Sprint(i), "", session.User, "text")
			if i == 29 {
				spoil(&in.Message)
			}
			b.Messages = append(b.Messages, in)
		}
		if _, err := s.Import(ctx, b); session.CodeOf(err) != session.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, spoil := range map[string]func(c *session.Call){
		"a call's purpose":  func(c *session.Call) { c.Purpose = "talk" },
		"a call's status":   func(c *session.Call) { c.Status = "OK" },
		"its price":         func(c *session.Call) { c.PriceSource = "guessed" },
		"a call's metadata": func(c *session.Call) { c.Metadata = session.JSON(`{`) },
	} {
		b := ImportBatch{Session: NewSession{Source: session.SourcePi, SourceID: name}}
		for i := range 30 {
			b.Calls = append(b.Calls, ImportCall{Call: session.Call{ExternalID: fmt.Sprint(name, i)}})
		}
		spoil(&b.Calls[29].Call)
		if _, err := s.Import(ctx, b); session.CodeOf(err) != session.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	var n int
	if err := s.get(ctx, &n, `SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM calls) + (SELECT COUNT(*) FROM parts) + (SELECT COUNT(*) FROM sessions)`); err != nil || n != 0 {
		t.Errorf("%d rows were stored, %v", n, err)
	}
}
