package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"sessiond/internal/session"
)

// imports measures `sessiond import pi` into an empty database, search index included, and
// what that takes of memory.
func (b *bench) imports(ctx context.Context) error {
	n := b.count(20_000)
	made := filepath.Join(b.work, "pi")
	if err := writeTranscripts(made, n); err != nil {
		return err
	}
	if err := b.importFrom(ctx, fmt.Sprintf("generated transcripts of pi, %d messages", n), made, n, true); err != nil {
		return err
	}
	samples := filepath.Join("..", "shared", "samples", "pi")
	if _, err := os.Stat(samples); err != nil {
		b.say("real transcripts of pi are left out: there are none in %s", samples)
		return nil
	}
	return b.importFrom(ctx, "real transcripts of pi", samples, 0, false)
}

// importFrom imports a folder; messages is what it holds, 0: as the import tells.
func (b *bench) importFrom(ctx context.Context, name, dir string, messages int, base bool) (err error) {
	bytesIn, err := weigh(dir)
	if err != nil {
		return err
	}
	var bare *floor
	if base {
		if bare, err = b.newFloor(ctx, "import", writerPragmas()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, bare.close()) }()
	}
	var took, floorTook, peak timing
	rounds := min(b.rounds, 3)
	if b.quick {
		rounds = 1
	}
	for round := range rounds {
		target := filepath.Join(b.work, fmt.Sprintf("import-%t-%d", base, round), "sessions.db")
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		cmd, err := b.command(ctx, target, "import", "pi", dir, "--json")
		if err != nil {
			return err
		}
		start := time.Now()
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("import: %w: %s", err, out)
		}
		elapsed := float64(time.Since(start))
		var told struct {
			Total struct{ Records struct{ Imported int } }
		}
		if err := json.Unmarshal(out, &told); err != nil {
			return err
		}
		if messages == 0 {
			messages = told.Total.Records.Imported
		}
		took.wall = append(took.wall, elapsed/float64(messages))
		if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			peak.wall = append(peak.wall, float64(u.Maxrss)*1024)
		}
		if base {
			one, err := race(ctx, 1, messages/2, bare.appends("bare", 1000))
			if err != nil {
				return err
			}
			floorTook.wall = append(floorTook.wall, one[0].wall...)
		}
	}
	r := row{name: fmt.Sprintf("import %s (%.1f MB: %.2f MB/s)", name, bytesIn/1e6, bytesIn/1e6/(took.wall.median()*float64(messages)/1e9)), product: took, unit: rate}
	if base {
		r.baseline, r.against = floorTook, "message+part+session on the driver, 1000 to a transaction"
	}
	b.add(r)
	b.add(row{name: "… its peak of resident memory", product: peak, unit: size})
	return nil
}

func weigh(dir string) (float64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return float64(sum), err
}

// writeTranscripts writes sessions of pi, version 3, of a thousand messages each.
func writeTranscripts(dir string, messages int) error {
	const each = 1000
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	a := newAuthor(4)
	at := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	for file := 0; messages > 0; file++ {
		n := min(each, messages)
		messages -= n
		name := fmt.Sprintf("%s_%08x-0000-4000-8000-000000000000.jsonl", at.Format("2006-01-02T15-04-05-000Z"), file)
		if err := writeTranscript(filepath.Join(dir, name), a, file, n, &at); err != nil {
			return err
		}
	}
	return nil
}

type object = map[string]any

func writeTranscript(path string, a *author, file, n int, at *time.Time) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	enc := json.NewEncoder(out)
	stamp := func() string {
		*at = at.Add(7 * time.Second)
		return at.Format("2006-01-02T15:04:05.000Z")
	}
	if err := enc.Encode(object{"type": "session", "version": 3, "id": fmt.Sprintf("%08x-0000-4000-8000-000000000000", file), "timestamp": stamp(), "cwd": "/home/me/project"}); err != nil {
		return err
	}
	var parent any
	for i := range n {
		id := fmt.Sprintf("%04x%04x", file, i)
		m := a.message(i, usualWords)
		if err := enc.Encode(object{"type": "message", "id": id, "parentId": parent, "timestamp": stamp(), "message": piMessage(&m, at.UnixMilli())}); err != nil {
			return err
		}
		parent = id
	}
	return out.Flush()
}

// piMessage writes a message as pi does.
func piMessage(m *session.Message, ms int64) object {
	text := object{"type": "text", "text": m.Parts[0].Text}
	switch m.Role {
	case session.Assistant:
		content := []any{text}
		for _, c := range m.Calls() {
			content = append(content, object{"type": "toolCall", "id": c.CallID, "name": c.ToolName, "arguments": json.RawMessage(c.Arguments)})
		}
		stop := "stop"
		if m.Finish == session.FinishToolCalls {
			stop = "toolUse"
		}
		return object{
			"role": "assistant", "content": content, "api": "openai-completions", "provider": "openai", "model": "gpt-4o", "stopReason": stop, "timestamp": ms,
			"usage": object{"input": 1200, "output": 90, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 1290, "cost": object{"input": 0.003, "output": 0.0009, "cacheRead": 0, "cacheWrite": 0, "total": 0.0039}},
		}
	case session.Tool:
		return object{"role": "toolResult", "toolCallId": m.Parts[0].CallID, "toolName": "read", "content": []any{text}, "isError": false, "timestamp": ms}
	}
	return object{"role": "user", "content": []any{text}, "timestamp": ms}
}
