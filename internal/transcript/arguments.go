package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

const shortValue = 40 // columns

// telling lists the argument names that say what a call is about, the most telling first.
var telling = []string{
	"command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url", "script", "prompt",
	"CommandLine", "AbsolutePath", "TargetFile", "DirectoryPath", // Antigravity
}

// ShortArguments returns a call's arguments on one line of at most width columns: the subject without
// its name, then name=value in their order.
func ShortArguments(arguments string, width int) string {
	fields, ok := topFields(arguments)
	if !ok {
		return OneLine(arguments, width)
	}
	if len(fields) == 1 {
		return shortValueText(fields[0].value, width)
	}
	var parts []string
	if i := subjectIndex(fields); i >= 0 {
		parts = append(parts, shortValueText(fields[i].value, max(shortValue, width*2/3)))
		fields = slices.Delete(fields, i, i+1)
	}
	for _, f := range fields {
		parts = append(parts, f.name+"="+shortValueText(f.value, shortValue))
	}
	return OneLine(strings.Join(parts, " "), width)
}

// LongArguments returns a call's arguments whole: a field on each line, with strings as their text.
func LongArguments(arguments string) string {
	fields, ok := topFields(arguments)
	if !ok {
		return arguments
	}
	lines := make([]string, len(fields))
	for i, f := range fields {
		lines[i] = f.name + ": " + f.value
	}
	return strings.Join(lines, "\n")
}

// subjectIndex returns the index of the field that says what a call is about; -1: none.
func subjectIndex(fields []namedValue) int {
	for _, name := range telling {
		if i := slices.IndexFunc(fields, func(f namedValue) bool { return f.name == name && f.value != "" }); i >= 0 {
			return i
		}
	}
	return -1
}

// shortValueText is OneLine, but shows the end of a path that does not fit, and counts a long list.
func shortValueText(value string, width int) string {
	var list []jsontext.Value
	if len(value) > width && strings.HasPrefix(value, "[") && json.Unmarshal([]byte(value), &list) == nil {
		return Counted(len(list), "item")
	}
	line := OneLine(value, 1000)
	if Width(line) <= width || !strings.HasPrefix(line, "/") || strings.Contains(line, " ") {
		return Truncate(line, width)
	}
	for i := 1; i < len(line); i++ {
		if line[i] == '/' && Width(line[i:]) < width {
			return "…" + line[i:]
		}
	}
	return Truncate(line, width)
}

type namedValue struct{ name, value string }

// topFields returns the fields of a JSON object in order: strings as their text, other values as
// compact JSON.
func topFields(object string) ([]namedValue, bool) {
	dec := json.NewDecoder(strings.NewReader(object))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}
	var fields []namedValue
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, false
		}
		var raw jsontext.Value
		if err := dec.Decode(&raw); err != nil {
			return nil, false
		}
		var s string
		if json.Unmarshal(raw, &s) != nil || string(raw) == "null" {
			var b bytes.Buffer
			if err := json.Compact(&b, raw); err != nil {
				return nil, false
			}
			s = b.String()
		}
		fields = append(fields, namedValue{name.(string), s})
	}
	_, err := dec.Token()
	return fields, err == nil
}

// outcome describes a tool's result: "→ 1.2 kB", "→ error: not found", "→ …".
func (t *ToolUse) outcome(width int) string {
	switch {
	case t.Far:
		return "→ not answered soon: a result stands below, where it came"
	case !t.Answered():
		return "→ no result"
	case t.IsError:
		if line := OneLine(t.Result, max(0, width)); line != "" {
			return "→ error: " + line
		}
		return "→ error"
	case t.Result == "":
		return "→ done"
	case len(t.Result) <= 60 && !strings.Contains(strings.TrimSpace(t.Result), "\n"):
		if line := OneLine(t.Result, 60); Width(line) <= width {
			return "→ " + line
		}
	}
	return "→ " + Size(int64(len(t.Result)))
}

// String returns an attachment in brackets: [image image/png 12 kB].
func (a *Attachment) String() string {
	words := []string{string(a.Kind)}
	if a.MediaType != "" && a.MediaType != session.TextBlob {
		words = append(words, OneLine(a.MediaType, shortValue))
	}
	if a.Name != "" {
		words = append(words, OneLine(a.Name, 2*shortValue))
	}
	if a.Size > 0 {
		words = append(words, Size(a.Size))
	}
	return "[" + strings.Join(words, " ") + "]"
}

// compactionLine describes a compaction: sessiond compacted 120 messages · 45,210 → 3,900 tokens · cmp_3 · 10:04. The
// session's own program made those that were imported: they name nobody.
func compactionLine(c *session.Compaction, clock *clock) string {
	verb := map[session.Strategy]string{
		session.StrategySummarize: "compacted", session.StrategyPrune: "pruned", session.StrategyTruncate: "hid",
		session.StrategyClear: "cleared",
	}[c.Strategy]
	if verb == "" {
		verb = "compacted"
	}
	parts := []string{verb + " " + Counted(c.MessageCount, "message")}
	if c.MessageCount == 0 {
		parts[0] = verb
	}
	switch {
	case c.TokensBefore > 0 && c.TokensAfter > 0:
		parts = append(parts, Count(c.TokensBefore)+" → "+Count(c.TokensAfter)+" tokens")
	case c.TokensBefore > 0:
		parts = append(parts, "from "+Count(c.TokensBefore)+" tokens")
	}
	parts = append(parts, c.ID)
	if c.Undone {
		parts = append(parts, "undone")
	}
	if c.Trigger != session.TriggerImport {
		at := c.CreatedAt
		if c.ActivatedAt != nil {
			at = *c.ActivatedAt
		}
		parts[0] = "sessiond " + parts[0]
		parts = append(parts, clock.format(at))
	}
	return strings.Join(parts, " · ")
}

// branchLine says which message an item continues: continues 20260211_001.12.
func branchLine(b *Branch) string {
	from := b.From.String()
	switch {
	case b.Fork != "" && from != "":
		return string(b.Fork) + " begins here, forked from " + from
	case b.Fork != "":
		return string(b.Fork) + " begins here"
	case from == "":
		return "a new beginning"
	}
	return "another branch, from #" + strconv.FormatInt(b.From.Seq, 10)
}
