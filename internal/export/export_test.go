package export_test

import (
	"bytes"
	"encoding/json"
	"html"
	"io"
	"strings"
	"testing"

	"sessiond/internal/export"
	"sessiond/internal/jsonx"
	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/historytest"
	"sessiond/internal/transcript"
)

// hostileUnit has all that a form must escape: quotes, HTML, fences, sequences of terminals,
// marks that turn the direction of text, characters of two to four bytes.
const hostileUnit = "\"quoted\" \\ <b onclick=x>&amp; " +
	"````` \x1b[31mred\x1b]0;title\a \u202e evil \u2028 价格 \U0001f600 end\n"

// longTalk stores a session of long texts.
func longTalk(t *testing.T, s *store.Store) (id session.ID, said, result string) {
	t.Helper()
	const border, secret = 1 << 20, "DB_PASSWORD=hunter2x9\n"
	lines := strings.Repeat(hostileUnit, 3*border/len(hostileUnit))
	said = strings.Repeat("x\n", (border-len(secret)/2)/2) + secret + lines
	result = strings.Repeat("<i>`````` no line end in this one \x1b[3", 2*border/36)
	made := testkit.Must(s.CreateSession(t.Context(), store.NewSession{Title: "long"}))(t)
	testkit.Must(s.Append(t.Context(), store.Append{Session: made.ID, Messages: []session.Message{
		{Role: session.User, Display: true, InContext: true, Parts: []session.Part{session.TextPart(said)}},
		{Role: session.Assistant, Display: true, InContext: true, Parts: []session.Part{
			{Kind: session.PartReasoning, Text: said},
			session.TextPart("I read."),
			{Kind: session.PartToolCall, CallID: "c1", ToolName: "read", Arguments: `{"path":"/x"}`},
		}},
		{
			Role: session.Tool, Display: true, InContext: true,
			Parts: []session.Part{{Kind: session.PartToolResult, CallID: "c1", Text: result}},
		},
		{Role: session.Assistant, Display: true, InContext: true, Parts: []session.Part{session.TextPart(said)}},
	}}))(t)
	return made.ID, said, result
}

func TestLongTextsAreExportedWhole(t *testing.T) {
	s := open(t)
	id, said, result := longTalk(t, s)
	for _, masked := range []bool{false, true} {
		wantSaid, secrets := said, 0
		if masked {
			wantSaid, secrets = redact.Mask(said)
		}
		shown := strings.Trim(transcript.Clean(result), "\n")
		for format, holds := range map[export.Format][]string{
			export.Markdown: {"\n```````\n" + shown + "\n```````\n"},
			export.HTML:     {"<pre>" + html.EscapeString(shown) + "</pre>"},
			export.JSONL:    {string(session.JSONOf(wantSaid)), string(session.JSONOf(result))},
			export.OpenAI:   {string(session.JSONOf(result))},
			export.Pi:       {string(jsonx.Quote(wantSaid)), string(jsonx.Quote(result))},
			export.Goose:    {string(jsonx.Quote(wantSaid)), string(jsonx.Quote(result))},
			export.Codex:    {string(jsonx.Quote(wantSaid)), string(jsonx.Quote(result))},
			export.Opencode: {string(jsonx.Quote(wantSaid)), string(jsonx.Quote(result))},

			export.ClaudeCode: {string(jsonx.Quote(wantSaid)), string(jsonx.Quote(result))},
		} {
			var opt export.Options
			if masked {
				opt.Mask = &redact.Masker{}
			}
			var out bytes.Buffer
			testkit.Must(export.Write(t.Context(), &out, s, format, []session.ID{id}, opt))(t)
			for i, want := range holds {
				if !bytes.Contains(out.Bytes(), []byte(want)) {
					t.Errorf("%s, masked %v: text %d is not there as it should be", format, masked, i)
				}
			}
			told := 2 // without reasoning
			switch format {
			case export.Markdown, export.HTML:
				told = 3
			case export.Codex:
				told = 4 // for the model, and to show it
			case export.JSONL:
				told = 1 // a blob is written once
			}
			if got, want := strings.Count(out.String(), "价格"), told*strings.Count(said, "价格"); got != want {
				t.Errorf("%s, masked %v: %d lines of what was said, not %d", format, masked, got, want)
			}
			if masked && (opt.Mask.Masked < secrets || bytes.Contains(out.Bytes(), []byte("hunter2x9"))) {
				t.Errorf("%s: %d masked, or not all", format, opt.Mask.Masked)
			}
			if format != export.JSONL && format != export.OpenAI && bytes.ContainsAny(out.Bytes(), "\x1b\a") {
				t.Errorf("%s holds what acts on a terminal", format)
			}
			switch format {
			case export.Pi:
				if _, err := historytest.CheckPi(out.Bytes()); err != nil {
					t.Error(err)
				}
			case export.Goose, export.OpenAI, export.Opencode:
				if !json.Valid(out.Bytes()) {
					t.Errorf("%s is not JSON", format)
				}
			}
		}
	}
}

// purging purges a session when it is written to for the first time.
type purging struct {
	t  *testing.T
	s  *store.Store
	id session.ID
	n  int
}

func (p *purging) Write(b []byte) (int, error) {
	if p.n++; p.n > 1 {
		return len(b), nil
	}
	going, _, err := p.s.BeginPurge(p.t.Context(), store.PurgeRequest{Session: p.id})
	testkit.Check(p.t, err)
	for {
		rows, err := going.Doomed(p.t.Context())
		if err == nil && len(rows) > 0 {
			err = going.Delete(p.t.Context(), rows)
		}
		testkit.Check(p.t, err)
		if len(rows) == 0 {
			return len(b), nil
		}
	}
}

// What was written of a session that was purged meanwhile is not taken for all of it.
func TestAPurgeEndsAnExport(t *testing.T) {
	for _, format := range export.Names() {
		t.Run(format, func(t *testing.T) {
			s := open(t)
			made := testkit.Must(s.CreateSession(t.Context(), store.NewSession{Title: "gone soon"}))(t)
			var msgs []session.Message
			for range 1000 {
				msgs = append(msgs, session.Message{
					Role: session.User, Display: true, InContext: true,
					Parts: []session.Part{session.TextPart(strings.Repeat("word ", 200))},
				})
			}
			testkit.Must(s.Append(t.Context(), store.Append{Session: made.ID, Messages: msgs}))(t)
			if report, err := export.Write(t.Context(), io.Discard, s, export.Format(format), []session.ID{made.ID},
				export.Options{}); err != nil || report.Messages != len(msgs) {
				t.Fatalf("before, %d messages, %v", report.Messages, err)
			}
			report, err := export.Write(t.Context(), &purging{t: t, s: s, id: made.ID}, s, export.Format(format),
				[]session.ID{made.ID}, export.Options{})
			if session.CodeOf(err) != session.Busy {
				t.Errorf("%d messages are all of it, it says: %v", report.Messages, err)
			}
		})
	}
}
