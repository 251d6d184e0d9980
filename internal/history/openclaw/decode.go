package openclaw

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/history/pi"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
	"sessiond/internal/usage"
)

// decode reads an entry again and turns it into a message.
func (r *reader) decode(i int32) history.Decoded {
	n := &r.Nodes[i]
	raw := r.Raw(i)
	before := r.last
	if n.Made > 0 {
		before = session.At(time.UnixMilli(n.Made))
	}
	l, why := pi.ParseLine(raw, 3, before)
	if why != "" {
		return history.KeepRaw(raw, why, session.SourcePi, before)
	}
	m := &l.Message
	if at, ok := timeOf(l.Fields, n.Made); ok {
		m.CreatedAt = at
	}
	r.last = m.CreatedAt
	var made history.Decoded
	note := ""
	var overlay *history.Compaction
	switch n.Kind {
	case pi.Reset:
		m.Kind, l.Raw = session.KindMarker, false
		overlay = r.resetOf(i, l)
	case pi.Compaction:
		overlay = r.compaction(i, l)
	case pi.Leaf, pi.Unknown:
		m.Kind, m.InContext, l.Raw = session.KindUnknown, false, true
	}
	switch {
	case overlay != nil:
		made.Compactions = []history.Compaction{*overlay}
	case n.Kind.Boundary():
		note = "nothing stands before what it keeps"
	case l.Type == lineLabel:
		if mark := r.label(i, l.Fields); mark != nil {
			made.Marks = []history.Mark{*mark}
		} else {
			m.Kind, l.Raw, note = session.KindUnknown, true, "labels an entry that is not in the transcript before it"
		}
	case l.Type == lineMessage:
		converse(l)
	}
	if n.Stale {
		note = "its parent is not in the transcript before it"
	}
	hash := ""
	if n.ID == "" && r.Version == 1 {
		hash = l.Fingerprint()
	}
	r.OmitPlace(i, l)
	m.Extra = l.Extra(note, hash)
	for k := range l.Calls {
		r.NameModel(i, &l.Calls[k].Call)
	}
	r.bill(l, n.Key)
	made.Messages, made.Calls, made.Raw = []history.Message{{Message: *m}}, l.Calls, l.Raw
	return made
}

// compaction turns the record into an overlay. OpenClaw gives a model the summary, then the
// path from the first kept entry on. When that entry is not on the record's path nothing before the
// record is kept; and when nothing stands before the record, which is so where a transcript was cut,
// the record itself is all that it hides.
func (r *reader) compaction(i int32, l *pi.Line) *history.Compaction {
	o := l.Fields
	c := r.Overlay(i, r.FirstKept(i, o), l.Message.CreatedAt)
	if c == nil {
		return nil
	}
	c.Strategy = session.StrategySummarize
	c.Summary = o.String("summary")
	c.TokensBefore = history.Count(o.Get("tokensBefore"))
	c.Details = pi.Details(o)
	return c
}

// resetOf turns the record into an overlay without a summary: the conversation began anew, with
// what the record says was kept.
func (r *reader) resetOf(i int32, l *pi.Line) *history.Compaction {
	c := r.Overlay(i, r.FirstKept(i, l.Fields), l.Message.CreatedAt)
	if c == nil {
		return nil
	}
	c.Strategy = session.StrategyClear
	if reason := l.Fields.String("reason"); reason != "" {
		c.Reason = "reset: " + reason
	}
	return c
}

// timeOf returns a line's time: its own, else its message's, else the database's, in
// milliseconds since 1970.
func timeOf(o jsonx.Object, made int64) (session.Time, bool) {
	if at, ok := pi.Time(o.Get("timestamp")); ok {
		return at, true
	}
	if at, ok := pi.Time(o.Inner("message").Get("timestamp")); ok {
		return at, true
	}
	return session.At(time.UnixMilli(made)), made > 0
}

// label marks the entry that a line names, if that comes before it.
func (r *reader) label(i int32, o jsonx.Object) *history.Mark {
	target := r.FindBefore(o.String("targetId"), i)
	if target < 0 {
		return nil
	}
	text, _ := jsonx.Text(o.Get("label"))
	return &history.Mark{MessageKey: r.KeyOf(target), Kind: "label", Text: text}
}

// converse adds to a message what OpenClaw's differ in from pi's.
func converse(l *pi.Line) {
	m := &l.Message
	message := l.Inner
	if string(message.Get("excludeFromContext")) == "true" {
		m.InContext = false
	}
	switch m.Role {
	case session.User:
		if m.Kind == session.KindMessage {
			whose(m, message)
		}
	case session.Assistant:
		text := m.Text()
		if silent(text, "NO_REPLY") || strings.TrimSpace(text) == "HEARTBEAT_OK" {
			m.Display = false
		}
		if unwritten(l.Fields, message) {
			l.Calls = nil
			disown(l, message)
		}
	case session.Tool:
		details := message.Inner("details")
		if took, ok := pi.Whole(details.Get("durationMs")); ok && took >= 0 {
			m.Parts[0].DurationMS = &took
		} else if took, ok := pi.Whole(details.Get("tookMs")); ok && took >= 0 {
			m.Parts[0].DurationMS = &took
		}
	}
}

// injected begins the texts that the gateway says to the model as if a person did.
var injected = pattern.New(`^(?:\[cron:|\[Inter-session message\]|Read HEARTBEAT\.md if it exists|` +
	`\[heartbeat\]|Pre-compaction memory flush|Agent-to-agent announce step|A new session was started via )`)

// whose tells a person's words from those that a program put in a person's role.
func whose(m *session.Message, message jsonx.Object) {
	from, told := jsonx.ReadFields(message.Get("provenance"))
	switch from.String("kind") {
	case "inter_session", "internal_system":
		m.Origin = session.Program
	case "external_user":
	default:
		if injected.MatchString(bare(m.Text())) || injected.MatchString(m.Text()) {
			m.Origin = session.Program
		}
	}
	if told {
		m.Author = cmp.Or(from.String("sourceSessionKey"), from.String("sourceChannel"), from.String("sourceTool"),
			from.String("jobId"))
	}
}

// silent reports whether a reply was not sent: it is the token, begins or ends with it.
// Source: auto-reply/tokens.ts of Clawdbot 2026.1.27.
func silent(text, token string) bool {
	word := func(b byte) bool {
		return b == '_' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
	}
	if rest, ok := strings.CutPrefix(strings.TrimSpace(text), token); ok && (rest == "" || !word(rest[0])) {
		return true
	}
	end := strings.TrimRightFunc(text, func(c rune) bool { return c >= 0x80 || !word(byte(c)) })
	before, ok := strings.CutSuffix(end, token)
	return ok && (before == "" || !word(before[len(before)-1]))
}

// The names under which the gateway stands where a model would.
var (
	gateways = []string{"openclaw", "moltbot", "clawdbot"}
	echoes   = []string{"delivery-mirror", "gateway-injected", "acp-runtime"}
	mirrors  = []string{
		"channel-final", "channel-final-suppressed", "message-tool-source-reply",
		"cron-direct-delivery-context",
	}
)

// unwritten reports whether a reply is one that no model wrote: an echo of what was sent, an
// operator's text, an old injected row.
func unwritten(line, message jsonx.Object) bool {
	if slices.Contains(echoes, message.String("model")) || mirrored(line, message) {
		return true
	}
	return message.String("stopReason") == "injected" && line.Get("parentId") == nil
}

func mirrored(line, message jsonx.Object) bool {
	for _, o := range []jsonx.Object{message, line} {
		mirror, ok := jsonx.ReadFields(o.Get("openclawDeliveryMirror"))
		if ok && slices.Contains(mirrors, mirror.String("kind")) {
			return true
		}
	}
	return false
}

// disown takes the model off a reply that none wrote; its name becomes the author's. The
// gateway never gives its own echoes to a model.
func disown(l *pi.Line, message jsonx.Object) {
	m := &l.Message
	provider, model := message.String("provider"), message.String("model")
	m.Origin, m.Provider, m.Model = session.Program, "", ""
	m.Author = cmp.Or(model, "injected")
	m.Display = true
	if slices.Contains(gateways, provider) && (model == "delivery-mirror" || model == "gateway-injected") ||
		mirrored(l.Fields, message) {
		m.InContext = false
	}
	rest := l.Rest.Inner("message")
	for _, field := range []string{"provider", "model"} {
		if raw := message.Get(field); raw != nil {
			rest = rest.With(field, raw)
		}
	}
	l.Rest.Object = l.Rest.With("message", []byte(rest.Column()))
}

// bill settles the calls of an entry: each counts once over all transcripts of the agent, by
// the id that the provider gave it, else by what the line says.
func (r *reader) bill(l *pi.Line, key string) {
	message := l.Inner
	id := "openclaw:" + r.agent.id + ":"
	if response := message.String("responseId"); response != "" {
		id += message.String("provider") + ":" + response
	} else if len(l.Calls) > 0 {
		id += l.Fingerprint()
	}
	kept := l.Calls[:0]
	for _, c := range l.Calls {
		if c.InputTokens == 0 && c.OutputTokens == 0 && c.CacheReadTokens == 0 && c.CacheWriteTokens == 0 {
			continue
		}
		if c.CostNanoUSD != nil && *c.CostNanoUSD == 0 && !usage.IsLocal(c.Provider) {
			c.CostNanoUSD = nil // the price was not known
		}
		said := message.Inner("usage")
		total, told := pi.Whole(said.Get("totalTokens"))
		input, _ := pi.Whole(said.Get("input"))
		if told && c.CacheReadTokens > 0 && c.InputTokens == input && total == c.InputTokens+c.OutputTokens {
			c.InputTokens = max(0, c.InputTokens-c.CacheReadTokens)
			c.Metadata = session.JSONOf(map[string]bool{"input_held_cache": true})
		}
		c.ExternalID, c.MessageKey = id, key
		c.Source, c.Directory, c.CreatedAt = session.SourceOpenClaw, r.session.Directory, l.Message.CreatedAt
		kept = append(kept, c)
	}
	l.Calls = kept
}
