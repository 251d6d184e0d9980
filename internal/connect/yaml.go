package connect

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlMap is an MCP server in a mapping of YAML, as its first member.
type yamlMap struct {
	key     string // of the mapping
	command string // name of the member of a server that is its program
	lines   func(binary string) []string
}

// gooseExtension is an extension of Goose.
var gooseExtension = yamlMap{"extensions", "cmd", func(binary string) []string {
	return []string{
		"enabled: true", "type: stdio", "name: " + serverName,
		"description: Search and read earlier sessions of every agent on this host", "cmd: " + binary, "args:", "  - mcp",
		"timeout: 300",
	}
}}

// hermesServer is a server of Hermes.
var hermesServer = yamlMap{"mcp_servers", "command", func(binary string) []string {
	return []string{"command: " + binary, "args: [mcp]"}
}}

func (f yamlMap) place() string { return f.key }

func (f yamlMap) find(old []byte) (Wanted, bool, error) {
	all, err := parseYAML(old)
	extensions, _ := all[f.key].(map[string]any)
	extension, found := extensions[serverName].(map[string]any)
	binary, _ := extension[f.command].(string)
	return Wanted{Binary: binary}, found, err
}

func (f yamlMap) add(old []byte, w Wanted) ([]byte, error) {
	have, found, err := f.find(old)
	if err != nil || found && have.Binary == w.Binary {
		return old, err
	}
	if found {
		return f.move(old, w)
	}
	entry := func(indent string) string {
		return indent + serverName + ":\n" + indent + "  " +
			strings.Join(f.lines(quoteTOML(w.Binary)), "\n"+indent+"  ") + "\n"
	}
	out, err := f.insert(old, entry)
	if err != nil {
		return nil, err
	}
	if !sameElse(f, parseYAML, f.key, old, out, true) {
		return nil, fmt.Errorf("%s has a form that cannot be edited in place; add sessiond by hand:\n%s", f.key,
			entry("  "))
	}
	return out, nil
}

// move changes the path of the server's binary. It keeps the rest of the entry, which the user may have edited.
func (f yamlMap) move(old []byte, w Wanted) ([]byte, error) {
	var cmd *yaml.Node
	_, extensions, err := yamlMember(old, f.key)
	if err == nil {
		_, entry := memberOf(extensions, serverName)
		_, cmd = memberOf(entry, f.command)
	}
	if cmd != nil {
		start := lineStart(old, cmd.Line) + cmd.Column - 1
		end := start + len(cmd.Value)
		if end > len(old) || string(old[start:end]) != cmd.Value { // quoted: up to the end of the line
			end = max(start, len(bytes.TrimRight(old[:lineStart(old, cmd.Line+1)], "\r\n")))
		}
		if out := splice(old, start, end, quoteTOML(w.Binary)); sameElse(f, parseYAML, f.key, old, out, true) {
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s.%s has no %s in a line of its own; delete that entry and connect again", f.key,
		serverName, f.command)
}

// insert adds the entry after the line of the mapping. Without that line it appends both to the text.
func (f yamlMap) insert(text []byte, entry func(indent string) string) ([]byte, error) {
	name, value, err := yamlMember(text, f.key)
	if err != nil {
		return nil, err
	}
	if name == nil {
		if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
			text = append(bytes.Clone(text), '\n')
		}
		return append(bytes.Clone(text), f.key+":\n"+entry("  ")...), nil
	}
	next := lineStart(text, name.Line+1)
	switch {
	case value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 && len(value.Content) > 0:
		return splice(text, next, next, entry(strings.Repeat(" ", value.Content[0].Column-1))), nil
	// `NAME: {}` or `NAME:`
	case value.Kind == yaml.MappingNode && len(value.Content) == 0, value.Tag == "!!null":
		return splice(text, lineStart(text, name.Line), next, f.key+":\n"+entry("  ")), nil
	}
	return nil, fmt.Errorf("line %d: %s is not a list of names; add sessiond by hand:\n%s", name.Line, f.key,
		entry("  "))
}

func (f yamlMap) cut(old []byte) ([]byte, error) {
	key, value, err := yamlMember(old, f.key)
	if err != nil {
		return nil, err
	}
	out := old
	for i := 0; value != nil && i+1 < len(value.Content); i += 2 {
		if value.Content[i].Value != serverName {
			continue
		}
		last := value.Content[i+1]
		for len(last.Content) > 0 {
			last = last.Content[len(last.Content)-1]
		}
		start := lineStart(old, value.Content[i].Line)
		if keyLine := lineStart(old, key.Line); len(value.Content) == 2 && // no extension is left
			string(bytes.TrimSpace(old[keyLine:start])) == f.key+":" {
			start = keyLine
		}
		out = splice(old, start, lineStart(old, last.Line+1), "")
	}
	if !sameElse(f, parseYAML, f.key, old, out, false) {
		return nil, fmt.Errorf("%s.%s cannot be removed in place; remove it by hand", f.key, serverName)
	}
	return out, nil
}

func parseYAML(text []byte) (map[string]any, error) {
	var all map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: ")) // has the line
	}
	return all, nil
}

// yamlMember returns a member of the root as nodes, which have line numbers.
func yamlMember(text []byte, name string) (key, value *yaml.Node, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, nil, err
	}
	if len(doc.Content) == 0 {
		return nil, nil, nil
	}
	key, value = memberOf(doc.Content[0], name)
	return key, value, nil
}

// memberOf returns the member of a mapping with a name; nil without one.
func memberOf(in *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; in != nil && i+1 < len(in.Content); i += 2 {
		if in.Content[i].Value == name {
			return in.Content[i], in.Content[i+1]
		}
	}
	return nil, nil
}

// lineStart returns the offset of a line, which is counted from 1.
func lineStart(text []byte, line int) int {
	at := 0
	for ; line > 1; line-- {
		n := bytes.IndexByte(text[at:], '\n')
		if n < 0 {
			return len(text)
		}
		at += n + 1
	}
	return at
}

// yamlServer is an MCP server of Continue: the first item of the list mcpServers. Continue shows tools without the
// server's name, so their names begin with it.
type yamlServer struct{}

const yamlListKey = "mcpServers"

func (yamlServer) place() string { return yamlListKey }

// item returns the nodes of the list and of sessiond's item in it; nil without them.
func (yamlServer) item(text []byte) (key, list, item *yaml.Node, err error) {
	if _, err := parseYAML(text); err != nil {
		return nil, nil, nil, err
	}
	key, list, err = yamlMember(text, yamlListKey)
	for i := 0; list != nil && i < len(list.Content); i++ {
		if _, name := memberOf(list.Content[i], "name"); name != nil && name.Value == serverName {
			item = list.Content[i]
		}
	}
	return key, list, item, err
}

func (f yamlServer) find(old []byte) (Wanted, bool, error) {
	_, _, item, err := f.item(old)
	w := Wanted{}
	if _, command := memberOf(item, "command"); command != nil {
		w.Binary = command.Value
	}
	return w, item != nil, err
}

func (f yamlServer) add(old []byte, w Wanted) ([]byte, error) {
	key, list, item, err := f.item(old)
	if err != nil {
		return nil, err
	}
	if item != nil {
		_, command := memberOf(item, "command")
		if command == nil || command.Value == w.Binary {
			return old, nil
		}
		start, end := lineStart(old, command.Line)+command.Column-1, lineStart(old, command.Line+1)
		end = max(start, len(bytes.TrimRight(old[:end], "\r\n")))
		return splice(old, start, end, quoteTOML(w.Binary)), nil
	}
	entry := func(indent string) string {
		return indent + "- name: " + serverName + "\n" + indent + "  command: " + quoteTOML(w.Binary) + "\n" +
			indent + "  args: [mcp, --prefix, " + serverName + "_]\n"
	}
	switch {
	case old == nil:
		return []byte("name: Local\nversion: 1.0.0\nschema: v1\n" + yamlListKey + ":\n" + entry("  ")), nil
	case key == nil:
		text := bytes.Clone(old)
		if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
			text = append(text, '\n')
		}
		return append(text, yamlListKey+":\n"+entry("  ")...), nil
	case list.Kind == yaml.SequenceNode && list.Style&yaml.FlowStyle == 0 && len(list.Content) > 0:
		next := lineStart(old, key.Line+1)
		return splice(old, next, next, entry(strings.Repeat(" ", list.Column-1))), nil
	case list.Kind == yaml.SequenceNode && len(list.Content) == 0, list.Tag == "!!null":
		return splice(old, lineStart(old, key.Line), lineStart(old, key.Line+1), yamlListKey+":\n"+entry("  ")), nil
	}
	return nil, fmt.Errorf("line %d: %s has a form that cannot be edited in place; add sessiond by hand:\n%s", key.Line,
		yamlListKey, entry("  "))
}

func (f yamlServer) cut(old []byte) ([]byte, error) {
	key, list, item, err := f.item(old)
	if err != nil || item == nil {
		return old, err
	}
	last := item
	for len(last.Content) > 0 {
		last = last.Content[len(last.Content)-1]
	}
	start := lineStart(old, item.Line)
	if keyLine := lineStart(old, key.Line); len(list.Content) == 1 && // no server is left
		string(bytes.TrimSpace(old[keyLine:start])) == yamlListKey+":" {
		start = keyLine
	}
	out := splice(old, start, lineStart(old, last.Line+1), "")
	if _, found, err := f.find(out); err != nil || found {
		return nil, fmt.Errorf("%s has a form that cannot be edited in place; remove sessiond by hand", yamlListKey)
	}
	return out, nil
}
