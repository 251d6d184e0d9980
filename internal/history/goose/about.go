package goose

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// about is what a source says of a session as a whole.
type about struct {
	id        string // Goose's
	created   *session.Time
	otherwise session.Time // when neither the source nor a message has a time
	title     string
	kind      string
	author    session.Origin // of the prompts
	directory string
	provider  string
	model     string
	archived  *session.Time
	parent    string // Goose's id of the session that started it
	notes     jsonx.Object
	balance   usage // sums over the session
	inFile    bool  // it is read from a file, not from a database
	records   int   // of the source: the session's own row, or a file's first line
}

// columnUse returns what becomes of a column of sessions, "" for one that version 17 does not know.
func columnUse(column string) string {
	switch column {
	case "id", "name", "description", "working_dir", "provider_name", "updated_at":
		return "field"
	case "recipe_json", "user_recipe_values_json":
		return "kept out" // may hold secrets
	case "extension_data", "model_config_json", "parent_delegation":
		return "json"
	case "created_at", "user_set_name", "session_type", "schedule_id", "project_id", "goose_mode", "archived_at",
		"parent_session_id", "thread_id",
		"total_tokens", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "accumulated_cost":
		return "note"
	}
	if strings.HasPrefix(column, "accumulated_") && strings.HasSuffix(column, "_tokens") {
		return "note"
	}
	return ""
}

// aboutRow parses a sessions row.
func aboutRow(r history.Row) about {
	a := about{
		id: r.Get("id"), title: cmp.Or(r.Get("name"), r.Get("description")), directory: r.Get("working_dir"),
		provider: r.Get("provider_name"),
		created:  timeText(r.Get("created_at")), archived: timeText(r.Get("archived_at")), parent: r.Get("parent_session_id"),
		records: 1,
	}
	a.typed(r.Get("session_type"))
	config, _ := jsonx.ReadObject([]byte(r.Get("model_config_json")))
	a.model = config.String("model_name")
	a.balance = usageOf(func(name string) []byte { return []byte(r.Get("accumulated_" + name)) })
	var unknown jsonx.Object
	for _, c := range r {
		name, value := c.Name, c.Text
		switch use := columnUse(name); {
		case value == "":
		case use == "note":
			a.note(name, value)
		case use == "json":
			a.noteJSON(name, value)
		case use == "kept out":
			a.note(strings.TrimSuffix(name, "_json"), "not imported: it may hold secrets")
		case use == "" && secretName.MatchString(name):
			unknown = append(unknown, jsonx.MemberOf(name, "[masked]"))
		case use == "":
			unknown = append(unknown, jsonx.MemberOf(name, cut(value)))
		}
	}
	if len(unknown) > 0 {
		a.notes = append(a.notes, jsonx.Member{Key: "unknown_columns", Value: unknown.Value()})
	}
	return a
}

// delegatedBy returns the external id of the parent's message that started a sub-agent.
func (a *about) delegatedBy() string {
	if id := a.notes.Inner("parent_delegation").String("parent_delegate_message_id"); id != "" {
		return id + "#0"
	}
	return ""
}

// typed sets what Goose's type of a session says.
func (a *about) typed(kind string) {
	a.kind, a.author = "chat", session.Person
	switch kind {
	case "sub_agent":
		a.kind, a.author = "subagent", session.Model
	case "scheduled":
		a.kind, a.author = "cron", session.Program
	case "hidden":
		a.kind = "other"
	}
}

func (a *about) note(name, value string) {
	field := jsonx.MemberOf(name, cut(value))
	if _, ok := history.Number([]byte(value)); ok && json.Valid([]byte(value)) {
		field.Value = raw(value)
	}
	a.notes = append(a.notes, field)
}

// noteJSON notes a JSON value, its secrets masked.
func (a *about) noteJSON(name, value string) {
	if !json.Valid([]byte(value)) || jsonx.DeeperThan([]byte(value), history.MaxDepth) {
		return // its secrets cannot be found
	}
	masked := mask([]byte(value))
	if string(masked) == "{}" || string(masked) == "null" {
		return
	}
	a.notes = append(a.notes, jsonx.Member{Key: name, Value: masked})
}

// cut bounds what a note keeps of a text.
func cut(text string) string {
	const most = 16 << 10
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// secretName are names of members whose values may be secrets: of tool servers, providers.
var secretName = pattern.New(`(?i)secret|passw|credential|cookie|authorization|api_?-?key|access_?-?key|^auth$|_auth$|(^|_|-)token$|^(envs?|headers|args|argv|cmd_args|env_keys)$`)

// mask replaces the values that may be secrets, and what follows the host of an address.
func mask(value []byte) raw {
	if o, ok := jsonx.ReadFields(value); ok {
		masked := make(jsonx.Object, 0, len(o))
		for _, f := range o {
			if secretName.MatchString(f.Key) {
				f.Value = maskAll(f.Value)
			} else {
				f.Value = mask(f.Value)
			}
			masked = append(masked, f)
		}
		return masked.Value()
	}
	if elements, ok := jsonx.ReadArray(value); ok {
		for i := range elements {
			elements[i] = mask(elements[i])
		}
		return jsonx.Array(elements)
	}
	if text, ok := jsonx.Text(value); ok && strings.Contains(text, "://") {
		return raw(session.JSONOf(maskAddress(text)))
	}
	return value
}

// maskAll keeps the names and the shape of a value, and nothing else of it.
func maskAll(value []byte) raw {
	if o, ok := jsonx.ReadFields(value); ok {
		masked := make(jsonx.Object, 0, len(o))
		for _, f := range o {
			masked = append(masked, jsonx.MemberOf(f.Key, "[masked]"))
		}
		return masked.Value()
	}
	return raw(`"[masked]"`)
}

var (
	userInfo = pattern.New(`://[^/@\s]*@`)
	question = pattern.New(`\?\S*`)
)

func maskAddress(text string) string {
	return question.ReplaceAllString(userInfo.ReplaceAllString(text, "://[masked]@"), "?[masked]")
}

// timeText reads a time in any of the spellings that Goose's rows have, as UTC.
func timeText(text string) *session.Time {
	for _, form := range []string{
		time.DateTime, time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05.999999999",
		"2006-01-02 15:04:05Z07:00",
	} {
		if at, err := time.Parse(form, text); err == nil && at.Year() >= 1970 && at.Year() <= 9999 {
			parsed := session.At(at)
			return &parsed
		}
	}
	return nil
}
