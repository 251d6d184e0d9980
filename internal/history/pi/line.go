package pi

import (
	"bytes"
	"encoding/base64"
	"strconv"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Line is what one line of a transcript says wherever it stands: where an entry stands, what a
// compaction hides and what a label marks is the reader's to decide.
type Line struct {
	Type    string          // message, compaction, …; of version 4 in the words of version 3
	Fields  jsonx.Object    // the line
	Inner   jsonx.Object    // its message, nil where there is none
	Message session.Message // without a parent and an external id
	Rest    history.Taker   // the fields of the line that Message does not hold
	Calls   []history.Call  // without external ids
	Raw     bool            // its type or role is not known: kept as it is

	shape string       // of the content
	edit  session.JSON // what the line changes in contexts after it
	bytes []byte       // the line, where it is no UTF-8
}

// ParseLine decodes a line that is one JSON object, nested no deeper than history.MaxDepth. before is
// the time of the line before, for one that has none. why says what is wrong with the line, "" if
// nothing is; then history.KeepRaw keeps it.
func ParseLine(raw []byte, version int, before session.Time) (l *Line, why string) {
	o, exact, ok := history.ParseLine(raw)
	switch {
	case !ok:
		return nil, "not a JSON object"
	case jsonx.DeeperThan(raw, history.MaxDepth):
		return nil, "nested too deep"
	}
	l = &Line{Type: typeOf(o, version), Fields: o, Inner: o.Inner("message"), Rest: history.Taker{Object: o}}
	l.Message = session.Message{
		Kind: session.KindMarker, Origin: session.Program, Display: true, Dialect: "pi",
		CreatedAt: before,
	}
	if at, ok := l.time(version); ok {
		l.Message.CreatedAt = at
	}
	if !exact {
		l.bytes = raw
	}
	l.content()
	return l, ""
}

// typeOf returns the type of a line in the words of version 3.
func typeOf(o jsonx.Object, version int) string {
	if version < 4 {
		return o.String("type")
	}
	switch o.String("kind") {
	case "entry":
		return o.String("type")
	case "fact":
		switch o.String("fact") {
		case "name":
			return lineInfo
		case "label":
			return lineLabel
		}
	case "lane":
		return lineLane
	case "record":
		return lineRecord
	}
	return "unknown" // no kind of any version
}

// time takes the line's time, else returns the message's.
func (l *Line) time(version int) (at session.Time, ok bool) {
	raw := l.Rest.Get("timestamp")
	if version == 4 {
		if at, ok = history.UnixMilli(raw); ok && string(raw) == strconv.FormatInt(at.UnixMilli(), 10) {
			l.Rest.Take("timestamp")
		}
		return at, ok
	}
	text, _ := jsonx.Text(raw)
	if at, ok = history.ParseTime(text); !ok {
		return history.UnixMilli(l.Inner.Get("timestamp"))
	}
	if len(text) == 24 && text[19] == '.' && text[23] == 'Z' { // spelled as pi does: 2006-01-02T15:04:05.000Z
		l.Rest.Take("timestamp")
	}
	return at, true
}

// content decodes the line by its type.
func (l *Line) content() {
	m := &l.Message
	switch l.Type {
	case lineMessage:
		l.talk()
	case lineCustomMessage:
		m.Kind, m.Role, m.InContext = session.KindCustomMessage, session.User, true
		m.Display = takeFlag(&l.Rest, "display", true)
		m.Parts, l.shape = contentOf(l.Rest.Take("content"))
	case lineBranchSummary:
		m.Kind, m.Role = session.KindBranchSummary, session.User
		l.summary(&l.Rest)
		l.bill(l.Rest.Get("usage"), session.PurposeBranchSummary, "", "")
	case lineCompaction:
		l.bill(l.Rest.Get("usage"), session.PurposeSummary, "", "")
	case lineUsage:
		l.bill(l.Rest.Get("usage"), session.PurposeOther, l.Rest.String("provider"), l.Rest.String("model"))
	case lineModel:
		m.Provider, m.Model = l.Rest.String("provider"), l.Rest.String("modelId")
	case lineCustom:
		m.Kind = session.KindCustom
	case lineLabel, lineContextEdit, lineThinking, lineInfo, lineActiveTools, lineLeaf, lineLane:
	default:
		m.Kind, l.Raw = session.KindUnknown, true
	}
}

// Extra writes {"line": Rest, …} with a note on what became of the line, and its hash.
func (l *Line) Extra(note, hash string) session.JSON {
	var extra jsonx.Object
	if len(l.Rest.Object) > 0 {
		extra = append(extra, field("line", rawJSON(l.Rest.Column())))
	}
	add := func(key, value string) {
		if value != "" {
			extra = append(extra, field(key, value))
		}
	}
	add("shape", l.shape)
	add("note", note)
	add("hash", hash)
	if l.edit != nil {
		extra = append(extra, field("context_edit", rawJSON(l.edit)))
	}
	add("bytes", base64.StdEncoding.EncodeToString(l.bytes))
	return extra.Column()
}

// Fingerprint returns what the line says, whatever id and parent it has and whichever of the versions
// 1 to 3 wrote it.
func (l *Line) Fingerprint() string { return fingerprint(l.Fields, 3) }

// fingerprint returns what an entry says, whatever id it has and whichever version wrote it.
// Copies of an entry in other files have the same, so that its usage counts once.
func fingerprint(o jsonx.Object, version int) string {
	if bytes.Contains(o.Get("message"), []byte("hookMessage")) {
		message := o.Inner("message")
		if message.String("role") == "hookMessage" {
			o = o.With("message", message.With("role", []byte(`"custom"`)).Column())
		}
	}
	if version == 4 { // a copy has other numbers and no lane
		o = o.Without("seq", "lane")
	}
	return jsonx.Fingerprint(o, "id", "parentId", "firstKeptEntryId", "firstKeptEntryIndex")
}

// Time reads a line's ISO time, or a number of milliseconds since 1970.
func Time(raw []byte) (session.Time, bool) {
	text, _ := jsonx.Text(raw)
	if at, ok := history.ParseTime(text); ok {
		return at, true
	}
	return history.UnixMilli(raw)
}

// Whole reads a whole number.
func Whole(raw []byte) (int64, bool) {
	n, ok := history.Number(raw)
	return int64(n), ok && n >= -1e15 && n <= 1e15
}

// Texts returns the strings of an array that are not empty.
func Texts(raw []byte) []string {
	texts := []string{}
	elements, _ := jsonx.ReadArray(raw)
	for _, element := range elements {
		if text, _ := jsonx.Text(element); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// takeFlag takes a field that is a boolean; or is its value when it is absent or none.
func takeFlag(t *history.Taker, key string, or bool) bool {
	switch string(t.Get(key)) {
	case "true", "false":
		return string(t.Take(key)) == "true"
	}
	return or
}

// field returns a member; raw JSON stays as it is.
func field(key string, v any) jsonx.Member {
	if raw, ok := v.(rawJSON); ok {
		return jsonx.Member{Key: key, Value: raw}
	}
	return jsonx.MemberOf(key, v)
}
