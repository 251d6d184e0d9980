package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// worked makes a session whose messages touch files: "op path" each, a minute apart.
func worked(t *testing.T, s *Store, source session.Source, hour int, touches ...string) session.ID {
	t.Helper()
	at := time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC)
	b := ImportBatch{Session: NewSession{Source: source, SourceID: fmt.Sprint("s", hour)}}
	created := session.At(at)
	b.Session.CreatedAt = &created
	for i, touch := range touches {
		m := ImportMessage{Message: says(session.Assistant, touch)}
		m.Parts = append(m.Parts, session.Part{Kind: session.PartToolCall, CallID: fmt.Sprint(i)})
		m.ExternalID = fmt.Sprint(i)
		m.CreatedAt = session.At(at.Add(time.Duration(i) * time.Minute))
		b.Messages = append(b.Messages, m)
	}
	return testkit.Must(s.Import(context.Background(), b))(t).Session.ID
}

// openTouched opens a store in which a message touches what its text says, as "op path".
func openTouched(t *testing.T) *Store {
	t.Helper()
	return openTest(t, func(o *Options) {
		o.Touched = func(m *session.Message, _ string) []session.TouchedFile {
			op, path, ok := strings.Cut(m.Text(), " ")
			if !ok {
				return nil
			}
			return []session.TouchedFile{{Op: session.FileOp(op), Path: path}}
		}
	})
}

func told(list []FileSession) string {
	var all []string
	for _, f := range list {
		all = append(all, fmt.Sprintf("%s %v %v", f.Session.SourceID, f.Ops, f.Files))
	}
	return strings.Join(all, "; ")
}

func TestFileSessionsAreThoseThatTouchedAFile(t *testing.T) {
	ctx := context.Background()
	s := openTouched(t)
	// Imported in another order than they happened.
	worked(t, s, session.SourceCodex, 12, "read /p/a.go", "edit /p/a.go", "edit /p/a.go")
	worked(t, s, session.SourcePi, 9, "write /p/a.go", "read /p/sub/b.go")
	worked(t, s, session.SourceGoose, 15, "read /p/a.go.orig", "read /p2/a.go", "read /q")
	gone := worked(t, s, session.SourcePi, 20, "delete /p/a.go")
	testkit.Must(s.SetTrash(ctx, gone, true, nil, nil))(t)
	for _, test := range []struct {
		name  string
		paths []string
		ops   []session.FileOp
		want  string
	}{
		{"a file, newest first", []string{"/p/a.go"}, nil, "s12 map[edit:2 read:1] [/p/a.go]; s9 map[write:1] [/p/a.go]"},
		{
			"a folder",
			[]string{"/p/"},
			nil,
			"s15 map[read:1] [/p/a.go.orig]; s12 map[edit:2 read:1] [/p/a.go]; s9 map[read:1 write:1] [/p/a.go /p/sub/b.go]",
		},
		{
			"everything",
			[]string{"/"},
			[]session.FileOp{session.OpRead},
			"s15 map[read:3] [/p/a.go.orig /p2/a.go /q]; s12 map[read:1] [/p/a.go]; s9 map[read:1] [/p/sub/b.go]",
		},
		{
			"what was done",
			[]string{"/p/a.go"},
			[]session.FileOp{session.OpWrite, session.OpDelete},
			"s9 map[write:1] [/p/a.go]",
		},
		{
			"several, each counted once",
			[]string{"/p/sub", "/p/sub/b.go", "/q"},
			nil,
			"s15 map[read:1] [/q]; s9 map[read:1] [/p/sub/b.go]",
		},
		{"nobody", []string{"/p/a"}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, next, err := s.FileSessions(ctx, FileFilter{Paths: test.paths, Ops: test.ops}, Page{})
			if err != nil || next != "" || told(got) != test.want {
				t.Errorf("%s\nwant %s\n%v %s", told(got), test.want, err, next)
			}
		})
	}
	first, next, err := s.FileSessions(ctx, FileFilter{Paths: []string{"/p"}}, Page{Limit: 2})
	if err != nil || len(first) != 2 || next == "" {
		t.Fatalf("%s %q %v", told(first), next, err)
	}
	rest, end, err := s.FileSessions(ctx, FileFilter{Paths: []string{"/p"}}, Page{Limit: 2, Cursor: next})
	if err != nil || told(rest) != "s9 map[read:1 write:1] [/p/a.go /p/sub/b.go]" || end != "" {
		t.Errorf("%s %q %v", told(rest), end, err)
	}
	oldest, _, err := s.FileSessions(ctx, FileFilter{Paths: []string{"/p/a.go"}}, Page{Ascending: true, Limit: 1})
	if err != nil || !strings.HasPrefix(told(oldest), "s9 ") {
		t.Errorf("%s %v", told(oldest), err)
	}
	if last := first[1].Last; last.Message.Seq != 3 || last.Op != session.OpEdit || first[1].First.Message.Seq != 1 {
		t.Errorf("%+v", first[1])
	}
	var changes []string
	for _, c := range first[1].Changes {
		changes = append(changes, fmt.Sprint(c.Op, " ", c.Path, " ", c.Message.Seq))
	}
	if got := strings.Join(changes, ", "); got != "edit /p/a.go 3, edit /p/a.go 2" || len(first[0].Changes) != 0 {
		t.Errorf("changes %s, and of a reader %v", got, first[0].Changes)
	}
	_, _, err = s.FileSessions(ctx, FileFilter{Paths: []string{"/"}}, Page{Cursor: "nonsense"})
	wants(t, err, session.Invalid, "nonsense")
}

func TestManyFilesOfOneSessionAreCounted(t *testing.T) {
	s := openTouched(t)
	var touches []string
	for i := range 2 * (maxFilesTold + 3) {
		touches = append(touches, fmt.Sprintf("read /many/%d", i/2))
	}
	worked(t, s, session.SourcePi, 1, touches...)
	got, _, err := s.FileSessions(t.Context(), FileFilter{Paths: []string{"/many"}}, Page{})
	if err != nil || len(got) != 1 || len(got[0].Files) != maxFilesTold || got[0].More != 3 ||
		got[0].Ops[session.OpRead] != len(touches) {
		t.Errorf("%+v %v", got, err)
	}
}
