package connect

import (
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"sessiond/internal/pattern"
)

// jsonHooks are hooks in the form of Claude Code: hooks.EVENT is a list of groups, each with a matcher and a list
// of commands. All events run the same command, because its input names the event and Codex trusts a command by its
// text.
type jsonHooks struct {
	program string
	names   map[string]string // the program's events, by Claude Code's; "": it has none. nil: all are the same
	second  int               // of a timeout
	atTop   bool              // an answer's text stands at its top, not beside the event
	bare    bool              // the file is the object of the events itself
}

func hooks(file string, f jsonHooks) File { return File{Hooks, file, f} }

// claudeHooks are the hooks of Claude Code and Codex.
func claudeHooks(program string) jsonHooks { return jsonHooks{program: program, second: 1} }

// geminiHooks: Gemini CLI has no event after a compaction, and adds nothing to the context before an edit.
var geminiHooks = jsonHooks{program: "gemini-cli", second: 1000, names: map[string]string{
	"PreCompact": "PreCompress", "SessionEnd": "SessionEnd", atStart: atStart, forPrompts: "BeforeAgent",
}}

// qwenHooks: no event follows a compaction but the start of the session. Its text ends with the process, so a process
// that continues the session asks again.
var qwenHooks = jsonHooks{program: "qwen-code", second: 1000, names: map[string]string{
	atCompact: atCompact + "|resume", "PreCompact": "PreCompact", "SessionEnd": "SessionEnd", atStart: atStart,
	forPrompts: forPrompts,
}}

// copilotHooks are in a file of their own. Copilot CLI names the event in a hook's input only if it is written as here.
// It fires no event after a compaction.
var copilotHooks = jsonHooks{program: "copilot-cli", second: 1, atTop: true, names: map[string]string{
	"PreCompact": "PreCompact", "SessionEnd": "SessionEnd", atStart: "SessionStart", forPrompts: forPrompts,
}}

// droidHooks: Droid has no event after a compaction but the start of the session that goes on.
var droidHooks = jsonHooks{program: "droid", second: 1, names: map[string]string{
	atCompact: atCompact, "PreCompact": "PreCompact", "SessionEnd": "SessionEnd", atStart: atStart, forPrompts: forPrompts,
}}

// droidHookFiles returns the file of Droid's hooks. hooks.json wins, event by event: a new one beside hooks in
// settings.json would switch these off, so that they stay where they are. Droid moves them to hooks.json when its user
// edits one: then both files may have sessiond's.
func droidHookFiles(folder string) []File {
	inSettings, bare := hooks(folder+"/settings.json", droidHooks), droidHooks
	bare.bare = true
	alone := hooks(folder+"/hooks.json", bare)
	text, _ := os.ReadFile(inSettings.Path) // without one there are none
	root, err := parseJSON(text)
	has := err == nil && lookup(root, "hooks") != nil
	switch {
	case !exists(alone.Path) && has:
		return []File{inSettings}
	case has && strings.Contains(string(text), droidHooks.suffix()):
		return []File{alone, inSettings}
	}
	return []File{alone}
}

// hooksOf returns the hooks of a program that differ from Claude Code's; nothing of another.
func hooksOf(program string) jsonHooks {
	for _, f := range []jsonHooks{geminiHooks, qwenHooks, copilotHooks, droidHooks} {
		if f.program == program {
			return f
		}
	}
	return jsonHooks{}
}

// EventOf returns Claude Code's name of a program's event.
func EventOf(program, event string) string {
	for name, theirs := range hooksOf(program).names {
		if own, _, _ := strings.Cut(theirs, ":"); own == event {
			name, _, _ = strings.Cut(name, ":")
			return name
		}
	}
	return event
}

// ForgetsText reports whether a program, or sessiond's plug-in of it, keeps what a hook answers after a compaction in
// its process alone: then it asks again when it continues a session.
func ForgetsText(program string) bool {
	return slices.Contains([]string{"opencode", "kilo", "pi", "qwen-code"}, program)
}

// LacksCompactEvent reports whether no hook of a program follows a compaction: the next prompt gets what it lost.
func LacksCompactEvent(program string) bool {
	names := hooksOf(program).names
	return names != nil && names[atCompact] == ""
}

// AnswersAtTop reports whether a program reads the text of a hook's answer at its top.
func AnswersAtTop(program string) bool { return hooksOf(program).atTop }

// placed is a hook of sessiond and its place in the file.
type placed struct {
	event          string
	group, handler int
	matcher        string
	command        *hujson.Value
	timeout        int
}

// timeout returns the time after which the program stops a hook. A hook needs far less than 10 s. Codex waits at
// most 3 s at the end of a session.
func (f jsonHooks) timeout(event string) int {
	if event == "SessionEnd" {
		return 3 * f.second
	}
	return 10 * f.second
}

// theirs returns the program's name of an event with its matcher; "": it has no such event.
func (f jsonHooks) theirs(event string) string {
	if f.names == nil {
		return event
	}
	return f.names[event]
}

// ours is the inverse of theirs; "" for an event of another.
func (f jsonHooks) ours(event string) string {
	for _, name := range events {
		if f.theirs(name) == event {
			return name
		}
	}
	return ""
}

func (f jsonHooks) place() string { return "hooks" + f.suffix() }

// path returns the names on the way to the object of the events, or to one of them.
func (f jsonHooks) path(event ...string) []string {
	if f.bare {
		return event
	}
	return append([]string{"hooks"}, event...)
}

type jsonGroup struct {
	Matcher string        `json:"matcher,omitempty"`
	Hooks   []jsonHandler `json:"hooks"`
}

type jsonHandler struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
}

// all returns the hooks of sessiond in a text, in the order of the text.
func (f jsonHooks) all(text []byte) ([]placed, error) {
	root, err := parseJSON(text)
	if err == nil {
		err = namedOnce(text, root, f.path()...)
	}
	if err != nil {
		return nil, err
	}
	var found []placed
	hooks := root
	if !f.bare {
		hooks = lookup(root, f.path()...)
	}
	if hooks == nil {
		return nil, nil
	}
	byEvent, _ := hooks.Value.(*hujson.Object)
	if byEvent == nil {
		return nil, notA("an object", text, hooks, "hooks")
	}
	for _, m := range byEvent.Members {
		event := m.Name.Value.(hujson.Literal).String()
		for g := 0; m.Value.Find(fmt.Sprintf("/%d", g)) != nil; g++ {
			group := m.Value.Find(fmt.Sprintf("/%d", g))
			for h := 0; group.Find(fmt.Sprintf("/hooks/%d", h)) != nil; h++ {
				handler := group.Find(fmt.Sprintf("/hooks/%d", h))
				command := handler.Find("/command")
				if command == nil || command.Value.Kind() != '"' ||
					!strings.HasSuffix(command.Value.(hujson.Literal).String(), f.suffix()) {
					continue
				}
				p := placed{event: event, group: g, handler: h, command: command}
				if m := group.Find("/matcher"); m != nil && m.Value.Kind() == '"' {
					p.matcher = m.Value.(hujson.Literal).String()
				}
				if t := handler.Find("/timeout"); t != nil && t.Value.Kind() == '0' {
					p.timeout = int(t.Value.(hujson.Literal).Int())
				}
				found = append(found, p)
			}
		}
	}
	return found, nil
}

func (f jsonHooks) suffix() string { return " hook " + f.program }

func (f jsonHooks) find(old []byte) (Wanted, bool, error) {
	hooks, err := f.all(old)
	w := Wanted{}
	for _, h := range hooks {
		w.Binary = unquoteShell(strings.TrimSuffix(h.command.Value.(hujson.Literal).String(), f.suffix()))
		w.Events = append(w.Events, f.ours(strings.TrimSuffix(h.event+":"+h.matcher, ":")))
	}
	w.Events = Wanted{}.merged(w).Events // sorts them, and drops those of a later version
	return w, len(hooks) > 0, err
}

func (f jsonHooks) add(old []byte, w Wanted) ([]byte, error) {
	hooks, err := f.all(old)
	if err != nil {
		return nil, err
	}
	text, command := old, QuoteShell(w.Binary)+f.suffix()
	for _, h := range slices.Backward(hooks) { // the binary of sessiond moved
		if h.command.Value.(hujson.Literal).String() != command {
			text = splice(text, h.command.StartOffset, h.command.EndOffset, quoteJSON(command))
		}
	}
	have, _, _ := f.find(old)
	for _, e := range w.Events {
		if slices.Contains(have.Events, e) || f.theirs(e) == "" {
			continue
		}
		event, matcher, _ := strings.Cut(f.theirs(e), ":")
		group := jsonGroup{matcher, []jsonHandler{{"command", command, f.timeout(event)}}}
		root, err := parseJSON(text)
		if err != nil {
			return nil, err
		}
		switch groups := lookup(root, f.path(event)...); {
		case groups == nil:
			if text, err = put(text, f.path(event), []jsonGroup{group}); err != nil {
				return nil, err
			}
		case groups.Value.Kind() != '[':
			return nil, notA("a list", text, groups, f.path(event)...)
		default: // after the user's groups, because Codex trusts a hook by its index in the list
			text = appendItem(text, root, groups, "", group)
		}
	}
	return text, nil
}

func (f jsonHooks) cut(old []byte) ([]byte, error) {
	text := old
	for {
		hooks, err := f.all(text)
		if err != nil || len(hooks) == 0 {
			return text, err
		}
		h := hooks[len(hooks)-1]
		root, err := parseJSON(text)
		if err != nil {
			return nil, err
		}
		groups := lookup(root, f.path(h.event)...)
		handlers := groups.Find(fmt.Sprintf("/%d/hooks", h.group))
		switch {
		case len(itemsOf(handlers).spans) > 1:
			text = cutItem(text, handlers, h.handler)
		case len(itemsOf(groups).spans) > 1:
			text = cutItem(text, groups, h.group)
		default:
			if text, err = cutMember(text, f.path(h.event)); err != nil {
				return nil, err
			}
		}
	}
}

// untrusted returns the events whose hooks Codex skips because its user has not trusted them in their present form.
// Under hooks.state of config.toml, Codex stores the hash of each trusted hook by its place.
// Source: codex-rs/hooks, discovery.rs; checked with Codex 0.169's hooks/list.
func (f jsonHooks) untrusted(hooks, config []byte) ([]string, error) {
	placed, err := f.all(hooks)
	if err != nil {
		return nil, err
	}
	all, err := parseTOML(config)
	if err != nil {
		return nil, err
	}
	table, _ := all["hooks"].(map[string]any)
	states, _ := table["state"].(map[string]any)
	var events []string
	for _, h := range placed {
		place := fmt.Sprintf("hooks.json:%s:%d:%d", snakeCase(h.event), h.group, h.handler)
		trusted := false
		for key, state := range states {
			s, _ := state.(map[string]any)
			trusted = trusted || strings.HasSuffix(key, place) && s["trusted_hash"] == h.hash()
		}
		if !trusted {
			events = append(events, h.event)
		}
	}
	return events, nil
}

// hash is Codex's hash of a hook: of its JSON with sorted names.
func (h placed) hash() string {
	said := map[string]any{
		"event_name": snakeCase(h.event),
		"hooks": []any{map[string]any{
			"type": "command", "command": h.command.Value.(hujson.Literal).String(), "timeout": h.timeout, "async": false,
		}},
	}
	if h.matcher != "" {
		said["matcher"] = h.matcher
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(encode(said, "", ""))))
}

func snakeCase(event string) string {
	var b strings.Builder
	for i, r := range event {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

var needsNoQuotes = pattern.New(`^[A-Za-z0-9_@%+=:,./-]+$`)

// QuoteShell quotes a word for a POSIX shell, if need be.
func QuoteShell(word string) string {
	if needsNoQuotes.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// unquoteShell is the inverse of QuoteShell.
func unquoteShell(s string) string {
	if len(s) < 2 || s[0] != '\'' || s[len(s)-1] != '\'' {
		return s
	}
	return strings.ReplaceAll(s[1:len(s)-1], `'\''`, "'")
}
