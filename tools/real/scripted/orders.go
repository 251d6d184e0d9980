package scripted

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Decision is what the model says when it is to decide.
const Decision = "I decided to keep the heights in millimetres, because the tide table rounds to 15 minutes."

// An order in a prompt: (shell: COMMAND), (write: NAME), (agent: PROMPT), (search: WORDS) call a tool of the program or
// of sessiond; (decide: yes) makes Decision the reply; (fill: N) makes it report N tokens of input, so that a program
// that counts them compacts; (fill: N, COMMAND) calls the shell with that reply, for a program that counts within a
// run.
var order = regexp.MustCompile(`\((shell|write|agent|search|decide|fill): ([^()]*)\)`)

// summaryWanted finds the request of a compaction in the newest text; other texts of the conversation may have the
// words, but not as a task.
var summaryWanted = regexp.MustCompile(`(?i)summar|state_snapshot|compact|handoff`)

// machinery finds texts that a program or sessiond adds to a prompt. Those of sessiond may lie within others.
var machinery = func() (found []*regexp.Regexp) {
	for _, tag := range []string{
		"from_sessiond", "system-reminder", "system_reminder", "environment_context", "environment_details",
		"session_context", "user_instructions", "hook_context", "reminder", "current_datetime",
	} {
		found = append(found, regexp.MustCompile("(?s)<"+tag+">.*?</"+tag+">"))
	}
	return found
}()

func withoutMachinery(text string) string {
	for _, m := range machinery {
		text = m.ReplaceAllString(text, "")
	}
	return strings.TrimSpace(text)
}

var titleWanted = regexp.MustCompile(`(?i)\btitle\b`)

// Names of the tools that programs offer, the first one found counts.
var (
	shellTools = []string{
		"Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command", "execute_command", "Shell",
		"run_terminal_command", "run_commands", "exec", "terminal",
	}
	writeTools = []string{
		"Write", "write", "write_file", "create", "create_file", "apply_patch", "write_to_file", "editor",
	}
	agentTools = []string{
		"Agent", "Task", "task", "agent", "spawn_agent", "invoke_agent", "generalist", "subagent", "sessions_spawn",
	}
	waitTools   = []string{"wait_agent", "wait", "read_agent"}
	searchTools = []string{"ToolSearch", "tool_search"}
	endTools    = []string{"complete_task"} // by which a sub-agent ends

	deferredTools = []string{"tool_call"}
)

// plan decides the answer to a request.
func plan(q *request, x *Exchange) {
	prompt, wanted, steps := q.newest()
	x.Prompt = prompt
	x.Text = fmt.Sprintf("Reply %d: the berth is free.", x.Number)
	switch {
	case q.schema != nil:
		x.Kind, x.Text = Aside, jsonOf(example(q.schema, "", 0))
	case wanted == nil && summaryWanted.MatchString(prompt):
		x.Kind = Summary
		notes := fmt.Sprintf("Notes %d: a harbour is planned; the last question was about a berth.", x.Number)
		x.Text = wrapped(prompt+q.system, notes)
	case len(q.tools) == 0:
		x.Kind = Aside
		if titleWanted.MatchString(q.system + prompt) {
			x.Text = fmt.Sprintf("Harbour %d", x.Number)
		}
	default:
		x.Kind = Turn
		q.follow(wanted, steps, x)
	}
}

// wrapped puts a summary between the tags that a request names.
func wrapped(asked, summary string) string {
	for _, tag := range []string{"state_snapshot", "summary"} {
		if strings.Contains(asked, "<"+tag+">") {
			return "<" + tag + ">" + summary + "</" + tag + ">"
		}
	}
	return summary
}

// newest returns the newest text that has a task: with its order and the number of results behind it, or without
// one if it asks for a summary.
func (q *request) newest() (prompt string, wanted []string, steps int) {
	last := ""
	for _, t := range slices.Backward(q.turns) {
		if t.role == "tool" {
			steps++
		}
		if t.role != "user" {
			continue
		}
		for _, text := range slices.Backward(t.texts) {
			text = withoutMachinery(text)
			text = strings.TrimSuffix(strings.TrimPrefix(text, `"`), `"`) // opencode quotes words of its command line
			found := order.FindAllStringSubmatch(text, -1)
			last = cmp.Or(last, text)
			if asks := summaryWanted.MatchString(text); asks && (len(found) == 0 || len(text) > 1500) {
				return text, nil, steps
			}
			if len(found) > 0 {
				return text, found[len(found)-1], steps
			}
		}
	}
	return last, nil, steps
}

// follow carries out an order: a step for each result so far.
func (q *request) follow(wanted []string, steps int, x *Exchange) {
	if wanted == nil {
		return
	}
	kind, what := wanted[1], strings.TrimSpace(wanted[2])
	call := func(t *tool, given map[string]any) {
		c := Call{ID: fmt.Sprintf("call_scripted_%d", x.Number), Namespace: t.namespace, Name: t.name}
		c.Arguments = q.arguments(t, given)
		if t.custom {
			c.Arguments, c.Input = nil, patchOf(what)
		}
		x.Text, x.Calls = "", []Call{c}
	}
	words := map[string]any{"description": "harbour", "title": "harbour"}
	switch kind {
	case "decide":
		x.Text = Decision
		return
	case "fill":
		size, command, calls := strings.Cut(what, ", ")
		if n, err := strconv.ParseInt(size, 10, 64); err == nil && (!calls || steps == 0) {
			x.Usage.Input = n
		}
		if kind, what = "shell", command; !calls {
			return
		}
	}
	if steps >= mostSteps {
		return
	}
	if t := q.tool(endTools); t != nil && steps > 0 {
		x.Text = ""
		said := any(fmt.Sprintf("Reply %d: the berth is free.", x.Number))
		if fields := object(object(object(t.schema, "properties"), "result"), "properties"); fields["response"] != nil {
			said = map[string]any{"response": said}
		}
		call(t, map[string]any{"result": said})
		return
	}
	switch kind {
	case "shell":
		if t := q.tool(shellTools); t != nil && steps == 0 {
			call(t, merged(words, "command", what, "cmd", what, "script", what, "commands", []any{what}))
		}
	case "write":
		what += ".go" // a prompt does not name the file: whoever keeps the prompt does not keep the name
		content := "package harbour\n"
		if t := q.tool(writeTools); t != nil && steps == 0 {
			call(t, merged(words, "file_path", what, "filePath", what, "path", what, "content", content,
				"file_text", content, "command", "create", "input", patchOf(what)))
		} else if t := q.tool(shellTools); t != nil && steps == 0 {
			patch := "apply_patch <<'EOF'\n" + patchOf(what) + "EOF\n"
			call(t, merged(words, "command", patch, "cmd", patch))
		}
	case "agent":
		q.callAgent(what, steps, merged(words), call)
	case "search":
		q.callSearch(what, steps, call)
	}
}

// callAgent starts a sub-agent, and waits for it where the program has a tool for that.
func (q *request) callAgent(what string, steps int, words map[string]any, call func(*tool, map[string]any)) {
	task := what + " (shell: printf pier)"
	if t := q.tool(agentTools); t != nil && steps == 0 {
		given := merged(words, "prompt", task, "message", task, "task", task, "objective", task, "request", task,
			"name", "pier", "task_name", "pier", "run_in_background", false, "mode", "sync")
		for _, name := range []string{"subagent_type", "agent_type", "agent_name"} {
			if slices.Contains(list(t.schema, "required"), any(name)) {
				given[name] = agentType(t.description, q.system)
			}
		}
		call(t, given)
		return
	}
	if t := q.tool(waitTools); t != nil && steps == 1 {
		ids := idsIn(q.lastResult())
		first := ""
		if len(ids) > 0 {
			first, _ = ids[0].(string)
		}
		call(t, map[string]any{"ids": ids, "targets": ids, "agent_ids": ids, "agent_id": first, "id": first})
	}
}

// callSearch calls sessiond's search, after a search of tools where the program defers those of servers.
func (q *request) callSearch(what string, steps int, call func(*tool, map[string]any)) {
	at := slices.IndexFunc(q.tools, func(t tool) bool {
		name := strings.ToLower(t.fullName())
		return strings.Contains(name, "sessiond") && strings.HasSuffix(name, "search") || name == "search"
	})
	called := slices.ContainsFunc(q.turns, func(t turn) bool {
		return slices.ContainsFunc(t.calls, func(name string) bool { return strings.HasSuffix(name, "search") })
	})
	if at >= 0 && (steps == 0 || !called || q.onlySearchedTools()) {
		call(&q.tools[at], map[string]any{"query": what})
		return
	}
	if t := q.tool(deferredTools); t != nil && q.onlySearchedTools() { // it calls what was found
		call(t, map[string]any{"name": "mcp__sessiond__search", "arguments": map[string]any{"query": what}})
		return
	}
	if t := q.tool(searchTools); t != nil && steps == 0 {
		query := "sessiond search"
		if t.name == "ToolSearch" {
			query = "select:mcp__sessiond__search"
		}
		call(t, map[string]any{"query": query, "max_results": 5})
	}
}

// onlySearchedTools reports whether the newest call was one of a tool that finds tools.
func (q *request) onlySearchedTools() bool {
	for _, t := range slices.Backward(q.turns) {
		if len(t.calls) > 0 {
			return slices.Contains(searchTools, t.calls[0])
		}
	}
	return false
}

func (q *request) lastResult() string {
	for _, t := range slices.Backward(q.turns) {
		if t.role == "tool" {
			return strings.Join(t.texts, "\n")
		}
	}
	return ""
}

func (q *request) tool(names []string) *tool {
	for _, name := range names {
		for i := range q.tools {
			if q.tools[i].name == name {
				return &q.tools[i]
			}
		}
	}
	return nil
}

func patchOf(file string) string {
	return "*** Begin Patch\n*** Add File: " + file + "\n+package harbour\n*** End Patch\n"
}

var (
	listedAgent = regexp.MustCompile("(?m)^ *[-*] +[\"`*]*([A-Za-z][\\w-]*)[\"`*]*(?::| ->)")
	idInResult  = regexp.MustCompile(`"?(?:agent_?id|thread_id|id)\\?"?\s*[:=]\s*\\?"([^"\\]+)`)
)

// agentType returns the kind of sub-agent that a tool's description or the system prompt lists, one for everything
// where there is one.
func agentType(texts ...string) string {
	first := ""
	for _, text := range texts {
		for _, found := range listedAgent.FindAllStringSubmatch(text, -1) {
			if strings.Contains(found[1], "general") {
				return found[1]
			}
			first = cmp.Or(first, found[1])
		}
	}
	return cmp.Or(first, "general-purpose")
}

func idsIn(result string) (ids []any) {
	for _, found := range idInResult.FindAllStringSubmatch(result, -1) {
		ids = append(ids, found[1])
	}
	return ids
}

func merged(base map[string]any, pairs ...any) map[string]any {
	all := maps.Clone(base)
	for i := 0; i+1 < len(pairs); i += 2 {
		all[pairs[i].(string)] = pairs[i+1]
	}
	return all
}

// arguments returns those of the given values that a tool has a property for, and an example of each other property
// that it requires. A path is absolute where the tool says so.
func (q *request) arguments(t *tool, given map[string]any) map[string]any {
	out := map[string]any{}
	properties := object(t.schema, "properties")
	for name, schema := range properties {
		value, known := given[name]
		if !known {
			continue
		}
		if values := list(schema, "enum"); len(values) > 0 && !slices.Contains(values, value) {
			value = oneOf(values)
		}
		if path, is := value.(string); is && strings.Contains(text(schema, "description"), "absolute path") {
			value = filepath.Join(q.folder, path)
		}
		_, isList := value.([]any)
		if text(schema, "type") == "array" && !isList {
			value = []any{"bash", "-lc", value}
		}
		out[name] = value
	}
	for _, name := range list(t.schema, "required") {
		name, _ := name.(string)
		if _, has := out[name]; !has {
			out[name] = example(object(properties, name), name, 0)
		}
	}
	return out
}

// oneOf prefers a value for everything, or else the first.
func oneOf(values []any) any {
	for _, v := range values {
		if s, _ := v.(string); strings.Contains(s, "general") {
			return v
		}
	}
	return values[0]
}

// example returns a value that a schema allows.
func example(schema map[string]any, name string, depth int) any {
	if values := list(schema, "enum"); len(values) > 0 {
		return oneOf(values)
	}
	if fixed, has := schema["const"]; has {
		return fixed
	}
	for _, kind := range []string{"anyOf", "oneOf"} {
		if options := list(schema, kind); len(options) > 0 && depth < 8 {
			option, _ := options[0].(map[string]any)
			return example(option, name, depth+1)
		}
	}
	kind := text(schema, "type")
	if kinds := list(schema, "type"); len(kinds) > 0 {
		kind, _ = kinds[0].(string)
	}
	switch strings.ToLower(kind) {
	case "object":
		out := map[string]any{}
		for _, field := range list(schema, "required") {
			if field, _ := field.(string); depth < 8 {
				out[field] = example(object(object(schema, "properties"), field), field, depth+1)
			}
		}
		return out
	case "array":
		if depth < 8 && schema["minItems"] != nil {
			return []any{example(object(schema, "items"), name, depth+1)}
		}
		return []any{}
	case "integer", "number":
		if least, is := schema["minimum"].(float64); is {
			return least
		}
		return 1
	case "boolean":
		return false
	case "null":
		return nil
	}
	if name == "" || name == "title" {
		return "Plan the harbour"
	}
	return "harbour " + name
}
