// Package callid gives calls of tools the ids that a provider takes. What it gives depends on
// nothing but the calls named before, so that a conversation that grows keeps its beginning.
package callid

import (
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Rule is the shape that a provider wants ids in.
type Rule string

// The rules.
const (
	Keep       Rule = "keep"        // as they came
	FixInvalid Rule = "fix_invalid" // A-Z a-z 0-9 _ -, 64 at most; any other by Strict
	Strict     Rule = "strict"      // letters and digits, 40 at most
	Strict9    Rule = "strict9"     // letters and digits, nine exactly
)

const (
	mostStrict = 40
	mostValid  = 64 // what Bedrock takes of the same form; Anthropic states no length
	exactly    = 9
	digits     = 8 // of a hash that tells two ids apart
)

// Names names the calls of one conversation, in their order. An id that a later call uses
// again gets a number behind it: some models count anew in each turn. The zero value keeps ids.
type Names struct {
	rule Rule
	sent map[string]string // by the id as it came: what the newest call of it is sent with
	used map[string]bool
	open map[string][]string // by the id as it came: what calls that wait for their results are sent with
}

// New makes Names of a rule.
func New(rule Rule) *Names { return &Names{rule: rule} }

// Call names a call. One without an id stays so.
func (n *Names) Call(id string) string {
	if id == "" {
		return ""
	}
	sent := n.form(id)
	if n.rule == Strict9 {
		for i := 0; n.used[sent]; i++ {
			sent = hash(id+":"+strconv.Itoa(i), exactly)
		}
		return n.call(id, sent)
	}
	_, again := n.sent[id]
	if n.used[sent] && !again && sent != id { // two ids became one
		sent = clip(sent, mostStrict-digits) + hash(id, digits)
	}
	base := sent
	for i := 2; n.used[sent]; i++ {
		sent = n.numbered(base, i)
	}
	return n.call(id, sent)
}

func (n *Names) call(id, sent string) string {
	if n.open == nil {
		n.open = map[string][]string{}
	}
	n.open[id] = append(n.open[id], sent)
	return n.take(id, sent)
}

// Answer returns the id of the call that the next result of an id answers: of several that came
// with one id, each in turn.
func (n *Names) Answer(id string) string {
	if waiting := n.open[id]; len(waiting) > 0 {
		n.open[id] = waiting[1:]
		return waiting[0]
	}
	return n.Result(id)
}

// Own notes a call under the id that the provider itself gave, which stays.
func (n *Names) Own(id string) string { return n.take(id, id) }

// Taken reports whether a call is sent with an id already.
func (n *Names) Taken(id string) bool { return n.used[id] }

// Result returns the id of the newest call that came with an id; of none, what the rule makes of it.
func (n *Names) Result(id string) string {
	if sent, called := n.sent[id]; called || id == "" {
		return sent
	}
	return n.form(id)
}

func (n *Names) take(id, sent string) string {
	if n.sent == nil {
		n.sent, n.used = map[string]string{}, map[string]bool{}
	}
	n.sent[id], n.used[sent] = sent, true
	return sent
}

// form applies the rule to one id.
func (n *Names) form(id string) string {
	switch n.rule {
	case Strict:
		return strict(id)
	case Strict9:
		plain := alphanumeric(id)
		if len(plain) < exactly {
			return hash(plain, exactly)
		}
		return plain[:exactly]
	case FixInvalid:
		if !Valid(id) || len(id) > mostValid {
			return strict(id)
		}
	}
	return id
}

func strict(id string) string {
	if plain := alphanumeric(id); plain != "" {
		return clip(plain, mostStrict)
	}
	return hash(id, digits)
}

// numbered puts a number behind an id that is used already.
func (n *Names) numbered(id string, i int) string {
	number := strconv.Itoa(i)
	switch n.rule {
	case Strict:
		return clip(id, mostStrict-len(number)) + number
	case FixInvalid:
		return clip(id, mostValid-len(number)-1) + "_" + number
	}
	return id + "_" + number
}

// Valid reports whether an id has no characters but A-Z a-z 0-9 _ -, and at least one.
func Valid(id string) bool { return id != "" && Legal(id, "_-", len(id)) == id }

func alphanumeric(id string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && plain(byte(r)) {
			return r
		}
		return -1
	}, id)
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func clip(s string, most int) string { return s[:min(len(s), most)] }

// hash names a text in hex digits of its SHA-1, as OpenClaw does: no secret hangs on it.
func hash(s string, digits int) string {
	sum := sha1.Sum([]byte(s))
	return hex.EncodeToString(sum[:])[:digits]
}

// LegalName writes a tool's name in the alphabet that providers share: A-Z a-z 0-9 _ -. Names of
// other programs may have dots and letters of any script: mcp.server.tool. One that is too long
// keeps its beginning and gets a tag.
func LegalName(name string, most int) string {
	legal := cmp.Or(Legal(name, "_-", len(name)), "_")
	if len(legal) > most {
		return TagName(legal, name, most)
	}
	return legal
}

// TagName ends a tool's name with a hash of the name that it stands for, so that two names that
// are written alike stay two.
func TagName(legal, name string, most int) string {
	return clip(legal, most-digits-1) + "_" + hash(name, digits)
}

// Legal writes an underscore for each character that is neither an ASCII letter or digit nor among marks, and keeps
// the first bytes.
func Legal(s, marks string, most int) string {
	return clip(strings.Map(func(r rune) rune {
		if r < 0x80 && plain(byte(r)) || strings.ContainsRune(marks, r) {
			return r
		}
		return '_'
	}, s), most)
}

// Short shortens an id that is too long: its beginning, and a hash for the rest. The same id
// gets the same short one.
func Short(id string, kept, most int) string {
	if len(id) <= most {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return strings.ToValidUTF8(id[:kept], "") + hex.EncodeToString(sum[:])[:most-kept]
}
