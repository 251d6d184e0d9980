package pi

import (
	"encoding/base64"
	"math"
	"strconv"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// entry is what one line becomes.
type entry struct {
	message    history.Message
	calls      []history.Call
	compaction *history.Compaction
	raw        bool // not understood, kept as it is
	problem    string
}

// decoder turns lines into entries, in the order in which they are stored.
type decoder struct {
	*survey
	directory string
	last      session.Time   // for lines without a time
	marks     []history.Mark // labels, also of entries that come after them
}

// maxDepth is how deep a line may be nested to be taken apart. SQLite's JSON ends at 1000.
const maxDepth = 256

// note is what sessiond adds to a line's own fields, beside them in extra.
type note struct {
	shape, text, hash string
	edit              session.JSON // what the line changes in contexts after it
	bytes             []byte
}

// decode reads the line of an entry.
func (d *decoder) decode(i int32, line []byte) history.Decoded {
	e := d.entry(i, line)
	made := history.Decoded{Messages: []history.Message{e.message}, Calls: e.calls, Raw: e.raw}
	if e.compaction != nil {
		made.Compactions = []history.Compaction{*e.compaction}
	}
	switch {
	case e.problem != "":
		made.Problem = e.problem + "; kept raw"
	case d.nodes[i].cut == cutCycle:
		made.Problem = "its parent is one of its own descendants: the cycle is cut here"
	}
	return made
}

func (d *decoder) entry(i int32, line []byte) entry {
	n := &d.nodes[i]
	if n.kind == entryBroken {
		return d.verbatim(i, line, "not a JSON object")
	}
	t, exact, ok := history.ParseTalk(line)
	switch {
	case !ok:
		return d.verbatim(i, line, "changed while it was read")
	case history.DeeperThan(line, maxDepth):
		return d.verbatim(i, line, "nested too deep")
	}
	rest := take(t.Object)
	rest.message, rest.blocks = t.Message, t.Blocks
	e := entry{}
	m := &e.message.Message
	*m = session.Message{
		Kind: session.KindMarker, Origin: session.Program, Display: true,
		Dialect: "pi", ExternalID: n.key, CreatedAt: d.time(&rest),
	}
	var remark note
	d.place(i, &rest, &remark)
	d.content(i, &rest, &e, &remark)
	says := ""
	if d.version == 1 || len(e.calls) > 0 {
		says = fingerprint(t.Object, d.version)
	}
	if d.version == 1 {
		remark.hash = says
	}
	for i := range e.calls {
		e.calls[i].ExternalID = "pi:" + says
		e.calls[i].MessageKey = m.ExternalID
		e.calls[i].Source = session.SourcePi
		e.calls[i].Directory = d.directory
		e.calls[i].CreatedAt = m.CreatedAt
	}
	if !exact {
		remark.bytes = line
	}
	m.Extra = extraOf(rest.Object, remark)
	return e
}

// content dispatches by the kind of line.
func (d *decoder) content(i int32, rest *taker, e *entry, remark *note) {
	m := &e.message.Message
	switch typeOf(rest.Object, d.version) {
	case lineMessage:
		d.talk(rest, e, remark)
	case lineCustomMessage:
		m.Kind, m.Role, m.InContext = session.KindCustomMessage, session.User, true
		m.Display = rest.flag("display", true)
		m.Parts, remark.shape = contentOf(rest.take("content"))
	case lineBranchSummary:
		m.Kind, m.Role = session.KindBranchSummary, session.User
		d.summary(rest, m)
		e.bill(rest.Get("usage"), session.PurposeBranchSummary, "", "")
	case lineCompaction:
		if e.compaction = d.compaction(i, rest.Object); e.compaction == nil {
			remark.text = "nothing stands before what it keeps"
		} else {
			e.compaction.CreatedAt = m.CreatedAt
		}
		e.bill(rest.Get("usage"), session.PurposeSummary, "", "")
	case lineUsage:
		e.bill(rest.Get("usage"), session.PurposeOther, rest.String("provider"), rest.String("model"))
	case lineModel:
		m.Provider, m.Model = rest.String("provider"), rest.String("modelId")
	case lineLabel:
		target, ok := d.find(rest.String("targetId"))
		if !ok {
			remark.text = "labels an entry that is not in the file"
			break
		}
		text, _ := history.Text(rest.Get("label"))
		d.marks = append(d.marks, history.Mark{MessageKey: d.keyOf(target), Kind: "label", Text: text})
	case lineCustom:
		m.Kind = session.KindCustom
	case lineRecord:
		m.Kind, e.raw = session.KindUnknown, true
		d.recorded(rest, e)
	case lineContextEdit:
		d.edit(i, rest.Object, remark)
	case lineThinking, lineInfo, lineActiveTools, lineLeaf, lineLane:
	default:
		m.Kind, e.raw = session.KindUnknown, true
	}
}

// place keeps what the line says of its place where the stored parent does not say it.
func (d *decoder) place(i int32, rest *taker, remark *note) {
	n := &d.nodes[i]
	if n.id != "" && n.key == n.id {
		rest.take("id")
	}
	switch n.cut {
	case cutOrphan:
		remark.text = "its parent is not in the file before it"
	case cutSelf:
		remark.text = "it named itself as its parent"
	case cutCycle:
		remark.text = "its parent is one of its own descendants"
	case uncut:
		if n.kind.aside() {
			break
		}
		link := ""
		if d.version > 1 {
			link = rest.String("parentId")
		}
		if d.keyOf(n.parent) == link && (link != "" || string(rest.Get("parentId")) == "null") {
			rest.take("parentId")
		}
	}
}

// verbatim keeps a line as text, out of the context.
func (d *decoder) verbatim(i int32, line []byte, why string) entry {
	e := entry{raw: true, problem: why}
	e.message.Message = session.Message{
		Kind: session.KindUnknown, Origin: session.Program, Display: true, Dialect: "pi",
		ExternalID: d.keyOf(i), CreatedAt: d.last,
		Parts: []session.Part{{Kind: session.PartData, Text: history.Plain(line)}},
	}
	remark := note{text: why}
	if e.message.Parts[0].Text != string(line) {
		remark.bytes = line
	}
	e.message.Extra = extraOf(nil, remark)
	return e
}

// extraOf writes {"line": the line's fields that no column holds, …sessiond's notes}.
func extraOf(line history.Object, n note) session.JSON {
	var extra history.Object
	if len(line) > 0 {
		extra = append(extra, history.Field{Key: "line", Raw: rawJSON(line.JSON())})
	}
	add := func(key, value string) {
		if value != "" {
			extra = append(extra, history.Field{Key: key, Raw: rawJSON(session.JSONOf(value))})
		}
	}
	add("shape", n.shape)
	add("note", n.text)
	add("hash", n.hash)
	if n.edit != nil {
		extra = append(extra, history.Field{Key: "context_edit", Raw: rawJSON(n.edit)})
	}
	if n.bytes != nil {
		add("bytes", base64.StdEncoding.EncodeToString(n.bytes))
	}
	return extra.JSON()
}

// time takes the line's time, else the message's, else that of the entry before.
func (d *decoder) time(rest *taker) session.Time {
	text := rest.String("timestamp")
	at, ok := parseTime(text)
	if d.version == 4 {
		at, ok = unixMilli(rest.Get("timestamp"))
		if ok && string(rest.Get("timestamp")) == strconv.FormatInt(at.UnixMilli(), 10) {
			rest.take("timestamp")
		}
	} else if ok {
		if isStamp(text) {
			rest.take("timestamp")
		}
	} else if message, is := history.Fields(rest.Get("message")); is {
		at, ok = unixMilli(message.Get("timestamp"))
	}
	if ok {
		d.last = at
	}
	return d.last
}

// isStamp reports whether a time is spelled as pi does, in UTC and milliseconds:
// 2006-01-02T15:04:05.000Z.
func isStamp(time string) bool { return len(time) == 24 && time[19] == '.' && time[23] == 'Z' }

func parseTime(text string) (session.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, text)
	return session.At(at), err == nil && at.UTC().Year() >= 1970 && at.UTC().Year() <= 9999
}

func unixMilli(raw []byte) (session.Time, bool) {
	ms, ok := number(raw)
	if !ok || ms <= 0 || ms > 253402300799999 { // the year 9999
		return session.Time{}, false
	}
	return session.At(time.UnixMilli(int64(math.Round(ms)))), true
}
