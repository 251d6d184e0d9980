package store

import (
	"context"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func calls(ids ...string) session.Message {
	m := session.Message{Role: session.Assistant, InContext: true, Display: true}
	for _, id := range ids {
		m.Parts = append(m.Parts, session.Part{Kind: session.PartToolCall, ToolName: "bash", CallID: id, Arguments: "{}"})
	}
	return m
}

func results(ids ...string) session.Message {
	m := session.Message{Role: session.Tool, InContext: true, Display: true}
	for _, id := range ids {
		m.Parts = append(m.Parts, session.Part{Kind: session.PartToolResult, CallID: id, ToolName: "bash", Text: "out"})
	}
	return m
}

// A step appends messages; want are, for each result in them, the call it answers as seq and
// index (0, 0: none).
type step struct {
	parent int64
	msgs   []session.Message
	want   [][2]int64
}

func TestResultsFindTheirCalls(t *testing.T) {
	filler := make([]session.Message, 40)
	for i := range filler {
		filler[i] = says(session.User, "filler")
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"in one append", []step{{0, []session.Message{calls("a"), results("a")}, [][2]int64{{1, 0}}}}},
		{"in the next append", []step{
			{0, []session.Message{calls("a")}, nil},
			{0, []session.Message{results("a")}, [][2]int64{{1, 0}}},
		}},
		{"parallel calls, out of order", []step{
			{0, []session.Message{calls("a", "b", "c")}, nil},
			{0, []session.Message{results("c", "a"), results("b")}, [][2]int64{{1, 2}, {1, 0}, {1, 1}}},
		}},
		{"parallel calls of one id, in order", []step{
			{0, []session.Message{calls("x", "x")}, nil},
			{0, []session.Message{results("x")}, [][2]int64{{1, 0}}},
			{0, []session.Message{results("x")}, [][2]int64{{1, 1}}},
		}},
		{"of one id in one message", []step{{
			0,
			[]session.Message{calls("x", "x"), results("x", "x")},
			[][2]int64{{1, 0}, {1, 1}},
		}}},
		{"of one id in one message, appended later", []step{
			{0, []session.Message{calls("x", "x")}, nil},
			{0, []session.Message{results("x", "x")}, [][2]int64{{1, 0}, {1, 1}}},
		}},
		{"ids used again each turn", []step{
			{0, []session.Message{calls("1"), results("1"), calls("1"), results("1")}, [][2]int64{{1, 0}, {3, 0}}},
			{0, []session.Message{calls("1")}, nil},
			{0, []session.Message{results("1")}, [][2]int64{{5, 0}}},
		}},
		{"the nearest of two open calls", []step{
			{0, []session.Message{calls("1"), calls("1")}, nil},
			{0, []session.Message{results("1"), results("1")}, [][2]int64{{2, 0}, {1, 0}}},
		}},
		{"a second result for an answered call", []step{
			{0, []session.Message{calls("1"), results("1")}, [][2]int64{{1, 0}}},
			{0, []session.Message{results("1")}, [][2]int64{{1, 0}}},
		}},
		{"on another branch the call is open again", []step{
			{0, []session.Message{calls("1"), calls("1")}, nil},
			{2, []session.Message{results("1")}, [][2]int64{{2, 0}}},
			{2, []session.Message{results("1")}, [][2]int64{{2, 0}}},
		}},
		{"a call on another branch is not seen", []step{
			{0, []session.Message{says(session.User, "q"), calls("1")}, nil},
			{1, []session.Message{results("1")}, [][2]int64{{0, 0}}},
		}},
		{"far back", []step{
			{0, []session.Message{calls("1")}, nil},
			{0, filler, nil},
			{0, []session.Message{results("1")}, [][2]int64{{1, 0}}},
		}},
		{"far back over a branch", []step{
			{0, []session.Message{calls("1"), says(session.User, "left")}, nil},
			{1, filler, nil},
			{0, []session.Message{results("1")}, [][2]int64{{1, 0}}},
		}},
		{"made ids, begun anew in each append", []step{
			{0, []session.Message{calls("made_bash_1", "made_bash_2")}, nil},
			{0, []session.Message{results("made_bash_1")}, [][2]int64{{1, 0}}},
			{0, []session.Message{results("made_bash_1")}, [][2]int64{{1, 1}}},
			{0, []session.Message{results("made_bash_1")}, [][2]int64{{1, 0}}}, // one too many
		}},
		{"no id: by the tool's name", []step{
			{0, []session.Message{calls("a")}, nil},
			{0, []session.Message{calls("b", "c")}, nil},
			{0, []session.Message{results("made_bash_1", "")}, [][2]int64{{2, 0}, {2, 1}}},
			{0, filler, nil},
			{0, []session.Message{results("made_bash_1")}, [][2]int64{{1, 0}}},
		}},
		{"no call: kept whole", []step{{0, []session.Message{results("nowhere", "")}, [][2]int64{{0, 0}, {0, 0}}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			s := openTest(t)
			sess := mustCreate(t, s, NewSession{})
			for i, st := range c.steps {
				in := Append{Session: sess.ID, Messages: st.msgs}
				if st.parent > 0 {
					in.Parent = ref(sess.ID, st.parent)
				}
				out := testkit.Must(s.Append(ctx, in))(t)
				var got [][2]int64
				for _, m := range out.Messages {
					for _, r := range testkit.Must(s.MessageByID(ctx, m.RowID))(t).Parts {
						if r.Kind != session.PartToolResult {
							continue
						}
						if r.Text != "out" {
							t.Errorf("the result says %q", r.Text)
						}
						at := [2]int64{}
						if r.CallPartID != nil {
							at = [2]int64{testkit.Must(s.MessageByID(ctx, *r.CallPartID>>10))(t).Seq, *r.CallPartID & 1023}
						}
						got = append(got, at)
					}
				}
				if len(got) != len(st.want) {
					t.Fatalf("step %d: %v, not %v", i, got, st.want)
				}
				for j := range got {
					if got[j] != st.want[j] {
						t.Errorf("step %d: %v, not %v", i, got, st.want)
					}
				}
			}
			mustBeHealthy(t, s)
		})
	}
}

func TestTouchedFilesFollowThePath(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, func(o *Options) {
		o.Touched = func(m *session.Message, directory string) (all []session.TouchedFile) {
			for _, c := range m.Calls() {
				all = append(all, session.TouchedFile{Path: directory + "/" + c.CallID, Op: session.OpEdit},
					session.TouchedFile{Path: directory + "/" + c.CallID, Op: session.OpEdit})
			}
			return all
		}
	})
	sess := mustCreate(t, s, NewSession{Directory: "/d"})
	mustAppend(t, s, sess.ID, calls("a"), calls("b"), calls("c"))
	out := testkit.Must(s.Append(ctx, Append{
		Session: sess.ID, Parent: ref(sess.ID, 2),
		Messages: []session.Message{calls("d", "a")},
	}))(t)
	rows := map[int64]int64{}
	all, _, err := s.Messages(ctx, sess.ID, MessagePage{All: true})
	testkit.Check(t, err)
	for _, m := range all {
		rows[m.Seq] = m.RowID
	}
	for _, c := range []struct {
		after, through int64
		want           string
	}{
		{0, rows[4], "/d/a /d/b /d/a /d/d "},
		{rows[1], rows[4], "/d/b /d/a /d/d "},
		{rows[2], rows[4], "/d/a /d/d "},
		{rows[1], rows[3], "/d/b /d/c "},
		{rows[4], rows[4], ""},
	} {
		got := ""
		for _, f := range testkit.Must(s.TouchedFiles(ctx, c.after, c.through))(t) {
			got += f.Path + " "
		}
		if got != c.want {
			t.Errorf("(%d, %d]: %q, not %q", c.after, c.through, got, c.want)
		}
	}
	_ = out
}

func TestResultInTheReplyItselfIsLinked(t *testing.T) {
	ctx := context.Background()
	s := openTest(t)
	id := mustCreate(t, s, NewSession{}).ID
	reply := session.Message{Role: session.Assistant, InContext: true, Display: true, Parts: []session.Part{
		{Kind: session.PartToolCall, CallID: "srv_1", ToolName: "web_search"},
		{Kind: session.PartToolResult, CallID: "srv_1", Text: "a headline"},
	}}
	parts := mustAppend(t, s, id, reply).Messages[0].Parts
	if parts[1].CallPartID == nil || *parts[1].CallPartID != parts[0].RowID {
		t.Errorf("the result is linked to %v, want %d", parts[1].CallPartID, parts[0].RowID)
	}
	checks := testkit.Must(s.Doctor(ctx, true))(t)
	for _, c := range checks {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
}
