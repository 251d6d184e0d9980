package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sessiond/internal/testkit"
)

// The demonstration is the same at the same time, leaves nothing behind, and uses neither the store nor the
// configuration of the user.
func TestDemoIsTheSameAndLeavesNothing(t *testing.T) {
	home, temporary := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("TMP", temporary)
	demo := func(args ...string) (string, int) {
		var out bytes.Buffer
		code := run(t.Context(), append([]string{"demo", "--at", "2026-11-23T18:00:00Z"}, args...), &env{
			in: strings.NewReader(""), out: &out, err: &out, now: time.Now, dir: home, environ: []string{
				"HOME=" + home, "TZ=UTC", "XDG_DATA_HOME=" + home, "SESSIOND_DB=" + filepath.Join(home, "mine.db"),
				"SESSIOND_CONFIG=" + filepath.Join(home, "none.yaml"),
			},
		})
		return out.String(), code
	}
	var exports []string
	for _, name := range []string{"a.jsonl", "b.jsonl"} {
		if out, code := demo("export", "-o", name); code != 0 {
			t.Fatal(out)
		}
		exports = append(exports, string(testkit.Must(os.ReadFile(filepath.Join(home, name)))(t)))
	}
	if exports[0] != exports[1] || !strings.Contains(exports[0], "constituents") {
		t.Error("the history of the second demonstration differs, or is empty")
	}
	for _, c := range []struct {
		line, says string
		code       int
	}{
		{"ls", "Show the moon beside the tides", 0},
		{"show @2 --tree", "tool 20261121_002.44", 0},
		{"search published tables", "Tide times jump by an hour in October", 0},
		{"show nothing", "no session", 3},
		{"connect", "demo runs none of", 2},
		{"--at yesterday ls", "--at needs a time", 2},
	} {
		if out, code := demo(strings.Fields(c.line)...); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("demo %s ends with %d, not %d, and prints:\n%s", c.line, code, c.code, out)
		}
	}
	left := testkit.Must(os.ReadDir(temporary))(t)
	if found := testkit.Must(os.ReadDir(home))(t); len(left) > 0 || len(found) != 2 {
		t.Errorf("%v is left, and the home folder has %v", left, found)
	}
}

// README shows what the demonstration prints.
func TestReadmeShowsTheDemo(t *testing.T) {
	t.Parallel()
	text := string(testkit.Must(os.ReadFile(filepath.Join("..", "..", "README.md")))(t))
	block := "(?s)\n<!-- as the demo prints it -->\n```console\n\\$ sessiond demo ([^\n]+)\n(.*?)```\n"
	blocks := regexp.MustCompile(block).FindAllStringSubmatch(text, -1)
	if len(blocks) < 3 {
		t.Fatalf("README has %d blocks of the demonstration", len(blocks))
	}
	for _, b := range blocks {
		args := []string{"demo", "--at", "2026-11-23T18:00:00Z"}
		for i, word := range strings.Split(b[1], "'") {
			if i%2 == 1 {
				args = append(args, word)
				continue
			}
			args = append(args, strings.Fields(word)...)
		}
		var out bytes.Buffer
		if code := run(t.Context(), args, &env{
			in: strings.NewReader(""), out: &out, err: &out, now: time.Now, dir: t.TempDir(),
			environ: []string{"HOME=" + t.TempDir(), "TZ=UTC"},
		}); code != 0 || out.String() != b[2] {
			t.Errorf("sessiond %s ends with %d. README has\n%s\nIt prints\n%s", strings.Join(args, " "), code, b[2],
				out.String())
		}
	}
}

// The served demonstration answers where it says, as does a command with its configuration, and its folder goes at the
// end.
func TestServedDemoIsDeletedAtTheEnd(t *testing.T) {
	home, temporary := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("TMP", temporary)
	ctx, stop := context.WithCancel(t.Context())
	out, ended := &greeting{ready: make(chan string, 1)}, make(chan int)
	go func() {
		ended <- run(ctx, []string{"demo"}, &env{
			in: strings.NewReader(""), out: out, err: out, now: time.Now, dir: home, environ: []string{"HOME=" + home},
		})
	}()
	select {
	case address := <-out.ready:
		res := testkit.Must(http.Get(address + "/healthz"))(t)
		if res.Body.Close(); res.StatusCode != http.StatusOK {
			t.Error(res.Status)
		}
		folder := testkit.Must(filepath.Glob(filepath.Join(temporary, "sessiond-demo-*")))(t)
		if len(folder) != 1 {
			t.Fatal(folder)
		}
		var listed bytes.Buffer
		if code := run(t.Context(), []string{"ls"}, &env{
			in: strings.NewReader(""), out: &listed, err: &listed, now: time.Now, dir: home,
			environ: []string{"HOME=" + home, "SESSIOND_CONFIG=" + filepath.Join(folder[0], "config.yaml")},
		}); code != 0 || !strings.Contains(listed.String(), "Release 0.2") {
			t.Errorf("%d: %s", code, listed.String())
		}
	case code := <-ended:
		t.Fatalf("it ended with %d: %s", code, out.text.String())
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("it ends with %d: %s", code, out.text.String())
	}
	if left := testkit.Must(os.ReadDir(temporary))(t); len(left) > 0 {
		t.Error(left)
	}
}

// greeting tells the address that a daemon prints.
type greeting struct {
	text  bytes.Buffer
	ready chan string
}

func (g *greeting) Write(b []byte) (int, error) {
	n, err := g.text.Write(b)
	if _, rest, says := strings.Cut(g.text.String(), "http      "); says && g.ready != nil {
		if address, _, whole := strings.Cut(rest, "\n"); whole {
			g.ready <- address
			g.ready = nil
		}
	}
	return n, err
}

// The next demonstration removes the folders of those that were killed, and no other: not one that is served or that
// runs a command, and nothing behind a link.
func TestDemoRemovesThoseThatWereKilled(t *testing.T) {
	temporary := testkit.Must(os.MkdirTemp("", "demos"))(t) // the path of a socket is short
	t.Cleanup(func() { os.RemoveAll(temporary) })
	t.Setenv("TMPDIR", temporary)
	t.Setenv("TMP", temporary)
	now, folder := time.Now(), func(name string) string { return filepath.Join(temporary, "sessiond-demo-"+name) }
	listeners := map[string]*net.UnixListener{}
	for _, name := range []string{"killed", "served", "old", "runs"} {
		testkit.Check(t, os.Mkdir(folder(name), 0o700))
		testkit.Check(t, os.WriteFile(filepath.Join(folder(name), "sessions.db"), nil, 0o600))
		if name == "killed" || name == "served" {
			l := testkit.Must(net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(folder(name), "sock"), Net: "unix"}))(t)
			l.SetUnlinkOnClose(false)
			listeners[name] = l
		}
	}
	testkit.Check(t, listeners["killed"].Close())
	t.Cleanup(func() { listeners["served"].Close() })
	testkit.Check(t, os.Chtimes(folder("old"), now, now.Add(-2*time.Hour)))
	elsewhere := t.TempDir()
	testkit.Check(t, os.Symlink(elsewhere, folder("link")))
	testkit.Check(t, os.Chtimes(elsewhere, now, now.Add(-2*time.Hour)))

	removeDeadDemos(now)
	for name, stays := range map[string]bool{"killed": false, "old": false, "served": true, "runs": true, "link": true} {
		if _, err := os.Stat(folder(name)); (err == nil) != stays {
			t.Errorf("of %s: %v", name, err)
		}
	}
}
