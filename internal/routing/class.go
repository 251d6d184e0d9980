package routing

import "strings"

// Type is a type of conversation that has a reset policy of its own.
type Type string

// The types.
const (
	TypeDirect Type = "dm"
	TypeGroup  Type = "group"
	TypeThread Type = "thread"
)

// Source is the origin of a key's traffic.
type Source string

// The sources.
const (
	SourceChat     Source = "chat"
	SourceCron     Source = "cron"
	SourceHook     Source = "hook"
	SourceSubagent Source = "subagent"
	SourceACP      Source = "acp" // an editor
)

// Class has the facts about a conversation that its key contains.
type Class struct {
	Type    Type
	Source  Source
	Channel string // "" if the key names none
	Parent  string // of a thread: the key before its last marker
}

// Classify returns the class of a key in any form.
func Classify(key string) Class {
	parts := fold(split(key))
	at := 0
	if len(parts) > 2 && parts[0] == "agent" {
		at = 2
	}
	rest := parts[at:]
	c := Class{Type: TypeDirect, Source: SourceChat}
	if len(rest) == 0 {
		return c
	}
	switch s := Source(rest[0]); s {
	case SourceCron, SourceHook, SourceSubagent, SourceACP:
		if len(rest) > 1 {
			c.Source = s
		}
	}
	word := func(i int) string {
		if i < len(rest) {
			return rest[i]
		}
		return ""
	}
	switch {
	case isGroup(word(0)) && len(rest) > 1: // the old form without a channel
		c.Type = TypeGroup
	case isGroup(word(1)) && len(rest) > 2:
		c.Type, c.Channel = TypeGroup, rest[0]
	case isDirect(word(1)) && len(rest) > 2, isDirect(word(2)) && len(rest) > 3:
		c.Channel = rest[0]
	}
	for i := len(rest) - 1; i > 0; i-- {
		if isMarker(rest, i) {
			c.Type, c.Parent = TypeThread, strings.Join(parts[:at+i], ":")
			break
		}
	}
	return c
}
