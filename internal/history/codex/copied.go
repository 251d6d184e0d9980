package codex

import (
	"sessiond/internal/history"
	"sessiond/internal/session"
)

// copied takes a record of a fork that repeats one of its origin's, which is known by its key.
// done says that there is nothing left to do.
func (r *reader) copied(rec *record) (done bool, err error) {
	r.inherits = false
	if !r.forked || rec.kind == typeMeta {
		return false, nil
	}
	early := r.own >= 0 && rec.offset < r.own
	switch {
	case !r.state.Copying:
		r.inherits = early && r.from.kind == session.ParentChild
		return false, nil
	case rec.isReply(): // known by the key of its last item
		return false, nil
	case rec.speaks():
		next := r.state
		key := next.advance(rec)
		at, err := r.original(key)
		if err != nil || at == "" {
			r.ownBegins(early)
			return false, err
		}
		if rec.isUser() && (r.person[rec.number] || !r.witnesses && wrapperOf(texts(rec.payload.Get("content"))) == "") ||
			rec.sub == "agent_message" || rec.kind == typeAgents {
			r.state.beginTurn(r.state.Tip)
		}
		if rec.kind == typeEvent { // a roll-back that the origin made
			turns, _ := number(rec.payload.Get("num_turns"))
			r.state.rollBack(int(min(max(turns, 0), maxTurns+1)))
		}
		r.state.advance(rec)
		r.state.Tip = place{Key: key}
		r.state.Matched++
	case rec.kind == typeEvent && rec.sub == "token_count", rec.kind == typeUsage:
		if done, err := r.copiedUsage(rec, early); !done || err != nil {
			return done, err
		}
	case rec.kind == typeContext:
		r.state.Context = contextOf(rec)
		r.state.Model, r.state.Effort = plainText(rec.payload.String("model")), plainText(rec.payload.String("effort"))
	case rec.kind == typeEvent && (rec.sub == "task_started" || rec.sub == "turn_started") && younger(rec.payload.String("turn_id"), r.id):
		r.ownBegins(false)
		return false, nil
	}
	r.skip(skipInherited)
	return true, nil
}

// copiedReply does for the items of a reply what copied does for other records.
func (r *reader) copiedReply(open *reply) (done bool, err error) {
	if !r.forked || !r.state.Copying {
		return false, nil
	}
	key, last := open.keys[len(open.keys)-1], open.items[len(open.items)-1]
	at, err := r.original(key)
	if err != nil || at == "" {
		r.ownBegins(r.own >= 0 && last.offset < r.own)
		return false, err
	}
	r.in.SkipAt(last.offset, skipInherited, len(open.items))
	r.state.Tip = place{Key: key}
	r.state.Matched++
	return true, nil
}

// copiedUsage reports whether a usage was counted for the origin. One that was not, before the
// place where the fork's own records begin, is of an origin that is not here: it only says
// where the fork's own usage begins.
func (r *reader) copiedUsage(rec *record, early bool) (done bool, err error) {
	next := r.state
	key, counts := "", true
	if rec.kind == typeUsage {
		key = plainText(rec.payload.String("response_id"))
		if thread := rec.payload.String("thread_id"); thread != "" && thread != r.id {
			return true, nil
		}
	} else {
		info, _ := history.Fields(rec.payload.Get("info"))
		var used tokens
		if used, _, counts = next.counted(info); counts {
			key = after(next.Usage, next.Total.String()+" "+used.String())
			next.Usage = key
		}
	}
	if counts {
		owner, err := r.in.Known.CallOwner(r.in.Context(), session.SourceCodex, "codex:"+key)
		if err != nil {
			return false, err
		}
		// A copy of this file may have been here before: then the call is the fork's own.
		if mine := r.talk.Here != nil && owner == r.talk.Here.ID; (owner == "" || mine) && !early {
			r.ownBegins(false)
			return false, nil
		}
		r.state.Matched++
	}
	matched := r.state.Matched
	r.state = next
	r.state.Matched = matched
	return true, nil
}

// ownBegins ends the copies; within them it marks one whose original is not here.
func (r *reader) ownBegins(early bool) {
	if early {
		r.inherits = true
		return
	}
	r.state.Copying, r.inherits = false, false
}

// original finds the session that holds the message with a key, among those that the thread
// was forked off.
func (r *reader) original(key string) (session.ID, error) {
	for _, s := range r.from.sessions {
		at, err := r.in.Known.Message(r.in.Context(), s.ID, key)
		if err != nil || at != nil {
			return s.ID, err
		}
	}
	return "", nil
}

// contextOf returns what a turn context says beside its turn: equal texts are equal settings.
func contextOf(rec *record) string {
	return string(rec.payload.Without("turn_id", "root_turn_id", "current_date").JSON())
}
