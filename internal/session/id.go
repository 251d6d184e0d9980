package session

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ID names a session: YYYYMMDD_NNN, the local day of its creation and a counter that is
// never reused. NNN has at least three digits and grows past 999. Order sessions by time,
// never by ID.
type ID string

// NewID returns the ID of the n-th session of a day, YYYY-MM-DD.
func NewID(day string, n int64) ID {
	return ID(fmt.Sprintf("%s_%03d", strings.ReplaceAll(day, "-", ""), n))
}

// ParseID checks that s has the form of an ID. Codes: Invalid.
func ParseID(s string) (ID, error) {
	day, n, ok := strings.Cut(s, "_")
	if ok && len(day) == 8 && len(n) >= 3 && len(n) <= 18 && isDigits(n) && (len(n) == 3 || n[0] != '0') {
		if _, err := time.Parse("20060102", day); err == nil {
			return ID(s), nil
		}
	}
	return "", Errorf(Invalid, "%q is not a session id; it looks like 20260211_001", clip(s, 60))
}

// MessageRef names a message outside the database by its session and its seq: 20260211_001.42.
type MessageRef struct {
	Session ID
	Seq     int64
}

func (r MessageRef) String() string {
	if r == (MessageRef{}) {
		return ""
	}
	return string(r.Session) + "." + strconv.FormatInt(r.Seq, 10)
}

// MarshalText implements encoding.TextMarshaler, so that JSON has the written form.
func (r MessageRef) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *MessageRef) UnmarshalText(b []byte) error {
	ref, err := ParseRef(string(b))
	*r = ref
	return err
}

// Scan implements sql.Scanner: a query names the message in its written form.
func (r *MessageRef) Scan(src any) error {
	name, ok := src.(string)
	if !ok {
		return Errorf(NotFound, "a message that should be there is gone: run `sessiond doctor`")
	}
	return r.UnmarshalText([]byte(name))
}

// ParseRef parses the written form of a MessageRef. Codes: Invalid.
func ParseRef(s string) (MessageRef, error) {
	id, n, ok := strings.Cut(s, ".")
	if ok {
		sid, err := ParseID(id)
		seq, errSeq := strconv.ParseInt(n, 10, 64)
		if err == nil && errSeq == nil && seq > 0 && isDigits(n) {
			return MessageRef{Session: sid, Seq: seq}, nil
		}
	}
	return MessageRef{}, Errorf(Invalid, "%q is not a message id; it looks like 20260211_001.42", clip(s, 60))
}

// seqKey begins a key that names a message without an external id by its seq.
const seqKey = "\x00seq:"

// SeqKey returns a key for a message that has no external id.
func SeqKey(seq int64) string { return seqKey + strconv.FormatInt(seq, 10) }

// SeqOfKey returns the seq of such a key; 0: it is an external id.
func SeqOfKey(key string) int64 {
	digits, is := strings.CutPrefix(key, seqKey)
	if !is {
		return 0
	}
	seq, _ := strconv.ParseInt(digits, 10, 64) // SeqKey wrote it
	return seq
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// clip shortens an input in an error message.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
