package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
)

// appendOverHTTP measures appends to a daemon in a process of its own, on a Unix socket with
// kept-alive connections.
func (b *bench) appendOverHTTP(ctx context.Context) (err error) {
	d, err := b.serve(ctx, filepath.Join(b.work, "http", "sessions.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	lines, err := d.lines(writers)
	if err != nil {
		return err
	}
	appends := make([][]byte, writers)
	for i := range appends {
		id, err := newSession(lines[0])
		if err != nil {
			return err
		}
		body, err := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": b.text}}})
		if err != nil {
			return err
		}
		appends[i] = request("POST", "/v1/sessions/"+id+"/messages", string(body))
	}
	health := request("GET", "/healthz", "")
	bare, err := b.newFloor(ctx, "http", writerPragmas())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.close()) }()

	one := variant{name: "1 client", used: d.processorTime, run: func(_ context.Context, n int) error {
		return each(n, func(int) error { return lines[0].send(appends[0], nil) })
	}}
	ping := variant{name: "GET /healthz", used: d.processorTime, run: func(_ context.Context, n int) error {
		return each(n, func(int) error { return lines[0].send(health, nil) })
	}}
	variants := []variant{one, bare.appends("bare", 1), ping}
	if _, err := exec.LookPath("sqlite3"); err == nil {
		shell, err := b.newFloor(ctx, "shell", writerPragmas())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, shell.close()) }()
		variants = append(variants, shell.inShell("sqlite3"))
	}
	times, err := race(ctx, b.rounds, b.count(200), variants...)
	if err != nil {
		return err
	}
	if len(times) > 3 {
		times[3].cpu = nil // the shell's is not told
	}
	b.add(row{name: "append over HTTP, 1 client", product: times[0], baseline: times[1], against: bareSource})
	if len(times) > 3 {
		b.add(row{name: "append over HTTP, 1 client", product: times[0], baseline: times[3], against: "the same in C: text piped into the sqlite3 shell", aims: []aim{{ratio: 3}}})
	}
	b.add(row{name: "a request that does nothing (GET /healthz)", product: times[2]})

	return b.manyClients(ctx, d, lines, appends, bare)
}

// manyClients measures appends of clients at once, each to its own session.
func (b *bench) manyClients(ctx context.Context, d *daemon, lines []*line, appends [][]byte, bare *floor) error {
	health := request("GET", "/healthz", "")
	many := variant{name: "16 clients", used: d.processorTime, run: func(_ context.Context, n int) error {
		return atOnce(writers, func(w int) error {
			return each(n/writers, func(int) error { return lines[w].send(appends[w], nil) })
		})
	}}
	pings := variant{name: "GET /healthz, 16 clients", used: d.processorTime, run: func(_ context.Context, n int) error {
		return atOnce(writers, func(w int) error {
			return each(n/writers, func(int) error { return lines[w].send(health, nil) })
		})
	}}
	times, err := race(ctx, b.rounds, writers*b.count(200), many, bare.appends("bare", writers), pings)
	if err != nil {
		return err
	}
	b.add(row{
		name: "append over HTTP, 16 clients", product: times[0], baseline: times[1], unit: rate,
		against: "message+part+session on the driver, 16 to a transaction", aims: []aim{{atLeast: 7000}},
	})
	b.add(row{name: "requests that do nothing, 16 clients", product: times[2], unit: rate})
	return nil
}

// inShell is the variant that appends n messages in the sqlite3 shell, in C. Another
// connection stays open, so that the shell's end is no checkpoint.
func (f *floor) inShell(program string) variant {
	return variant{name: program, run: func(ctx context.Context, n int) error {
		cmd := exec.CommandContext(ctx, program, "-batch", "-bail", f.path)
		cmd.Stdin = strings.NewReader(f.script(n))
		out, err := cmd.CombinedOutput()
		if err == nil && bytes.Contains(out, []byte("rror")) {
			err = errors.New(string(out))
		}
		return err
	}}
}

// newSession makes a session and gives its id.
func newSession(l *line) (string, error) {
	var answer bytes.Buffer
	if err := l.send(request("POST", "/v1/sessions", `{"title":"A title","model":"gpt-4o"}`), &answer); err != nil {
		return "", err
	}
	var made struct{ ID string }
	err := json.Unmarshal(answer.Bytes(), &made)
	return made.ID, err
}
