package contextmgr_test

import (
	"path/filepath"
	"slices"
	"testing"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"

	"github.com/google/go-cmp/cmp"
)

// The next context of an imported session has the roles that its program would send, by the
// samples' README.
func TestContextsAtHeadsMatchTheirPrograms(t *testing.T) {
	for _, c := range []struct {
		pattern, before string
		at              string // external id of another leaf; "": the head
		want            []string
	}{
		{pattern: "v3/--home-dev-demo--/*e142.jsonl", want: []string{"user", "assistant"}},
		{pattern: "v3/--home-dev-other--/*.jsonl", before: "v3/--home-dev-demo--/*e142.jsonl", want: []string{"user", "assistant", "user"}},
		{pattern: "v3-harness/*.jsonl", want: []string{"user"}},
		{pattern: "v4-harness/*e6c9e6253dc5.jsonl", want: []string{"summary", "user", "assistant", "user"}}, // its cut splits a turn, whose question sessiond shows again
		{pattern: "v4-harness/*e6d1a35ee98b.jsonl", before: "v4-harness/*e6c9e6253dc5.jsonl", want: []string{"user", "assistant"}},
		{pattern: "made/v1-compaction.jsonl", want: []string{"summary", "user", "assistant", "user"}},
		{pattern: "made/v2-hook-message.jsonl", want: []string{"user", "user", "user"}},
		{pattern: "made/cycle-and-orphan.jsonl", want: []string{"user", "user", "user"}},
		{pattern: "made/torn-last-line.jsonl", want: []string{"user", "assistant"}},
		{pattern: "before-compaction.jsonl", want: nil},
	} {
		t.Run(filepath.Base(c.pattern), func(t *testing.T) {
			notRaced(t, sample(t, c.pattern))
			d := newDesk(t)
			if c.before != "" {
				d.importPi(sample(t, c.before))
			}
			sess := d.importPi(sample(t, c.pattern))
			v := testkit.Must(d.mgr.Assemble(t.Context(), sess.ID, contextmgr.Budget{Window: 1000000, CloseCalls: true}))(t)
			got := []string{}
			for _, p := range v.Provenance {
				switch {
				case p.Message < 0:
				case p.Kind == contextmgr.ItemSummary:
					got = append(got, p.Kind)
				default:
					got = append(got, string(v.Messages[p.Message].Role))
				}
			}
			if c.want != nil {
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("roles (-want +got):\n%s", diff)
				}
				return
			}
			// Two compactions: the newest one's summary, then the path from the entry it kept.
			first := slices.IndexFunc(v.Provenance, func(p contextmgr.Provenance) bool { return p.Kind == contextmgr.ItemMessage })
			if got[0] != contextmgr.ItemSummary || v.Messages[v.Provenance[first].Message].ExternalID != "v1:550" {
				t.Errorf("it begins with %v and then %s", got[:2], v.Messages[v.Provenance[first].Message].ExternalID)
			}
		})
	}
}

func sample(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(samples.Dir(t), "pi", pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v %v", pattern, found, err)
	}
	return found[0]
}

// The sample with every kind of line has another leaf, at which its compaction is in force.
func TestContextAtAnotherLeafMatchesItsProgram(t *testing.T) {
	d := newDesk(t)
	sess := d.importPi(sample(t, "v3/--home-dev-demo--/*e142.jsonl"))
	all, err := d.store.Compactions(t.Context(), sess.ID)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d compactions, %v", len(all), err)
	}
	var found [][]string
	for _, path := range d.branches(sess) {
		head := path[len(path)-1].RowID
		on := testkit.Must(d.store.OnPath(t.Context(), head, *all[0].ThroughID))(t)
		at := &contextmgr.Position{HeadID: &head}
		if on && all[0].Status == session.StatusDone {
			at.CompactionID = &all[0].RowID
		}
		v := testkit.Must(d.mgr.Assemble(t.Context(), sess.ID, contextmgr.Budget{Window: 1000000, CloseCalls: true, At: at}))(t)
		roles := []string{}
		if v.System != "" {
			roles = append(roles, "system")
		}
		for _, p := range v.Provenance {
			switch {
			case p.Message < 0:
			case p.Kind == contextmgr.ItemSummary:
				roles = append(roles, p.Kind)
			default:
				roles = append(roles, string(v.Messages[p.Message].Role))
			}
		}
		found = append(found, roles)
	}
	want := []string{"system", "summary", "user", "assistant", "tool", "assistant", "user", "assistant"}
	if !slices.ContainsFunc(found, func(roles []string) bool { return slices.Equal(roles, want) }) {
		t.Errorf("no leaf has the context %v; they have %v (compaction %+v)", want, found, all[0])
	}
}
