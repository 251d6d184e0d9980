package routing

import (
	"cmp"
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

// Names are a conversation's names as its connector sends them.
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

// RowKind returns the kind of a key's row, by its chat type or by the key.
func RowKind(key string, n *Names) string {
	switch key {
	case GlobalKey, UnknownKey:
		return key
	}
	if isGroup(strings.ToLower(n.ChatType)) {
		return RowGroup
	}
	if _, _, ok := parseGroup(key); ok {
		return RowGroup
	}
	return RowDirect
}

// parseGroup returns the channel and the id of a group's key. ok is false for other keys.
func parseGroup(key string) (channel, id string, ok bool) {
	k, ok := Parse(key)
	if !ok {
		return "", "", false
	}
	rest := split(k.Rest)
	for i := 1; i < len(rest); i++ {
		if isMarker(rest, i) {
			rest = rest[:i]
			break
		}
	}
	if len(rest) < 3 || !isGroup(rest[1]) {
		return "", "", false
	}
	return rest[0], strings.Join(rest[2:], ":"), true
}

// DisplayName returns the name of a conversation in a list: the stored name, else a group's channel
// and name, else the label, else the origin's label; "" when all are missing.
func DisplayName(key string, n *Names) string {
	if n.DisplayName != "" {
		return n.DisplayName
	}
	if RowKind(key, n) == RowGroup {
		channel, id, _ := parseGroup(key)
		channel = cmp.Or(strings.ToLower(n.Channel), channel)
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
			label = slug(cmp.Or(n.GroupID, id))
		}
		if label != "" && channel != "" {
			if !strings.ContainsAny(label, "#@") && !strings.HasPrefix(label, "g-") {
				label = "g-" + label
			}
			return channel + ":" + label
		}
	}
	return cmp.Or(n.Label, n.Origin.Label)
}

// slug returns a name as one word in lower case: letters and digits of every script stay.
func slug(name string) string {
	return strings.Trim(dashed(name, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("#@._+-", r)
	}), "-")
}

// titleRunes is the limit of a title in a list, without the ellipsis.
const titleRunes = 60

// Title returns the title of a conversation in a list: its name, else its subject, else the
// beginning of the first message, on one line and cut at a word, else its id and day.
func Title(displayName, subject, firstMessage, id string, updated time.Time) string {
	for _, s := range []string{displayName, subject, firstMessage} {
		if s = strings.Join(strings.FieldsFunc(s, func(r rune) bool {
			return unicode.IsSpace(r) || unicode.IsControl(r)
		}), " "); s != "" {
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
