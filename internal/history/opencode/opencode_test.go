package opencode_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sessiond/internal/history/opencode"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
)

// house is a store with an importer of opencode's databases and files, at a time of its own.
type house struct {
	*historytest.House
	now time.Time
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{now: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.House = historytest.New(t, opencode.New(historytest.NoEnv, func() time.Time { return h.now }))
	return h
}

// load makes a database of SQL, at path or in a new place.
func (h *house) load(path string, scripts ...string) string {
	h.Helper()
	if path == "" {
		path = filepath.Join(h.TempDir(), "opencode.db")
	}
	return h.Load(path, scripts...)
}

func sample(t testing.TB, parts ...string) string {
	t.Helper()
	return historytest.Sample(t, "opencode", parts...)
}

// copyOf takes a writable copy of samples.
func (h *house) copyOf(parts ...string) string {
	h.Helper()
	folder := h.TempDir()
	testkit.Check(h, os.CopyFS(folder, os.DirFS(sample(h, parts...))))
	return folder
}

// What opencode exports, and the flat list of a share.
func FuzzExport(f *testing.F) {
	const (
		info = `{"id":"ses_1","title":"t","directory":"/home/dev","time":{"created":1770109200000,"updated":1770109300000}}`
		asks = `{"info":{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1770109200000}},"parts":[{"id":"prt_1","type":"text","text":"look"}]}`
		says = `{"info":{"id":"msg_2","sessionID":"ses_1","role":"assistant","parentID":"msg_1","modelID":"m","providerID":"p","time":{"created":1770109201000,"completed":1770109203000},"cost":0.001,"tokens":{"input":5,"output":3,"cache":{"read":1,"write":0}},"finish":"stop"},"parts":[{"id":"prt_2","type":"tool","tool":"read","callID":"c","state":{"status":"completed","input":{"filePath":"a"},"output":"1","time":{"start":1770109201000,"end":1770109202000,"compacted":1770112800000}}},{"id":"prt_3","type":"text","text":"done"}]}`
		sums = `{"info":{"id":"msg_3","sessionID":"ses_1","role":"user","time":{"created":1770109204000}},"parts":[{"type":"compaction","auto":true}]},{"info":{"id":"msg_4","role":"assistant","parentID":"msg_3","summary":true,"finish":"stop","time":{"created":1770109205000,"completed":1770109206000}},"parts":[{"type":"text","text":"short"}]}`
	)
	f.Add([]byte(`{"info":` + info + `,"messages":[` + asks + "," + says + "," + sums + "]}"))
	f.Add([]byte(`{"messages":[` + says + "," + says + `,7,{"info":{"id":"msg_1"}}],"info":` + info + `}`))
	f.Add([]byte(`[{"type":"session","data":` + info + `},{"type":"message","data":{"id":"msg_1","role":"user","time":{"created":1}}},{"type":"part","data":{"id":"prt_1","messageID":"msg_1","type":"text","text":"\ud800"}},{"type":"x"}]`))
	f.Add([]byte(`{"info":` + info + `,"messages":[` + asks))
	source := opencode.New(historytest.NoEnv, func() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) })
	historytest.FuzzFile(f, "session.json", source)
}

func TestOpencodePlaces(t *testing.T) {
	for _, test := range []struct {
		name string
		env  map[string]string
		want []string
	}{
		{"nothing is known", nil, nil},
		{"a home", map[string]string{"HOME": "/home/ana"}, []string{"/home/ana/.local/share/opencode"}},
		{"data elsewhere", map[string]string{"HOME": "/home/ana", "XDG_DATA_HOME": "/data"}, []string{"/data/opencode"}},
		{
			"another database",
			map[string]string{"HOME": "/home/ana", "OPENCODE_DB": "mine.db"},
			[]string{"/home/ana/.local/share/opencode", "/home/ana/.local/share/opencode/mine.db"},
		},
		{
			"a database anywhere",
			map[string]string{"HOME": "/home/ana", "OPENCODE_DB": "/x/y.db"},
			[]string{"/home/ana/.local/share/opencode", "/x/y.db"},
		},
	} {
		if got := opencode.New(func(name string) string {
			return test.env[name]
		}, time.Now).Places(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

func TestOpencodeFinds(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{
		"opencode/opencode.db", "opencode/opencode-dev.db", "opencode/auth.json", "opencode/mcp-auth.json",
		"opencode/log/x.json", "opencode/tool-output/y.json",
		"opencode/storage/migration", "opencode/storage/session/p/ses_1.json", "opencode/storage/message/ses_1/m.json",
		"opencode/project/home-x/storage/session/info/ses_0.json",
		"opencode/project/home-x/storage/session/message/ses_0/m.json", "loose/export.json",
	} {
		path := filepath.Join(root, name)
		testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if err := os.WriteFile(path, []byte("x"), 0o000); err != nil { // finding opens nothing
			t.Fatal(err)
		}
	}
	data := []string{
		"opencode/opencode-dev.db", "opencode/opencode.db", "opencode/storage",
		"opencode/project/home-x/storage/session",
	}
	source := opencode.New(func(name string) string { return map[string]string{"XDG_DATA_HOME": root}[name] }, time.Now)
	link := filepath.Join(t.TempDir(), "link")
	testkit.Check(t, os.Symlink(filepath.Join(root, "opencode"), link))
	for _, test := range []struct {
		name  string
		roots []string
		want  []string
	}{
		{"the usual place", nil, data},
		{"a data folder", []string{filepath.Join(root, "opencode")}, data},
		{"the same twice", []string{link, filepath.Join(root, "opencode")}, data},
		{"what lies above", []string{root}, append(slices.Clone(data), "loose/export.json")},
		{"a tree", []string{filepath.Join(root, "opencode", "storage")}, data[2:3]},
		{"a database", []string{filepath.Join(root, "opencode", "opencode.db")}, data[1:2]},
	} {
		found, problems, err := source.Find(t.Context(), test.roots)
		var got []string
		for _, f := range found {
			got = append(got, strings.TrimPrefix(f.Path, root+"/"))
		}
		if err != nil || len(problems) != 0 || !slices.Equal(got, test.want) {
			t.Errorf("%s: %v %v %v", test.name, got, problems, err)
		}
	}
}
