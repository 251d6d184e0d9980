package routing

import (
	"strings"
	"time"
	"unicode"
)

// Kinds of rows in a list of keys.
const (
	RowDirect  = "direct"
	RowGroup   = "group"
	RowGlobal  = "global"
	RowUnknown = "unknown"
)

// Names are what connectors tell of a conversation, beside its key.
type Names struct {
	DisplayName  string `json:"displayName"`
	Label        string `json:"label"` // given by a person
	Subject      string `json:"subject"`
	GroupChannel string `json:"groupChannel"`
	Space        string `json:"space"`
	GroupID      string `json:"groupId"`
	Channel      string `json:"channel"`
	ChatType     string `json:"chatType"`
	Origin       struct {
		Label string `json:"label"`
	} `json:"origin"`
}

// RowKind tells what kind of row a key is, by its chat type or by itself.
func RowKind(key string, n *Names) string {
	switch key {
	case GlobalKey, UnknownKey:
		return key
	}
	if isGroup(strings.ToLower(n.ChatType)) {
		return RowGroup
	}
	if kind, _, _ := groupOf(key); kind != "" {
		return RowGroup
	}
	return RowDirect
}

// groupOf gives the kind, channel and id of a group's key; "" for others.
func groupOf(key string) (kind, channel, id string) {
	k, ok := Parse(key)
	if !ok {
		return "", "", ""
	}
	rest := split(k.Rest)
	for i := 1; i < len(rest); i++ {
		if isMarker(rest, i) {
			rest = rest[:i]
			break
		}
	}
	if len(rest) < 3 || !isGroup(rest[1]) {
		return "", "", ""
	}
	return rest[1], rest[0], strings.Join(rest[2:], ":")
}

// DisplayName gives what a list calls a conversation: the stored name, else for groups the
// channel with what is known of the group, else the label, else where it came from; "" when
// nothing is known.
func DisplayName(key string, n *Names) string {
	if n.DisplayName != "" {
		return n.DisplayName
	}
	if RowKind(key, n) == RowGroup {
		_, channel, id := groupOf(key)
		channel = orElse(strings.ToLower(n.Channel), channel)
		space, group := slug(n.Space), strings.TrimLeft(slug(n.GroupChannel), "#")
		label := ""
		switch {
		case group != "":
			label = space + "#" + group
		case slug(n.Subject) != "":
			label = slug(n.Subject)
		case space != "":
			label = space
		default:
			label = slug(orElse(n.GroupID, id))
		}
		if label != "" && channel != "" {
			if !strings.ContainsAny(label, "#@") && !strings.HasPrefix(label, "g-") {
				label = "g-" + label
			}
			return channel + ":" + label
		}
	}
	return orElse(n.Label, n.Origin.Label)
}

// slug folds a name into one word: letters and digits of every script stay.
func slug(name string) string {
	return strings.Trim(dashed(name, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("#@._+-", r)
	}), "-")
}

// titleRunes is how long a title in a list may be, without the mark of what was cut.
const titleRunes = 60

// Title gives what a list shows of a conversation: its name, else its subject, else what the
// person said first, on one line and cut at a word, else its id and day.
func Title(displayName, subject, firstMessage, id string, updated time.Time) string {
	for _, s := range []string{displayName, subject, firstMessage} {
		if s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " "); s != "" {
			return cutAtWord(s)
		}
	}
	if len(id) > 8 {
		id = id[:8]
	}
	return id + " (" + updated.UTC().Format(time.DateOnly) + ")"
}

func cutAtWord(s string) string {
	runes := []rune(s)
	if len(runes) <= titleRunes {
		return s
	}
	cut := string(runes[:titleRunes-1])
	if at := strings.LastIndexByte(cut, ' '); at > len(cut)*6/10 {
		cut = cut[:at]
	}
	return strings.TrimSpace(cut) + "…"
}
