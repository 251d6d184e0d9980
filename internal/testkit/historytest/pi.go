package historytest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// PiCounts is what a file of pi holds.
type PiCounts struct {
	Entries, Messages, Users, Replies, Results, Calls, Roots int
	OnLeaf                                                   int // entries on the path of the leaf
	Unknown                                                  int // entries of kinds that the documents do not name
}

type piLine struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Version   int             `json:"version"`
	ParentID  *string         `json:"parentId"`
	Timestamp string          `json:"timestamp"`
	Message   json.RawMessage `json:"message"`
	raw       map[string]json.RawMessage
}

var (
	piSessionID = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	piEntryID   = regexp.MustCompile(`^([0-9a-f]{8}|[0-9a-f-]{36})$`)
)

// CheckPi reads a session file of pi's version 3 as strictly as its documents allow: the header,
// what every entry and every kind of entry must have, a tree whose parents stand before their
// children, and results only for calls.
func CheckPi(file []byte) (PiCounts, error) {
	var c PiCounts
	if !bytes.HasSuffix(file, []byte("\n")) {
		return c, fmt.Errorf("the last line has no end")
	}
	parents, calls, last := map[string]*string{}, map[string]bool{}, ""
	for i, raw := range bytes.Split(bytes.TrimSuffix(file, []byte("\n")), []byte("\n")) {
		var l piLine
		if err := json.Unmarshal(raw, &l); err != nil {
			return c, fmt.Errorf("line %d: %w", i+1, err)
		}
		if err := json.Unmarshal(raw, &l.raw); err != nil {
			return c, fmt.Errorf("line %d: %w", i+1, err)
		}
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", l.Timestamp); err != nil {
			return c, fmt.Errorf("line %d: timestamp %q", i+1, l.Timestamp)
		}
		if i == 0 {
			if l.Type != "session" || l.Version != 3 || !piSessionID.MatchString(l.ID) || text(l.raw["cwd"]) == nil {
				return c, fmt.Errorf("line 1 is no header of version 3: %s", raw)
			}
			continue
		}
		if !piEntryID.MatchString(l.ID) {
			return c, fmt.Errorf("line %d: id %q", i+1, l.ID)
		}
		if _, again := parents[l.ID]; again {
			return c, fmt.Errorf("line %d: id %s again", i+1, l.ID)
		}
		if _, has := l.raw["parentId"]; !has {
			return c, fmt.Errorf("line %d: no parentId", i+1)
		}
		if l.ParentID == nil {
			c.Roots++
		} else if _, known := parents[*l.ParentID]; !known {
			return c, fmt.Errorf("line %d: parent %s stands not before it", i+1, *l.ParentID)
		}
		parents[l.ID], last = l.ParentID, l.ID
		c.Entries++
		if err := c.entry(&l, parents, calls); err != nil {
			return c, fmt.Errorf("line %d (%s): %w", i+1, l.Type, err)
		}
	}
	for at := &last; at != nil && *at != ""; at = parents[*at] {
		c.OnLeaf++
	}
	return c, nil
}

func (c *PiCounts) entry(l *piLine, entries map[string]*string, calls map[string]bool) error {
	named := func(key string) error {
		id := text(l.raw[key])
		if id == nil {
			return fmt.Errorf("%s is missing", key)
		}
		if _, ok := entries[*id]; !ok {
			return fmt.Errorf("%s names %q, which is not before it", key, *id)
		}
		return nil
	}
	texts := func(keys ...string) error {
		for _, key := range keys {
			if text(l.raw[key]) == nil {
				return fmt.Errorf("%s is no text: %s", key, l.raw[key])
			}
		}
		return nil
	}
	switch l.Type {
	case "message":
		c.Messages++
		return c.message(l.Message, calls)
	case "model_change":
		return texts("provider", "modelId")
	case "thinking_level_change":
		return texts("thinkingLevel")
	case "compaction":
		if err := texts("summary"); err != nil {
			return err
		}
		var tokens float64
		if json.Unmarshal(l.raw["tokensBefore"], &tokens) != nil {
			return fmt.Errorf("tokensBefore: %s", l.raw["tokensBefore"])
		}
		if l.raw["retainedTail"] != nil {
			return nil
		}
		return texts("firstKeptEntryId") // that pi cannot find keeps nothing
	case "branch_summary":
		return texts("fromId", "summary")
	case "custom":
		return texts("customType")
	case "custom_message":
		var display bool
		if err := json.Unmarshal(l.raw["display"], &display); err != nil {
			return fmt.Errorf("display: %w", err)
		}
		_, err := blocks(l.raw["content"], true, "text", "image")
		return firstOf(texts("customType"), err)
	case "label":
		return named("targetId")
	case "session_info", "active_tools_change", "leaf":
		return nil
	case "usage":
		return firstOf(texts("kind", "provider", "model"), usage(l.raw["usage"]))
	case "context_edit":
		return named("targetId")
	}
	c.Unknown++
	return nil
}

func (c *PiCounts) message(raw json.RawMessage, calls map[string]bool) error {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	var role string
	if err := json.Unmarshal(m["role"], &role); err != nil {
		return fmt.Errorf("role: %w", err)
	}
	var at int64
	if err := json.Unmarshal(m["timestamp"], &at); role != "system" && (err != nil || at <= 0) {
		return fmt.Errorf("timestamp %s is no time in milliseconds", m["timestamp"])
	}
	switch role {
	case "user":
		c.Users++
		_, err := blocks(m["content"], true, "text", "image")
		return err
	case "assistant":
		c.Replies++
		for _, key := range []string{"api", "provider", "model"} {
			if s := text(m[key]); s == nil || *s == "" {
				return fmt.Errorf("%s is missing", key)
			}
		}
		stop := text(m["stopReason"])
		if stop == nil || !slices.Contains([]string{"stop", "length", "toolUse", "error", "aborted", "deferred"}, *stop) {
			return fmt.Errorf("stopReason %s", m["stopReason"])
		}
		found, err := blocks(m["content"], false, "text", "thinking", "toolCall")
		for _, id := range found {
			calls[id] = true
			c.Calls++
		}
		return firstOf(err, usage(m["usage"]))
	case "toolResult":
		c.Results++
		id, name := text(m["toolCallId"]), text(m["toolName"])
		if id == nil || name == nil || *name == "" {
			return fmt.Errorf("no toolCallId or toolName")
		}
		if !calls[*id] {
			return fmt.Errorf("it answers %q, which nobody called", *id)
		}
		var failed bool
		if err := json.Unmarshal(m["isError"], &failed); err != nil {
			return fmt.Errorf("isError: %w", err)
		}
		_, err := blocks(m["content"], false, "text", "image")
		return err
	case "system":
		_, err := blocks(m["content"], true, "text")
		return err
	case "bashExecution":
		if text(m["command"]) == nil || text(m["output"]) == nil {
			return fmt.Errorf("no command or output")
		}
		return nil
	case "custom":
		_, err := blocks(m["content"], true, "text", "image")
		return err
	case "branchSummary", "compactionSummary":
		return nil
	}
	return fmt.Errorf("role %q", role)
}

// blocks checks a content and gives the ids of its calls.
func blocks(raw json.RawMessage, orText bool, kinds ...string) (calls []string, err error) {
	if orText && text(raw) != nil {
		return nil, nil
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || list == nil {
		return nil, fmt.Errorf("content is no list of blocks: %.80s", raw)
	}
	for i, b := range list {
		kind := text(b["type"])
		if kind == nil || !slices.Contains(kinds, *kind) {
			return nil, fmt.Errorf("block %d is %s; it can be one of %v", i, b["type"], kinds)
		}
		ok := true
		switch *kind {
		case "text":
			ok = text(b["text"]) != nil
		case "thinking":
			ok = text(b["thinking"]) != nil
		case "toolCall":
			var arguments map[string]json.RawMessage
			id, name := text(b["id"]), text(b["name"])
			if ok = id != nil && name != nil && json.Unmarshal(b["arguments"], &arguments) == nil && arguments != nil; ok {
				calls = append(calls, *id)
			}
		case "image":
			data, mime := text(b["data"]), text(b["mimeType"])
			if ok = data != nil && mime != nil; ok {
				_, err := base64.StdEncoding.DecodeString(*data)
				ok = err == nil
			}
		}
		if !ok {
			return nil, fmt.Errorf("block %d (%s) is not whole", i, *kind)
		}
	}
	return calls, nil
}

// usage may be absent in damaged files only; its counts are numbers.
func usage(raw json.RawMessage) error {
	var u struct {
		Input, Output, CacheRead, CacheWrite *float64
		Cost                                 *struct{ Total *float64 }
	}
	if err := json.Unmarshal(raw, &u); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	if u.Input == nil || u.Output == nil || u.CacheRead == nil || u.CacheWrite == nil || u.Cost == nil || u.Cost.Total == nil {
		return fmt.Errorf("usage is not whole: %s", raw)
	}
	return nil
}

func text(raw json.RawMessage) *string {
	var s *string
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return s
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
