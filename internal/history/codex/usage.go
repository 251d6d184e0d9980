package codex

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// tokens is a usage object as Codex writes it: the input with what was cached, the output with
// the reasoning.
type tokens struct {
	Input     int64 `json:"input_tokens"`
	Cached    int64 `json:"cached_input_tokens"`
	Written   int64 `json:"cache_write_input_tokens"`
	Output    int64 `json:"output_tokens"`
	Reasoning int64 `json:"reasoning_output_tokens"`
	Total     int64 `json:"total_tokens"`
}

// normalize counts a negative number as 0, and computes a total that is missing.
func (t *tokens) normalize() {
	for _, n := range []*int64{&t.Input, &t.Cached, &t.Written, &t.Output, &t.Reasoning, &t.Total} {
		*n = max(*n, 0)
	}
	if t.Total == 0 {
		t.Total = t.Input + t.Output
	}
}

func (t tokens) minus(u tokens) tokens {
	return tokens{
		t.Input - u.Input, t.Cached - u.Cached, t.Written - u.Written, t.Output - u.Output,
		t.Reasoning - u.Reasoning, t.Total - u.Total,
	}
}

func (t tokens) negative() bool {
	return t.Input < 0 || t.Cached < 0 || t.Written < 0 || t.Output < 0 || t.Reasoning < 0 || t.Total < 0
}

// call turns a usage into a ledger row: input without cache.
func (t tokens) call() session.Call {
	cached := min(t.Cached, t.Input)
	written := min(t.Written, t.Input-cached)
	return session.Call{
		InputTokens: t.Input - cached - written, CacheReadTokens: cached, CacheWriteTokens: written,
		OutputTokens: t.Output, ReasoningTokens: min(t.Reasoning, t.Output),
	}
}

func (t tokens) String() string {
	return fmt.Sprint(t.Input, t.Cached, t.Written, t.Output, t.Reasoning, t.Total)
}

// tokenInfo is what an event token_count says: the usage of the thread, and of its last response.
type tokenInfo struct {
	Total *tokens `json:"total_token_usage"`
	Last  *tokens `json:"last_token_usage"`
}

// parseTokenInfo returns nil for anything else.
func parseTokenInfo(raw []byte) *tokenInfo {
	var info *tokenInfo
	if len(raw) == 0 || json.Unmarshal(raw, &info) != nil || info == nil {
		return nil
	}
	for _, t := range []*tokens{info.Total, info.Last} {
		if t != nil {
			t.normalize()
		}
	}
	return info
}

// counted returns what an event token_count adds. A cumulative total that did not change repeats the
// event before, whatever it says of the last response; one that does not grow by that response
// began anew.
func (s *state) counted(info *tokenInfo) (used tokens, reset, ok bool) {
	switch {
	case info.Total == nil && info.Last == nil:
		return used, false, false
	case info.Total == nil:
		return *info.Last, false, *info.Last != tokens{}
	case *info.Total == s.Total:
		return used, false, false
	}
	grown := info.Total.minus(s.Total)
	s.Total = *info.Total
	switch {
	case info.Last == nil:
		return grown, false, !grown.negative()
	case grown.negative() || grown.Total != info.Last.Total:
		return *info.Last, true, info.Last.Input+info.Last.Output > 0
	}
	return *info.Last, false, true
}

// usageKey moves on to the key of a call that only an event counts.
func (s *state) usageKey(used tokens) string {
	s.Usage = after(s.Usage, s.Total.String()+" "+used.String())
	return s.Usage
}

// ownKey returns the key of a call that an event counts: its own where a fork surely used what its origin did, too.
func (r *reader) ownKey(rec *record, key string) string {
	if !r.forked || !r.sure || rec.offset < r.own || r.from.kind != session.ParentFork || r.in.Old(rec.offset) {
		return key
	}
	owner := r.in.CallOwner("codex:" + key)
	if owner == nil || r.talk.Here != nil && owner.ID == r.talk.Here.ID {
		return key
	}
	return after(key, r.id)
}

// usageRecord counts a response by its id.
func (r *reader) usageRecord(rec *record) {
	var used *tokens
	if json.Unmarshal(rec.payload.Get("usage"), &used) != nil || used == nil {
		r.aside(rec, session.KindUnknown, "")
		return
	}
	if thread := rec.payload.String("thread_id"); thread != "" && thread != r.id {
		r.skip(skipInherited)
		return
	}
	used.normalize()
	key := rec.payload.String("response_id")
	if key == "" {
		key = after(r.state.Usage, used.String())
		r.state.Usage = key
	}
	charged := r.charge(rec, *used, plainText(key), nil)
	r.state.Recorded = r.state.Recorded || charged
}

// tokenCount counts what the cumulative usage grew by, and notes the limits.
func (r *reader) tokenCount(rec *record) {
	r.noteLimits(rec)
	info := parseTokenInfo(rec.payload.Get("info"))
	if info == nil {
		r.skip(skipNoTokens)
		return
	}
	used, reset, ok := r.state.counted(info)
	if !ok || r.state.Recorded {
		r.skip(skipTokens)
		return
	}
	var note session.JSON
	if reset {
		note = session.JSON(`{"counter":"reset"}`)
	}
	r.charge(rec, used, r.ownKey(rec, r.state.usageKey(used)), note)
}

// charge adds a call to the ledger, unless the record is a copy: the origin has the call. charged
// reports whether the call is the thread's own.
func (r *reader) charge(rec *record, used tokens, key string, note session.JSON) (charged bool) {
	if r.state.Copying {
		r.checkCopiedCall(key, rec)
	}
	if r.state.Copying || r.inherits {
		if r.from.kind == session.ParentChild { // a fork's copies have the names of their originals
			r.talk.Copied("codex:" + key)
		}
		r.skip(skipInherited)
		return false
	}
	if r.in.Old(rec.offset) {
		return true
	}
	call := history.Call{Call: used.call(), MessageKey: r.spoken, Records: 1}
	call.ExternalID, call.Directory = "codex:"+key, r.talk.New.Directory
	call.Provider, call.Model, call.CreatedAt, call.Metadata = r.state.Provider, r.state.Model, rec.at, note
	r.in.Import(1)
	r.talk.Call(call)
	return true
}
