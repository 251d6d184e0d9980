package cline

import (
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// toolTag begins a call that is written as XML at the beginning of a line.
var toolTag = pattern.New(`(?m)^<(read_file|write_to_file|replace_in_file|apply_diff|insert_content|search_and_replace|search_files|list_files|list_code_definition_names|execute_command|browser_action|use_mcp_tool|access_mcp_resource|ask_followup_question|attempt_completion|new_task|switch_mode|plan_mode_respond|fetch_instructions|codebase_search|update_todo_list|edit_file|web_fetch|load_mcp_documentation|condense|summarize_task|report_bug|new_rule)>`)

var argumentTag = pattern.New(`(?m)^\s*<([a-z_]+)>`)

// replyParts parses the text of a reply: thoughts, words, and calls that are written as XML. A call gets the id that
// its place gives it.
func replyParts(text, place string) (parts []session.Part) {
	add := func(words string) {
		if words = strings.TrimSpace(words); words != "" {
			parts = append(parts, session.TextPart(words))
		}
	}
	if rest, ok := strings.CutPrefix(strings.TrimSpace(text), "<thinking>"); ok {
		if thought, after, closed := strings.Cut(rest, "</thinking>"); closed {
			parts = append(parts, session.Part{Kind: session.PartReasoning, Text: strings.TrimSpace(thought)})
			text = after
		}
	}
	for n := 0; ; n++ {
		at := toolTag.FindStringIndex(text)
		if at == nil {
			break
		}
		name := text[at[0]+1 : at[1]-1]
		end := strings.LastIndex(text, "</"+name+">")
		if next := toolTag.FindStringIndex(text[at[1]:]); next != nil { // another call: this one ends before it
			end = strings.LastIndex(text[:at[1]+next[0]], "</"+name+">")
		}
		if end < at[1] {
			break // it was cut off: it stays a text
		}
		add(text[:at[0]])
		id := "xml/" + place
		if n > 0 {
			id += string(rune('a' + n%26))
		}
		parts = append(parts, history.CallPart(id, name, argumentsOf(text[at[1]:end]).Value()))
		text = text[end+len("</"+name+">"):]
	}
	add(text)
	return parts
}

// argumentsOf parses the elements of a call.
func argumentsOf(text string) (arguments jsonx.Object) {
	for {
		at := argumentTag.FindStringIndex(text)
		if at == nil {
			return arguments
		}
		name := strings.Trim(strings.TrimSpace(text[at[0]:at[1]]), "<>")
		value, rest, closed := strings.Cut(text[at[1]:], "</"+name+">")
		if !closed {
			return arguments
		}
		arguments.SetText(name, strings.Trim(value, "\n"))
		text = rest
	}
}
