package history

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
)

// listing is a fakeSource that holds the same sessions in several found things.
type listing struct {
	fakeSource
	ids map[string][]string
}

func (l listing) SessionIDs(_ context.Context, f Found) ([]string, bool) { return l.ids[f.Path], true }

func TestPlanRemembersRefusals(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want Plan // after the import
	}{
		{"another format", session.Errorf(session.Invalid, "no session"), Plan{Refused: 1}},
		{"no permission", session.Errorf(session.Forbidden, "not yours"), Plan{Refused: 1}},
		{"locked just now", session.Errorf(session.Busy, "locked"), Plan{Sessions: 1, New: 1, NewBytes: 7}},
		{"a disk that fails", errors.New("input/output error"), Plan{Sessions: 1, New: 1, NewBytes: 7}},
		{
			"the store's, of this file", fmt.Errorf("store: %w", session.Errorf(session.Conflict, "another one")),
			Plan{Refused: 1},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			im := Importer{Store: newFakeStore()}
			f := Found{Path: "/a", Size: 7, ModifiedAt: noon}
			source := fakeSource{found: []Found{f}, fail: test.err}
			plan := func(f Found) Plan {
				return testkit.Must(im.Plan(t.Context(), source, []Found{f}))(t)
			}
			if got := plan(f); got != (Plan{Sessions: 1, New: 1, NewBytes: 7}) {
				t.Errorf("before: %+v", got)
			}
			for range 2 { // it is tried again, and told again
				if done, err := im.Run(t.Context(), source, nil); err != nil || len(done.Errors) != 3 {
					t.Fatalf("%+v %v", done, err)
				}
				if got := plan(f); got != test.want {
					t.Errorf("after: %+v", got)
				}
			}
			changed := f
			changed.ModifiedAt = noon.Add(time.Second)
			if got := plan(changed); got.New != 1 || got.Refused != 0 {
				t.Errorf("when it changed: %+v", got)
			}
			source.fail = nil // a sessiond that knows more
			testkit.Must(im.Run(t.Context(), source, nil))(t)
			if got := plan(f); got != (Plan{Sessions: 1}) {
				t.Errorf("when it could be read: %+v", got)
			}
		})
	}
}

func TestPlanCountsAnUnfinishedEndAsNew(t *testing.T) {
	at := session.At(noon)
	for _, test := range []struct {
		name   string
		cursor store.ImportCursor
		now    time.Time
		want   Plan
	}{
		{
			"an end that is not finished",
			store.ImportCursor{Size: -1, ModifiedAt: &at},
			noon.Add(time.Minute),
			Plan{Sessions: 1},
		},
		{
			"for long enough",
			store.ImportCursor{Size: -1, ModifiedAt: &at},
			noon.Add(time.Hour),
			Plan{Sessions: 1, New: 1, NewBytes: 7},
		},
		{
			"a clock that is behind",
			store.ImportCursor{Size: -1, ModifiedAt: &at},
			noon.Add(-time.Hour),
			Plan{Sessions: 1, New: 1, NewBytes: 7},
		},
		{"more was written", store.ImportCursor{Size: 6}, noon.Add(time.Minute), Plan{Sessions: 1, New: 1, NewBytes: 7}},
		{"finished", store.ImportCursor{Size: 7, ModifiedAt: &at}, noon.Add(time.Minute), Plan{Sessions: 1}},
	} {
		st := newFakeStore()
		test.cursor.Path, test.cursor.SessionID = "/a", "20260101_001"
		st.cursors["/a"] = &test.cursor
		im := Importer{Store: st, Now: func() time.Time { return test.now }}
		if got, err := im.Plan(t.Context(), fakeSource{}, []Found{{Path: "/a", Size: 7, ModifiedAt: noon}}); err != nil ||
			got != test.want {
			t.Errorf("%s: %+v %v", test.name, got, err)
		}
		im.Once = true
		got, err := im.Plan(t.Context(), fakeSource{}, []Found{{Path: "/a", Size: 7, ModifiedAt: noon}})
		if fresh := test.cursor.Size != 7; err != nil || got.New > 0 != fresh {
			t.Errorf("%s, for an import that does not wait: %+v %v", test.name, got, err)
		}
	}
}

func TestPlanCountsASessionOnce(t *testing.T) {
	db, tree := Found{Path: "/db", Size: 10, ModifiedAt: noon}, Found{Path: "/tree", Size: 5, ModifiedAt: noon}
	source := listing{fakeSource{}, map[string][]string{"/db": {"a", "b", "c"}, "/tree": {"b", "c", "d"}, "/old": {"a"}}}
	old := Found{Path: "/old", Size: 1, ModifiedAt: noon}
	at := session.At(noon)
	st := newFakeStore()
	im := Importer{}
	check := func(what string, want Plan) {
		t.Helper()
		if got, err := im.Plan(t.Context(), source, []Found{db, tree, old}); err != nil || got != want {
			t.Errorf("%s: %+v %v", what, got, err)
		}
	}
	check("nothing is here", Plan{Sessions: 4, New: 4, NewBytes: 15})
	im.Store = st
	st.cursors["/db"] = &store.ImportCursor{Size: 10, ModifiedAt: &at, Counts: session.JSON(`{"sessions":3}`)}
	check("the database is", Plan{Sessions: 4, New: 2, NewBytes: 6})
	st.cursors["/tree"] = &store.ImportCursor{Size: 5, ModifiedAt: &at, Counts: session.JSON(`{"sessions":3}`)}
	st.cursors["/old"] = &store.ImportCursor{Size: 1, ModifiedAt: &at, Counts: session.JSON(`{"sessions":1}`)}
	check("everything is", Plan{Sessions: 4})
}
