package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sessiond/internal/session"
)

// weigh gives the bytes of the transcripts in a folder.
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
	return writeSessions(dir, messages, 1000)
}

// writeSessions writes sessions of so many messages each.
func writeSessions(dir string, messages, each int) error {
	return writeMore(dir, 0, messages, each)
}

// writeMore writes sessions that differ from those of another batch.
func writeMore(dir string, batch, messages, each int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	a := newAuthor(4)
	at := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	for file := batch << 16; messages > 0; file++ {
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
		id := fmt.Sprintf("%06x%06x", file, i)
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
