package connect

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlServer is an MCP server of Codex: the table [mcp_servers.sessiond], at the end of the file.
type tomlServer struct{}

const tomlKey = "mcp_servers"

func (tomlServer) place() string { return tomlKey }

func (tomlServer) find(old []byte) (Wanted, bool, error) {
	all, err := parseTOML(old)
	servers, _ := all[tomlKey].(map[string]any)
	server, found := servers[serverName].(map[string]any)
	binary, _ := server["command"].(string)
	return Wanted{Binary: binary}, found, err
}

func (f tomlServer) add(old []byte, w Wanted) ([]byte, error) {
	have, found, err := f.find(old)
	if err != nil || found && have.Binary == w.Binary {
		return old, err
	}
	if found {
		return f.move(old, w)
	}
	rest := old
	table := fmt.Sprintf("[%s.%s]\ncommand = %s\nargs = [\"mcp\"]\n", tomlKey, serverName, quoteTOML(w.Binary))
	if len(rest) > 0 && !bytes.HasSuffix(rest, []byte("\n")) {
		rest = append(bytes.Clone(rest), '\n')
	}
	if len(rest) > 0 {
		table = "\n" + table
	}
	out := append(bytes.Clone(rest), table...)
	if !sameElse(f, parseTOML, tomlKey, old, out, true) {
		return nil, fmt.Errorf("%s is an inline table; write it as [%s.NAME] tables, or add sessiond by hand:\n%s", tomlKey,
			tomlKey, table)
	}
	return out, nil
}

// move changes the path of the server's binary. It keeps the rest of its tables, which the user may have edited.
func (f tomlServer) move(old []byte, w Wanted) ([]byte, error) {
	tables, err := tablesOf(old)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if t.ours() && len(t.name) == 2 && t.command[1] > 0 {
			if out := splice(old, t.command[0], t.command[1], quoteTOML(w.Binary)); sameElse(f, parseTOML, tomlKey, old, out,
				true) {
				return out, nil
			}
		}
	}
	return nil, fmt.Errorf("%s.%s has no command in a table of its own; delete that entry and connect again", tomlKey,
		serverName)
}

func (f tomlServer) cut(old []byte) ([]byte, error) {
	out := bytes.Clone(old)
	tables, err := tablesOf(old)
	if err != nil {
		return nil, err
	}
	for i := len(tables) - 1; i >= 0; i-- {
		if !tables[i].ours() {
			continue
		}
		end := tables[i].end
		for i > 0 && tables[i-1].ours() { // join adjacent tables to one cut
			i--
		}
		out = cutLines(out, tables[i].start, end)
	}
	if !sameElse(f, parseTOML, tomlKey, old, out, false) {
		return nil, fmt.Errorf("%s.%s is not a table of its own; remove it by hand", tomlKey, serverName)
	}
	return out, nil
}

func parseTOML(text []byte) (map[string]any, error) {
	all := map[string]any{}
	err := toml.Unmarshal(text, &all)
	if wrong := (*toml.DecodeError)(nil); errors.As(err, &wrong) {
		line, column := wrong.Position()
		err = fmt.Errorf("line %d, column %d: %w", line, column, wrong)
	}
	return all, err
}

// table is a table of a TOML text: its name, its place up to the next table, and the place of the value of `command`.
type table struct {
	name       []string
	start, end int
	command    [2]int
}

func (t table) ours() bool {
	return len(t.name) >= 2 && t.name[0] == tomlKey && t.name[1] == serverName
}

func tablesOf(text []byte) ([]table, error) {
	var p unstable.Parser
	p.Reset(text)
	var tables []table
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind == unstable.KeyValue && len(tables) > 0 {
			key := e.Key()
			if raw := e.Value().Raw; key.Next() && key.IsLast() && string(key.Node().Data) == "command" {
				tables[len(tables)-1].command = [2]int{int(raw.Offset), int(raw.Offset + raw.Length)}
			}
		}
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable {
			continue
		}
		t := table{start: -1, end: len(text)}
		for key := e.Key(); key.Next(); {
			if t.start < 0 {
				t.start = bytes.LastIndexByte(text[:key.Node().Raw.Offset], '\n') + 1
			}
			t.name = append(t.name, string(key.Node().Data))
		}
		if len(tables) > 0 {
			tables[len(tables)-1].end = t.start
		}
		tables = append(tables, t)
	}
	return tables, p.Error()
}

// cutLines removes whole lines. It keeps comments and empty lines at their end, which belong to the next table. It also
// removes the empty line before them if an empty line or the end of the text follows.
func cutLines(text []byte, start, end int) []byte {
	for end > start {
		line := bytes.LastIndexByte(text[start:end-1], '\n') + 1 + start
		if said := strings.TrimSpace(string(text[line:end])); said != "" && said[0] != '#' {
			break
		}
		end = line
	}
	if bytes.HasSuffix(text[:start], []byte("\n\n")) && (end == len(text) || text[end] == '\n') {
		start--
	}
	return splice(text, start, end, "")
}

// quoteTOML quotes a string. TOML's escapes are those of JSON, but DEL needs one, too.
func quoteTOML(s string) string { return strings.ReplaceAll(quoteJSON(s), "\x7f", `\u007f`) }
