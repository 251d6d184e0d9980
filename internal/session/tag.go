package session

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of tags and notes, in characters.
const (
	MaxTag  = 64
	MaxNote = 10_000
)

// CheckTag returns the stored form of a tag. Codes: Invalid.
func CheckTag(text string) (string, error) {
	text = strings.TrimSpace(text)
	switch n := utf8.RuneCountInString(text); {
	case n == 0:
		return "", Errorf(Invalid, "a tag needs a text").At("text", "must not be empty")
	case n > MaxTag:
		return "", Errorf(Invalid, "the tag has %d characters; the limit is %d", n, MaxTag).
			At("text", "at most %d characters", MaxTag)
	case !utf8.ValidString(text), strings.ContainsFunc(text, unicode.IsControl):
		return "", Errorf(Invalid, "the tag has a control character or is not UTF-8").At("text", "no control characters")
	}
	return text, nil
}

// CheckNote returns the stored form of a note; "" is none. Codes: Invalid.
func CheckNote(text string) (string, error) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	if n := utf8.RuneCountInString(text); n > MaxNote {
		return "", Errorf(Invalid, "the note has %d characters; the limit is %d", n, MaxNote).
			At("text", "at most %d characters", MaxNote)
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return "", Errorf(Invalid, "the note has a NUL or is not UTF-8").At("text", "no NUL")
	}
	return text, nil
}

// Tags are the tags of a session, in the order in which they were set.
type Tags []string

// TagSeparator is between the tags that a statement puts together for Tags.Scan, each after its place and a space.
const TagSeparator = "\x1f"

// Scan implements sql.Scanner.
func (t *Tags) Scan(value any) error {
	*t = nil
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case []byte:
		text = string(v)
	}
	if text == "" {
		return nil
	}
	type placed struct {
		at  int64
		tag string
	}
	var all []placed
	for entry := range strings.SplitSeq(text, TagSeparator) {
		at, tag, _ := strings.Cut(entry, " ")
		n, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return Errorf(Internal, "a tag has no place: %q", entry)
		}
		all = append(all, placed{n, tag})
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	for _, p := range all {
		*t = append(*t, p.tag)
	}
	return nil
}

// Mark is a pin, a tag or a note that a person put on a session or on a message of its tree.
type Mark struct {
	Session  ID          `db:"session_id" json:"-"`
	Message  *MessageRef `db:"message" json:"message_id,omitempty" doc:"The marked message; missing: the session itself"`
	Row      int64       `db:"message_id" json:"-"` // of the message
	Kind     string      `db:"kind" json:"kind" doc:"pin, tag or note"`
	Text     string      `db:"text" json:"text,omitempty" doc:"The tag, or the note's text"`
	Place    int64       `db:"place" json:"-"` // of a tag among those of its message; 0: its label
	Revision int64       `db:"revision" json:"revision,omitempty" doc:"Of a note: its ETag"`
	At       Time        `db:"created_at" json:"created_at" doc:"Time it was set"`
}
