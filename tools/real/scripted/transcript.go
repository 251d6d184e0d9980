package scripted

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// Lengths of a transcript's texts in bytes: of sessiond's own, and of others, of which it shows the beginning.
const (
	longestOwn   = 1500
	longestOther = 110
)

// Transcript returns what a request has for its model, in a line for each text, and the answer: the number of tools and
// the names of sessiond's, the texts that sessiond added whole, and the beginnings of the others.
func Transcript(x *Exchange) string {
	var fields map[string]any
	f := formOf(x.Path)
	if f == nil || json.Unmarshal([]byte(x.Body), &fields) != nil {
		return ""
	}
	q := f.decode(fields, x.Path)
	var names []string
	for i := range q.tools {
		if name := q.tools[i].fullName(); strings.Contains(name, "sessiond") {
			names = append(names, name)
		}
	}
	out := fmt.Sprintf("tools: %d", len(q.tools))
	if slices.Sort(names); names != nil {
		out += ", among them " + strings.Join(names, ", ")
	}
	out += "\n" + shown("system", q.system)
	for _, t := range q.turns {
		for _, text := range t.texts {
			out += shown(t.role, text)
		}
		for _, call := range t.calls {
			out += t.role + ": calls " + call + "\n"
		}
	}
	for _, c := range x.Calls {
		out += fmt.Sprintf("answer: calls %s %s\n", c.Name, jsonOf(c.Arguments))
	}
	if x.Text != "" {
		out += shown("answer", x.Text)
	}
	return out
}

// shown returns the lines of a text: the beginning of what others say, and each text of sessiond.
func shown(role, text string) (lines string) {
	for text = strings.TrimSpace(text); text != ""; {
		before, rest, has := strings.Cut(text, "<from_sessiond>")
		if before = strings.Join(strings.Fields(before), " "); before != "" {
			lines += role + ": " + cut(before, longestOther) + "\n"
		}
		own, behind, _ := strings.Cut(rest, "</from_sessiond>")
		if has {
			lines += role + ": <from_sessiond>" + strings.TrimRight(cut(own, longestOwn), "\n") + "\n</from_sessiond>\n"
		}
		text = strings.TrimSpace(behind)
	}
	return lines
}

func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
