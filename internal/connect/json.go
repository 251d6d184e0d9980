package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonServer is an MCP server in JSON, with or without comments.
type jsonServer struct {
	path  []string // to the server, by name
	entry func(binary string) any
}

func (f jsonServer) place() string { return strings.Join(f.path, ".") }

func (f jsonServer) find(old []byte) (Wanted, bool, error) {
	root, err := parseJSON(old)
	if err == nil {
		err = namedOnce(old, root, f.path...)
	}
	if err != nil {
		return Wanted{}, false, err
	}
	server := lookup(root, f.path...)
	if server == nil {
		return Wanted{}, false, nil
	}
	w := Wanted{}
	if command := commandOf(server); command != nil {
		w.Binary = command.Value.(hujson.Literal).String()
	}
	return w, true, nil
}

// commandOf returns the string with the server's program: `command`, or its first element.
func commandOf(server *hujson.Value) *hujson.Value {
	command := lookup(server, "command")
	if command != nil && command.Value.Kind() == '[' {
		command = command.Find("/0")
	}
	if command == nil || command.Value.Kind() != '"' {
		return nil
	}
	return command
}

func (f jsonServer) add(old []byte, w Wanted) ([]byte, error) {
	root, err := parseJSON(old)
	if err != nil {
		return nil, err
	}
	server := lookup(root, f.path...)
	if server == nil {
		return put(old, f.path, f.entry(w.Binary))
	}
	command := commandOf(server)
	switch {
	case command == nil:
		return nil, fmt.Errorf("line %d: %s has no command; delete that entry and connect again",
			lineOf(old, server.StartOffset), f.place())
	case command.Value.(hujson.Literal).String() == w.Binary:
		return old, nil
	}
	// the rest of the entry may be the user's
	return splice(old, command.StartOffset, command.EndOffset, quoteJSON(w.Binary)), nil
}

func (f jsonServer) cut(old []byte) ([]byte, error) { return cutMember(old, f.path) }

// parseJSON parses JSON with comments and trailing commas. An empty text is an empty object.
func parseJSON(text []byte) (*hujson.Value, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}")
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "hujson: ")) // has line and column
	}
	if root.Value.Kind() != '{' {
		return nil, errors.New("line 1, column 1: the text is not an object")
	}
	return &root, nil
}

// notA is the error for a value of another kind than expected. It names the line.
func notA(kind string, text []byte, v *hujson.Value, path ...string) error {
	return fmt.Errorf("line %d: %s is not %s", lineOf(text, v.StartOffset), strings.Join(path, "."), kind)
}

// namedOnce returns an error if a name of a path is repeated in its object: programs read the last of them.
func namedOnce(text []byte, root *hujson.Value, path ...string) error {
	in := root
	for i, name := range path {
		object, _ := in.Value.(*hujson.Object)
		if object == nil {
			return nil
		}
		in = nil
		for m := range object.Members {
			member := &object.Members[m]
			if member.Name.Value.(hujson.Literal).String() != name {
				continue
			}
			if in != nil {
				return fmt.Errorf("line %d: %s stands twice; delete one of them and connect again",
					lineOf(text, member.Name.StartOffset), strings.Join(path[:i+1], "."))
			}
			in = &member.Value
		}
		if in == nil {
			return nil
		}
	}
	return nil
}

// lineOf returns the line of a place, counted from 1.
func lineOf(text []byte, at int) int { return 1 + bytes.Count(text[:at], []byte("\n")) }

// lookup follows the names of a path through nested objects; nil if one is missing.
func lookup(v *hujson.Value, path ...string) *hujson.Value {
	return v.Find("/" + strings.Join(path, "/")) // no name of ours has a / or ~
}

// put adds a member and the objects around it that are missing.
func put(text []byte, path []string, value any) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	root, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	in, depth := root, 0
	for ; depth < len(path)-1; depth++ {
		next := lookup(root, path[:depth+1]...)
		if next == nil {
			break
		}
		if next.Value.Kind() != '{' {
			return nil, notA("an object", text, next, path[:depth+1]...)
		}
		in = next
	}
	for i := len(path) - 1; i > depth; i-- {
		value = map[string]any{path[i]: value}
	}
	return appendItem(text, root, in, quoteJSON(path[depth])+": ", value), nil
}

// items are the members of an object or the elements of an array, as places in the text.
type items struct {
	open, end int      // of the braces
	spans     [][2]int // without the space and comments around them
	commas    []int    // after each item; -1: none
}

func itemsOf(v *hujson.Value) items {
	c := items{open: v.StartOffset, end: v.EndOffset - 1}
	add := func(start int, last hujson.Value, more bool) {
		comma := -1
		if more || last.AfterExtra != nil {
			comma = last.EndOffset + len(last.AfterExtra)
		}
		c.spans, c.commas = append(c.spans, [2]int{start, last.EndOffset}), append(c.commas, comma)
	}
	switch in := v.Value.(type) {
	case *hujson.Object:
		for i, m := range in.Members {
			add(m.Name.StartOffset, m.Value, i < len(in.Members)-1)
		}
	case *hujson.Array:
		for i, e := range in.Elements {
			add(e.StartOffset, e, i < len(in.Elements)-1)
		}
	}
	return c
}

// appendItem adds the last item of an object (with its name) or an array, indented as the items around it.
func appendItem(text []byte, root, in *hujson.Value, name string, value any) []byte {
	unit := "  "
	if first := itemsOf(root).spans; len(first) > 0 && startsLine(text, first[0][0]) {
		unit = indentAt(text, first[0][0])
	}
	c, outer := itemsOf(in), indentAt(text, in.StartOffset)
	indent := outer + unit
	n := len(c.spans)
	if n > 0 && startsLine(text, c.spans[n-1][0]) {
		indent = indentAt(text, c.spans[n-1][0])
	}
	item := "\n" + indent + name + encode(value, indent, unit)
	from := c.open + 1 // the text after the last item and its comma
	if n > 0 {
		from = c.spans[n-1][1]
		if c.commas[n-1] >= 0 {
			from, item = c.commas[n-1]+1, item+","
		}
	}
	behind := text[from:c.end]
	if !bytes.Contains(behind, []byte("\n")) {
		item += "\n" + outer
	}
	at := from + len(bytes.TrimRight(behind, " \t\r\n"))
	out := splice(text, at, at, item)
	if n > 0 && c.commas[n-1] < 0 {
		out = splice(out, from, from, ",")
	}
	return out
}

// cutItem removes an item with its comma and the space before it. Comments around it stay.
func cutItem(text []byte, in *hujson.Value, i int) []byte {
	c := itemsOf(in)
	start, end := c.spans[i][0], c.spans[i][1]
	start = len(bytes.TrimRight(text[:start], " \t\r\n"))
	if c.commas[i] >= 0 {
		end = c.commas[i] + 1
	}
	if len(c.spans) == 1 && len(bytes.TrimSpace(text[c.open+1:start])) == 0 && len(bytes.TrimSpace(text[end:c.end])) == 0 {
		start, end = c.open+1, c.end
	}
	out := splice(text, start, end, "")
	if i > 0 && c.commas[i] < 0 {
		out = splice(out, c.commas[i-1], c.commas[i-1]+1, "")
	}
	return out
}

// cutMember removes a member, and the objects around it that are empty then.
func cutMember(text []byte, path []string) ([]byte, error) {
	for ; len(path) > 0; path = path[:len(path)-1] {
		root, err := parseJSON(text)
		if err != nil {
			return nil, err
		}
		in := lookup(root, path[:len(path)-1]...)
		if len(path) == 1 {
			in = root
		}
		if in == nil || lookup(root, path...) == nil {
			return text, nil
		}
		members := in.Value.(*hujson.Object).Members
		for i := range members {
			if members[i].Name.Value.(hujson.Literal).String() == path[len(path)-1] {
				text = cutItem(text, in, i)
				break
			}
		}
		if len(members) > 1 {
			break
		}
	}
	return text, nil
}

func splice(text []byte, from, to int, with string) []byte {
	return append(append(bytes.Clone(text[:from]), with...), text[to:]...)
}

// indentAt returns the space at the beginning of the line of a place.
func indentAt(text []byte, at int) string {
	line := text[bytes.LastIndexByte(text[:at], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// startsLine reports whether its line has only space before a place.
func startsLine(text []byte, at int) bool {
	line := bytes.LastIndexByte(text[:at], '\n') + 1
	return line > 0 && len(bytes.TrimSpace(text[line:at])) == 0
}

func quoteJSON(s string) string { return encode(s, "", "") }

// encode returns the JSON of a value of this package, which cannot fail.
func encode(value any, prefix, indent string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if indent != "" || prefix != "" {
		enc.SetIndent(prefix, indent)
	}
	_ = enc.Encode(value)
	return strings.TrimSuffix(b.String(), "\n")
}
