package bench_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// Words that generated histories hold on purpose.
const (
	rareWord   = "zanthorp"  // in some 20 messages of a history, whatever its size
	knownWord  = "quellmark" // in almost 1 % of them
	commonWord = "deploy"    // in a fifth
)

// author writes text in which, as in talk, some words are in nearly every message and most are
// rare. The same seed gives the same text.
type author struct {
	rng   *rand.Rand
	words []string
	zipf  *rand.Zipf
}

func newAuthor(seed uint64) *author {
	const vocabulary = 20_000
	rng := rand.New(rand.NewPCG(seed, 7433))
	a := &author{rng: rng, words: make([]string, vocabulary), zipf: rand.NewZipf(rng, 1.07, 4, vocabulary-1)}
	consonants, vowels := "bcdfghklmnprstvw", "aeiou"
	for i := range a.words {
		for range 1 + rng.IntN(3) {
			a.words[i] += string(consonants[rng.IntN(len(consonants))]) + string(vowels[rng.IntN(len(vowels))])
		}
		a.words[i] += string(consonants[rng.IntN(len(consonants))])
	}
	return a
}

// sentence returns about n words.
func (a *author) sentence(n int) string {
	words := make([]string, n, n+1)
	for i := range words {
		words[i] = a.words[a.zipf.Uint64()]
	}
	switch p := a.rng.IntN(1000); {
	case p < 9:
		words = append(words, knownWord)
	case p < 209:
		words = append(words, commonWord)
	}
	return strings.Join(words, " ") + "."
}

// message returns the i-th message of a conversation: a question, a call, its result, an answer.
func (a *author) message(i, words int) session.Message {
	call := fmt.Sprintf("call_%d", i/4)
	switch i % 4 {
	case 0:
		return textMessage(session.User, session.Person, a.sentence(words))
	case 1:
		m := textMessage(session.Assistant, session.Model, a.sentence(words/4))
		m.Finish = session.FinishToolCalls
		path := fmt.Sprintf("internal/%s/%d.go", a.words[a.rng.IntN(20)], a.rng.IntN(20))
		m.Parts = append(m.Parts, session.Part{
			Kind: session.PartToolCall, ToolName: "read", CallID: call,
			Arguments: `{"path":"` + path + `"}`,
		})
		return m
	case 2:
		m := textMessage(session.Tool, session.ByTool, "")
		m.Parts = []session.Part{{Kind: session.PartToolResult, CallID: call, Text: a.sentence(2 * words)}}
		return m
	}
	m := textMessage(session.Assistant, session.Model, a.sentence(words))
	m.Finish = session.FinishStop
	return m
}

// messages returns the first n messages of a conversation.
func (a *author) messages(n, words int) []session.Message {
	msgs := make([]session.Message, n)
	for i := range msgs {
		msgs[i] = a.message(i, words)
	}
	return msgs
}

func textMessage(role session.Role, origin session.Origin, text string) session.Message {
	return session.Message{
		Kind: session.KindMessage, Role: role, Origin: origin, InContext: true, Display: true,
		Parts: []session.Part{session.TextPart(text)},
	}
}

// usualWords is the length of most messages.
const usualWords = 24

// object is a JSON object.
type object = map[string]any

// program writes transcripts as one of the imported programs does.
type program struct {
	source string
	file   func(session int) string
	header func(session int) object // nil: none
	line   func(session, i int, m *session.Message) object
}

func uuid(session int) string { return fmt.Sprintf("%08x-0000-4000-8000-000000000001", session) }

// stamp returns the time of the i-th line.
func stamp(i int) time.Time { return time.Date(2026, 1, 5, 9, 0, i, 0, time.UTC) }

const stampFormat = "2006-01-02T15:04:05.000Z"

func piProgram() program {
	return program{
		source: "pi",
		file:   func(n int) string { return "2026-01-05T09-00-00-000Z_" + uuid(n) + ".jsonl" },
		header: func(n int) object {
			return object{
				"type": "session", "version": 3, "id": uuid(n), "timestamp": stamp(0).Format(stampFormat),
				"cwd": "/home/me/project",
			}
		},
		line: func(n, i int, m *session.Message) object {
			var parent any
			if i > 0 {
				parent = fmt.Sprintf("%06x%06x", n, i-1)
			}
			return object{
				"type": "message", "id": fmt.Sprintf("%06x%06x", n, i), "parentId": parent,
				"timestamp": stamp(i).Format(stampFormat), "message": piMessage(m, stamp(i).UnixMilli()),
			}
		},
	}
}

func piMessage(m *session.Message, ms int64) object {
	text := object{"type": "text", "text": m.Parts[0].Text}
	switch m.Role {
	case session.Assistant:
		content, stop := []any{text}, "stop"
		for _, c := range m.Calls() {
			content, stop = append(content, object{
				"type": "toolCall", "id": c.CallID, "name": c.ToolName,
				"arguments": jsontext.Value(c.Arguments),
			}), "toolUse"
		}
		return object{
			"role": "assistant", "content": content, "api": "openai-completions", "provider": "openai", "model": "gpt-4o",
			"stopReason": stop, "timestamp": ms,
			"usage": object{
				"input": 1200, "output": 90, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 1290,
				"cost": object{"input": 0.003, "output": 0.0009, "cacheRead": 0, "cacheWrite": 0, "total": 0.0039},
			},
		}
	case session.Tool:
		return object{
			"role": "toolResult", "toolCallId": m.Parts[0].CallID, "toolName": "read", "content": []any{text},
			"isError": false, "timestamp": ms,
		}
	}
	return object{"role": "user", "content": []any{text}, "timestamp": ms}
}

func claudeProgram() program {
	return program{
		source: "claude-code",
		file:   func(n int) string { return uuid(n) + ".jsonl" },
		line: func(n, i int, m *session.Message) object {
			id := func(i int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", i, n) }
			line := object{
				"parentUuid": nil, "uuid": id(i), "isSidechain": false, "cwd": "/home/me/project", "sessionId": uuid(n),
				"version": "2.1.120",
				"type":    "user", "timestamp": stamp(i).Format(stampFormat),
				"message": object{"role": "user", "content": m.Parts[0].Text},
			}
			if i > 0 {
				line["parentUuid"] = id(i - 1)
			}
			if m.Role == session.Assistant {
				line["type"], line["message"] = "assistant", object{
					"id": "msg_" + id(i), "type": "message", "role": "assistant", "model": "claude-opus-4-6",
					"stop_reason": "end_turn",
					"content":     []any{object{"type": "text", "text": m.Parts[0].Text}},
					"usage":       object{"input_tokens": 1200, "output_tokens": 90},
				}
			}
			return line
		},
	}
}

func codexProgram() program {
	return program{
		source: "codex",
		file:   func(n int) string { return "rollout-2026-01-05T09-00-00-" + uuid(n) + ".jsonl" },
		header: func(n int) object {
			return object{"timestamp": stamp(0).Format(stampFormat), "type": "session_meta", "payload": object{
				"id": uuid(n), "timestamp": stamp(0).Format(stampFormat), "cwd": "/home/me/project", "cli_version": "0.106.0",
				"source": "cli", "model_provider": "openai",
			}}
		},
		line: func(_, i int, m *session.Message) object {
			role, kind := "user", "input_text"
			if m.Role == session.Assistant {
				role, kind = "assistant", "output_text"
			}
			return object{"timestamp": stamp(i).Format(stampFormat), "type": "response_item", "payload": object{
				"type": "message", "role": role, "content": []any{object{"type": kind, "text": m.Parts[0].Text}},
			}}
		},
	}
}

// writeTranscripts writes sessions into dir, each a file whose messages next returns until it returns false.
func (p program) writeTranscripts(dir string, sessions int, next func(i int) (session.Message, bool)) error {
	for n := range sessions {
		if err := p.writeTranscript(dir, n, next); err != nil {
			return err
		}
	}
	return nil
}

func (p program) writeTranscript(dir string, n int, next func(i int) (session.Message, bool)) (err error) {
	path := filepath.Join(dir, p.file(n))
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	// an old file: its session is complete
	defer func() { err = errors.Join(err, f.Close(), os.Chtimes(path, stamp(0), stamp(0))) }()
	out := bufio.NewWriter(f)
	enc := json.NewEncoder(out)
	if p.header != nil {
		if err := enc.Encode(p.header(n)); err != nil {
			return err
		}
	}
	for i := 0; ; i++ {
		m, more := next(i)
		if !more {
			return out.Flush()
		}
		if err := enc.Encode(p.line(n, i, &m)); err != nil {
			return err
		}
	}
}

// conversation returns n messages, one at a time.
func (a *author) conversation(n int) func(i int) (session.Message, bool) {
	return func(i int) (session.Message, bool) {
		if i >= n {
			return session.Message{}, false
		}
		return a.message(i, usualWords), true
	}
}

func folderSize(tb testing.TB, dir string) (bytes int64) {
	testkit.Check(tb, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	}))
	return bytes
}
