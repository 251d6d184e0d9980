package bench_test

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkHTTP appends to a daemon in a process of its own, over kept-alive connections. The
// baselines are the bare statements: on the driver, and as text piped into the sqlite3 shell.
func BenchmarkHTTP(b *testing.B) {
	d := serve(b, binary(b), filepath.Join(b.TempDir(), "sessions.db"))
	text := newAuthor(3).sentence(60)
	clients, appends := make([]*client, writers), make([][]byte, writers)
	for i := range clients {
		clients[i] = d.dial(b)
		appends[i] = clients[i].newSession(b, text)
	}
	bare := openFloor(b, text)
	appendOne := func(name string) *side {
		return &side{name: name, op: clients[0].sends(appends[0]), cpu: d.cpu}
	}

	b.Run("append, 1 client", func(b *testing.B) {
		sides := []*side{appendOne(""), {name: "bare", op: bare.transaction(1)}}
		if _, err := exec.LookPath("sqlite3"); err == nil {
			sides = append(sides, openFloor(b, text).shell())
		}
		compare(b, 20, sides...)
	})
	b.Run("append, 16 clients", func(b *testing.B) {
		const each = 25
		many := func() error {
			return atOnce(writers, func(i int) error { return repeat(each, clients[i].sends(appends[i]))() })
		}
		wall, _ := compare(b, 1, &side{op: many, per: writers * each, cpu: d.cpu},
			&side{name: "bare", op: repeat(each, bare.transaction(writers)), per: writers * each})
		b.ReportMetric(1/wall, "messages/s")
	})
	for name, body := range map[string]object{
		"route to the session of a key":     {"channel": "telegram", "chat_type": "group", "peer": "-100123", "text": text, "sender": "7"},
		"route with a reset, a new session": {"key": "main", "text": "/new and now something else"},
	} {
		b.Run(name, func(b *testing.B) {
			compare(b, 20, &side{op: clients[0].sends(request(b, "POST", "/v1/route", body)), cpu: d.cpu}, appendOne("append"))
		})
	}
}

// shell appends in the sqlite3 shell, in C. Our own connection stays open, so that the shell's end is
// no checkpoint.
func (f *floor) shell() *side {
	const n = 50
	return &side{name: "C", per: n, cpu: childrenCPU, op: func() error {
		cmd := exec.Command("sqlite3", "-batch", "-bail", f.path)
		cmd.Stdin = strings.NewReader(f.script(n))
		out, err := cmd.CombinedOutput()
		if err == nil && bytes.Contains(out, []byte("rror")) {
			err = errors.New(string(out))
		}
		return err
	}}
}
