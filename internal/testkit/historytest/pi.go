package historytest

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"sessiond/internal/testkit/dialecttest"
)

type object = dialecttest.Object

// listOf returns a field that is a list of objects.
func listOf(o object, name string) (list []object, err error) {
	if err := json.Unmarshal(o[name], &list); err != nil || list == nil {
		return nil, fmt.Errorf("%s is no list of objects: %.80s", name, o[name])
	}
	return list, nil
}

// PiCounts counts the entries of a file of pi.
type PiCounts struct {
	Entries, Messages, Users, Replies, Results, Calls, Roots int
	OnLeaf                                                   int // entries on the path of the leaf
	Unknown                                                  int // entries of undocumented types
}

var (
	piSessionID = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	piEntryID   = regexp.MustCompile(`^([0-9a-f]{8}|[0-9a-f-]{36})$`)
)

// piEntries are the fields that an entry of each type must have.
var piEntries = map[string]string{
	"message": "message:object", "model_change": "provider:text modelId:text",
	"thinking_level_change": "thinkingLevel:text",
	"compaction":            "summary:text tokensBefore:number", "branch_summary": "fromId:text summary:text",
	"custom": "customType:text", "custom_message": "customType:text display:flag", "label": "targetId:text",
	"context_edit": "targetId:text", "usage": "kind:text provider:text model:text usage:object",
	"session_info": "", "active_tools_change": "", "leaf": "",
}

// piRoles are the fields of a message of each role, and the blocks of its content.
var piRoles = map[string]struct {
	fields string
	blocks []string
}{
	"user": {"", []string{"", "text", "image"}}, // "": or a text
	"assistant": {
		"api:name provider:name model:name stopReason:text usage:object",
		[]string{"text", "thinking", "toolCall"},
	},
	"toolResult":        {"toolCallId:text toolName:name isError:flag", []string{"text", "image"}},
	"system":            {"", []string{"", "text"}},
	"custom":            {"", []string{"", "text", "image"}},
	"bashExecution":     {"command:text output:text", nil},
	"branchSummary":     {},
	"compactionSummary": {},
}

// piBlocks are the fields of a block of each type.
var piBlocks = map[string]string{
	"text": "text:text", "thinking": "thinking:text", "toolCall": "id:text name:text arguments:object",
	"image": "data:data mimeType:text",
}

// CheckPi reads a session file of pi's version 3 as strictly as its documents allow: the header, the
// fields of every type of entry, a tree with parents before their children, and results only for calls.
func CheckPi(file []byte) (PiCounts, error) {
	c := piCheck{parents: map[string]string{}, calls: map[string]bool{}}
	body, ended := bytes.CutSuffix(file, []byte("\n"))
	if !ended {
		return c.PiCounts, fmt.Errorf("the last line has no end")
	}
	for i, raw := range bytes.Split(body, []byte("\n")) {
		if err := c.line(i, raw); err != nil {
			return c.PiCounts, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	for at := c.last; at != ""; at = c.parents[at] {
		c.OnLeaf++
	}
	return c.PiCounts, nil
}

type piCheck struct {
	PiCounts
	parents map[string]string // of the entries so far
	calls   map[string]bool
	last    string
}

func (c *piCheck) line(i int, raw []byte) error {
	var l object
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	if _, err := time.Parse("2006-01-02T15:04:05.000Z", l.Text("timestamp")); err != nil {
		return fmt.Errorf("timestamp %s", l["timestamp"])
	}
	id := l.Text("id")
	if i == 0 {
		if l.Text("type") != "session" || string(l["version"]) != "3" || !piSessionID.MatchString(id) ||
			l.Need("cwd:text") != nil {
			return fmt.Errorf("this is no header of version 3: %s", raw)
		}
		return nil
	}
	parent := l.Text("parentId")
	_, again := c.parents[id]
	_, known := c.parents[parent]
	switch root := string(l["parentId"]) == "null"; {
	case !piEntryID.MatchString(id) || again:
		return fmt.Errorf("id %q is invalid or known", id)
	case root:
		c.Roots++
	case !known:
		return fmt.Errorf("parent %s does not come before it", l["parentId"])
	}
	c.parents[id], c.last = parent, id
	c.Entries++
	return c.entry(l)
}

func (c *piCheck) entry(l object) error {
	kind := l.Text("type")
	fields, known := piEntries[kind]
	if !known {
		c.Unknown++
	}
	if err := l.Need(fields); err != nil {
		return err
	}
	switch kind {
	case "message":
		c.Messages++
		return c.message(l.Inner("message"))
	case "compaction":
		if l["retainedTail"] == nil {
			return l.Need("firstKeptEntryId:text") // pi keeps nothing if it cannot find this entry
		}
	case "custom_message":
		return c.content(l, "", "text", "image")
	case "label", "context_edit":
		if _, ok := c.parents[l.Text("targetId")]; !ok {
			return fmt.Errorf("targetId %s does not come before it", l["targetId"])
		}
	case "usage":
		return checkPiUsage(l.Inner("usage"))
	}
	return nil
}

func (c *piCheck) message(m object) error {
	role := m.Text("role")
	wanted, known := piRoles[role]
	if !known {
		return fmt.Errorf("role %s", m["role"])
	}
	if err := m.Need(wanted.fields); err != nil {
		return err
	}
	var at int64
	if err := json.Unmarshal(m["timestamp"], &at); role != "system" && (err != nil || at <= 0) {
		return fmt.Errorf("timestamp %s is no time in milliseconds", m["timestamp"])
	}
	switch role {
	case "user":
		c.Users++
	case "assistant":
		c.Replies++
		if !slices.Contains([]string{"stop", "length", "toolUse", "error", "aborted", "deferred"}, m.Text("stopReason")) {
			return fmt.Errorf("stopReason %s", m["stopReason"])
		}
		if err := checkPiUsage(m.Inner("usage")); err != nil {
			return err
		}
	case "toolResult":
		c.Results++
		if !c.calls[m.Text("toolCallId")] {
			return fmt.Errorf("it answers the unknown call %s", m["toolCallId"])
		}
	}
	if wanted.blocks == nil {
		return nil
	}
	return c.content(m, wanted.blocks...)
}

// content checks the content of a message, and counts its calls. The type "" allows a text.
func (c *piCheck) content(m object, types ...string) error {
	if strings.HasPrefix(string(m["content"]), `"`) && slices.Contains(types, "") {
		return nil
	}
	blocks, err := listOf(m, "content")
	if err != nil {
		return err
	}
	for i, b := range blocks {
		kind := b.Text("type")
		if kind == "" || !slices.Contains(types, kind) {
			return fmt.Errorf("block %d is %s; it can be one of %q", i, b["type"], types)
		}
		if err := b.Need(piBlocks[kind]); err != nil {
			return fmt.Errorf("block %d (%s): %w", i, kind, err)
		}
		if kind == "toolCall" {
			c.calls[b.Text("id")] = true
			c.Calls++
		}
	}
	return nil
}

func checkPiUsage(u object) error {
	if err := u.Need("input:number output:number cacheRead:number cacheWrite:number cost:object"); err != nil {
		return err
	}
	return u.Inner("cost").Need("total:number")
}
