package claudecode

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// typeCost is the type of rows in which Claude Code sums up what a session used so far, by model. They count requests
// that no row has: compactions, titles, searches, questions beside the talk. What they have beyond the rows becomes
// calls of the program.
const typeCost = "cost-state"

// costState is such a row.
type costState struct {
	at     int64     // its offset
	before time.Time // the time of the first row behind it that has one; zero: none has
	models map[string]tally
	hides  bool // the context was compacted since the state before
}

// noteCost notes a state, and when the row behind the newest one was written.
func (s *survey) noteCost(w *row) {
	if n := len(s.costs); n > 0 && w.timed && s.costs[n-1].before.IsZero() {
		s.costs[n-1].before = w.at.Time
	}
	switch {
	case w.kind == typeSystem && w.String("subtype") == "compact_boundary":
		s.compacted = true
	case w.kind == typeCost:
		if models := parseCost(w.Object); models != nil {
			s.costs = append(s.costs, costState{at: w.offset, models: models, hides: s.compacted})
			s.compacted = false
		}
	}
}

// parseCost reads the models of a state; nil if there are none.
func parseCost(o jsonx.Object) map[string]tally {
	models := map[string]tally{}
	for _, member := range o.Inner("modelUsage") {
		used, ok := jsonx.ReadFields(member.Value)
		if !ok {
			continue
		}
		t := models[modelKey(member.Key)]
		t.each(&tally{
			input: tokens(used, "inputTokens"), output: tokens(used, "outputTokens"), thought: tokens(used, "thinkingTokens"),
			read: tokens(used, "cacheReadInputTokens"), written: tokens(used, "cacheCreationInputTokens"),
			writtenHour: tokens(used, "cacheCreationEphemeral1hInputTokens"), searches: tokens(used, "webSearchRequests"),
		}, plus)
		models[modelKey(member.Key)] = t
	}
	if len(models) == 0 {
		return nil
	}
	return models
}

var modelEnding = pattern.New(`(-20[0-9]{6})?(\[[0-9a-z]*\])?$`)

// modelKey names a model alike in states and in rows: without the window and the date of a snapshot.
func modelKey(name string) string { return modelEnding.ReplaceAllString(plain(name), "") }

// chargeTo adds what a response used to the sums by model.
func (b *bill) chargeTo(sums map[string]tally) {
	add := func(model string, t tally) {
		sum := sums[modelKey(model)]
		sum.each(&t, plus)
		sums[modelKey(model)] = sum
	}
	add(b.model, b.tally)
	for i := range b.beside {
		add(b.beside[i].modelOr(b.model), b.beside[i].tally)
	}
}

// extras returns the calls of the program that a state adds, by the offset of its row. A state counts the session with
// its sub-agents from the start, and a fork's with what it was forked off. A number that the rows exceed, because a
// reply came in while the state was written, waits for the next state.
func (r *reader) extras() map[int64][]history.Call {
	var agents []*bill
	if len(r.costs) > 0 {
		agents = r.agentBills()
	}
	base := r.costsOfOrigins()
	given := map[string]tally{} // to calls, up to the state before
	all := map[int64][]history.Call{}
	for i := range r.costs {
		state := &r.costs[i]
		told := map[string]tally{}
		for _, b := range r.bills {
			if b.told && b.at < state.at && !b.inherited {
				b.chargeTo(told)
			}
		}
		for _, b := range agents {
			if state.before.IsZero() || b.time.Before(state.before) {
				b.chargeTo(told)
			}
		}
		if base == nil { // of a fork whose origin is gone
			base = map[string]tally{}
			for model, t := range state.models {
				of := told[model]
				t.each(&of, minus)
				base[model] = t
			}
		}
		for model, t := range state.models {
			before, rows, had := base[model], told[model], given[model]
			t.each(&before, minus)
			t.each(&rows, minus)
			t.each(&had, larger)
			given[model] = t
			t.each(&had, minus)
			if t.writtenHour = min(t.writtenHour, t.written); t.input+t.output+t.read+t.written+t.searches > 0 {
				all[state.at] = append(all[state.at], r.extraCalls(state, model, t)...)
			}
		}
		slices.SortFunc(all[state.at], func(a, b history.Call) int { return strings.Compare(a.ExternalID, b.ExternalID) })
	}
	return all
}

// extraCalls returns the calls of one model.
func (r *reader) extraCalls(state *costState, model string, t tally) (calls []history.Call) {
	sum := state.models[model]
	id := fmt.Sprintf("claude-code:%s:%s:%s:%d", typeCost, r.trunk, model,
		sum.input+sum.output+sum.read+sum.written+sum.searches)
	base := session.Call{Provider: "anthropic", Directory: r.cwd, Purpose: session.PurposeOther, Sum: true}
	if state.hides {
		base.Purpose = session.PurposeSummary
	}
	searches := t.searches
	if t.searches = 0; t != (tally{}) {
		call := t.call(base)
		call.Model, call.ExternalID = model, id
		calls = append(calls, history.Call{Call: call})
	}
	if searches > 0 {
		call := searchCall(base, searches)
		call.ExternalID = id + "#" + call.Model
		calls = append(calls, history.Call{Call: call})
	}
	return calls
}

// chargeExtras puts what a state adds on the ledger.
func (r *reader) chargeExtras(st *stream, w *row) {
	if r.agent != "" || len(r.costs) == 0 || r.in.Old(w.offset) {
		return
	}
	if r.extra == nil {
		r.extra = r.extras()
	}
	for _, call := range r.extra[w.offset] {
		call.CreatedAt = r.lastAt
		st.Call(call)
	}
}

// agentBills returns the bills of the session's sub-agents that have files of their own.
func (r *reader) agentBills() (all []*bill) {
	bills := map[string]*bill{}
	for _, path := range r.in.FilesUnder(filepath.Join(strings.TrimSuffix(r.in.Found.Path, ending), subagents)) {
		if !strings.HasSuffix(path, ending) {
			continue
		}
		eachRow(r.in, path, `"usage"`, func(w *row) {
			id := w.reply()
			if w.kind != typeAssistant || id == "" || w.made() || r.bills[id] != nil {
				return
			}
			b := bills[id]
			if b == nil {
				b = &bill{}
				bills[id], all = b, append(all, b)
			}
			b.add(w)
		})
	}
	return all
}

// costsOfOrigins returns the last sums of the sessions that this one was forked off, before it went its own way; nil if
// their files are gone. It is empty for a session that is no fork.
func (r *reader) costsOfOrigins() map[string]tally {
	if !r.forked || len(r.costs) == 0 {
		return map[string]tally{}
	}
	for _, id := range r.replies {
		if owner := r.in.CallOwner("claude-code:" + id); owner != nil && (r.main.Here == nil || owner.ID != r.main.Here.ID) {
			r.bills[id].inherited = true
		}
	}
	var last map[string]tally
	for _, origin := range r.main.Origins() {
		eachRow(r.in, filepath.Join(filepath.Dir(r.in.Found.Path), origin.SourceID+ending), typeCost, func(w *row) {
			if models := parseCost(w.Object); w.kind == typeCost && isPartOf(models, r.costs[0].models) {
				last = models
			}
		})
		if last != nil {
			break
		}
	}
	return last
}

// isPartOf reports whether no number is above those of the whole.
func isPartOf(part, whole map[string]tally) bool {
	for model, t := range part {
		of := whole[model]
		if t.each(&of, minus); t != (tally{}) {
			return false
		}
	}
	return len(part) > 0
}

// eachRow yields the rows of a transcript whose lines hold a word.
func eachRow(in *history.Intake, path, word string, yield func(*row)) {
	file, err := in.OpenBeside(path)
	if err != nil {
		return
	}
	defer file.Close() //nolint:errcheck // it is only read
	for l, err := range history.Lines(file, file.Size) {
		if err != nil {
			return
		}
		if !bytes.Contains(l.Bytes, []byte(word)) {
			continue
		}
		if w, ok := parseRow(l); ok {
			yield(w)
		}
	}
}
