package codex

import (
	"strconv"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// usageRecord counts what a response cost, by its id.
func (r *reader) usageRecord(rec *record) error {
	used, ok := parseTokens(rec.payload.Get("usage"))
	thread := rec.payload.String("thread_id")
	switch {
	case !ok:
		return r.aside(rec, session.KindUnknown, "")
	case thread != "" && thread != r.id || r.inherits:
		r.skip(skipInherited)
		return nil
	}
	r.state.Recorded = true
	key := rec.payload.String("response_id")
	if key == "" {
		key = after(r.state.Usage, used.String())
		r.state.Usage = key
	}
	r.charge(rec, used, plainText(key), nil)
	return nil
}

// tokenCount counts what the cumulative usage grew by.
func (r *reader) tokenCount(rec *record) {
	info, ok := history.Fields(rec.payload.Get("info"))
	if !ok {
		r.skip(skipNoTokens)
		return
	}
	used, reset, ok := r.state.counted(info)
	switch {
	case !ok, r.state.Recorded:
		r.skip(skipTokens)
		return
	}
	r.state.Usage = after(r.state.Usage, r.state.Total.String()+" "+used.String())
	if r.inherits {
		r.skip(skipInherited)
		return
	}
	var note session.JSON
	if reset {
		note = session.JSON(`{"counter":"reset"}`)
	}
	r.charge(rec, used, r.state.Usage, note)
}

// charge adds a call to the ledger.
func (r *reader) charge(rec *record, used tokens, key string, note session.JSON) {
	if r.in.Old(rec.offset) {
		return
	}
	call := history.Call{Call: used.call(), MessageKey: r.spoken, Records: 1}
	call.Source, call.ExternalID, call.Directory = session.SourceCodex, "codex:"+key, r.talk.New.Directory
	call.Provider, call.Model, call.CreatedAt, call.Metadata = r.state.Provider, r.state.Model, rec.at, note
	r.talk.Call(call)
	r.in.Import(1)
}
