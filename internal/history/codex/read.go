package codex

import (
	"cmp"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// reader adds the records of one rollout.
type reader struct {
	*survey
	in    *history.Intake
	talk  *history.Conversation
	path  string
	state state
	from  lineage

	agent    bool // a sub-agent's
	forked   bool // it begins with copies
	reply    reply
	spoken   string            // the key of the newest reply, which a usage after it is of
	headed   bool              // the header was counted
	inherits bool              // the record is a copy whose original is not here
	kept     window            // the person's texts, for compactions that do not say what they keep
	spawns   map[string]string // the calls that start a sub-agent: the message of each
	started  []started
}

func readRollout(in *history.Intake) {
	found := look(in)
	if in.Err() != nil {
		return
	}
	r := &reader{survey: found, in: in, path: in.Found.Path, spawns: map[string]string{}}
	r.talk = in.Conversation(history.NewSession{Source: session.SourceCodex, SourceID: r.id})
	r.talk.CopyReason = skipInherited
	r.start()
	if r.waits {
		in.WaitFrom(r.limit)
	}
	in.EachLine(r.line)
	r.closeReply("")
	r.finish()
}

// line turns one line into what it becomes.
func (r *reader) line(l history.FileLine) {
	rec, ok := parseRecord(l.Bytes)
	switch {
	case !ok:
		r.verbatim(l, "not a JSON object")
		return
	case jsonx.DeeperThan(l.Bytes, history.MaxDepth):
		r.verbatim(l, "nested too deep")
		return
	}
	rec.offset, rec.number = l.At, int32(l.Number)
	if rec.timed {
		r.state.LastAt = rec.at
	} else {
		rec.at = r.state.LastAt
	}
	r.record(&rec)
}

// skip counts a record that leaves no trace.
func (r *reader) skip(reason string) {
	if r.state.Copying {
		reason = skipInherited
	}
	r.in.Skip(reason, 1)
}

// record dispatches by the kind of record.
func (r *reader) record(rec *record) {
	if !rec.isReply() && !rec.isEcho() && !r.novel() {
		r.closeReply(finishOf(rec))
	}
	if r.copied(rec) {
		return
	}
	if r.novel() && rec.kind != typeMeta {
		r.aside(rec, session.KindUnknown, "")
		return
	}
	if s := spawned(rec); s.thread != "" {
		r.started = append(r.started, s)
	}
	switch rec.kind {
	case typeMeta:
		r.meta(rec)
	case typeFiller:
		r.skip(skipFiller)
	case typeItem:
		r.item(rec)
	case typeEvent:
		r.event(rec)
	case typeContext:
		r.turnContext(rec)
	case typeCompacted:
		r.compacted(rec)
	case typeUsage:
		r.usageRecord(rec)
	case typeAgents:
		r.betweenAgents(rec)
	case typeWorld:
		model := rec.payload.Inner("state").String("model")
		r.state.Model = cmp.Or(plainText(model), r.state.Model)
		r.aside(rec, session.KindCustom, "")
	case typeAgentMeta, "retained_context", "security_risk_score", "realtime_item", "rollout_reference":
		r.aside(rec, session.KindCustom, "")
	default:
		r.aside(rec, session.KindUnknown, "")
	}
}

// novel reports whether the file is of a mode that this reader does not know: then nothing is guessed,
// and all records are kept as they are.
func (r *reader) novel() bool {
	return r.history != "" && r.history != "legacy" && r.history != paginated
}

// finishOf returns how a reply ended that this record comes after.
func finishOf(rec *record) session.Finish {
	if rec.kind == typeEvent && rec.sub == "turn_aborted" {
		return session.FinishAborted
	}
	return ""
}

// meta counts a header. The first of the file is the session itself.
func (r *reader) meta(rec *record) {
	switch {
	case rec.payload.String("id") != r.id:
		r.in.Skip(skipOrigin, 1)
	case r.headed:
		r.in.Skip(skipHeader, 1)
	case r.talk.Here != nil:
		r.in.Skip(history.SkipKnown, 1)
	default:
		r.in.Import(1)
	}
	r.headed = true
}

// put adds what some records become at the tip. It skips those that the origin has.
func (r *reader) put(key string, rec *record, records int, decode func() history.Decoded) {
	if r.state.Copying && rec.speaks() {
		r.checkCopy(key, rec)
	}
	r.talk.Add(history.Entry{
		Key: key, Parent: r.state.Tip, At: rec.offset, Line: int(rec.number), Records: records, Own: !r.state.Copying,
		Decode: func() history.Decoded {
			d := decode()
			for i := range d.Messages {
				m := &d.Messages[i]
				if m.Dialect == "" {
					m.Dialect = "codex"
				}
				if m.CreatedAt.IsZero() {
					m.CreatedAt = rec.at
				}
				if !r.inherits {
					continue
				}
				m.Metadata = session.JSON(`{"inherited":true}`)
				if m.Origin == session.Person {
					m.Origin = session.Program
				}
				m.Display = false
			}
			return d
		},
	})
	r.state.Tip = key
}
