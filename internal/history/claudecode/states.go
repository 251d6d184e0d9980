package claudecode

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// states is what rows say that are no part of the chain: titles, settings, snapshots, what was
// typed while a turn ran.
type states struct {
	newest  map[string]string // fingerprints of the last state of each type
	repeats history.Repeats   // rows without a name that say the same
	queued  []string          // what was typed and not yet delivered

	custom, given, summarised string            // titles: a person's, the model's, a summary's
	summaries                 map[string]string // by the row that each names, which is of another session
}

func newStates() states {
	return states{newest: map[string]string{}, repeats: history.Repeats{}, summaries: map[string]string{}}
}

// state reads a row that is no part of the chain. It hangs where it came up, and what follows
// goes on behind it.
func (r *reader) state(st *stream, w *row) {
	m, note := aside(session.KindCustom, ""), ""
	switch {
	case isRecord(w.kind):
	case !isState(w.kind):
		m = aside(session.KindUnknown, "")
	case w.kind == "queue-operation":
		if text := r.queueOperation(w); text != "" {
			m, note = inUsersRole(session.KindMessage, session.Person, text), "typed while the turn ran"
		}
	case w.kind == "pr-link":
		m = aside(session.KindMarker, "pull request "+plain(w.String("prUrl")))
	}
	r.readTitle(st, w)
	if isState(w.kind) && w.kind != "queue-operation" && w.kind != "summary" {
		print := jsonx.Fingerprint(w.Object, "timestamp")
		if r.newest[w.kind] == print {
			r.in.Skip(skipRepeated, 1)
			return
		}
		r.newest[w.kind] = print
	}
	r.putUnnamed(st, w, w.Column(), note, decoded{messages: []session.Message{m}})
}

// nameOf names a row without a name by what it says, and by how often the file said that before.
func (r *reader) nameOf(line []byte) string {
	sum := sha256.Sum256(line)
	key := r.repeats.Key("row:" + hex.EncodeToString(sum[:10]))
	if r.grown != "" {
		key += "~" + r.grown
	}
	return key
}

// readTitle reads a title. A summary is that of the session whose row it names, which is mostly an earlier one.
func (r *reader) readTitle(st *stream, w *row) {
	clean := func(key string) string { return plain(strings.TrimSpace(w.String(key))) }
	switch w.kind {
	case "custom-title":
		r.custom = clean("customTitle")
	case "ai-title":
		r.given = clean("aiTitle")
	case "summary":
		leaf := plain(w.String("leafUuid"))
		if _, here := st.resolve(leaf); here {
			r.summarised = clean("summary")
		} else if leaf != "" && !isAgentFile(r.in.Found.Path) {
			r.summaries[leaf] = clean("summary")
		}
	}
}

// nameOthers gives earlier sessions the titles that the summaries of this file say.
func (r *reader) nameOthers() {
	for leaf, title := range r.summaries {
		if _, here := r.main.resolve(leaf); here {
			r.summarised = title
			delete(r.summaries, leaf)
		}
	}
	if len(r.summaries) == 0 || r.cwd == "" {
		return
	}
	for _, id := range r.in.Untitled(r.cwd) {
		for leaf, title := range r.summaries {
			if title == "" || r.in.Message(id, leaf) == nil {
				continue
			}
			b := history.Batch{Aside: true}
			b.ID, b.Title = id, &title
			r.in.Emit(b)
			delete(r.summaries, leaf)
			break
		}
	}
}

// title is the name that the person gave the session, else the model's.
func (r *reader) title() string {
	return cmp.Or(r.custom, r.given, r.summarised)
}

// queueOperation follows what a person typed while a turn ran. Older versions have no other row
// of what was delivered within the turn: its text is returned, "" in any other case.
func (r *reader) queueOperation(w *row) string {
	text := plain(w.String("content"))
	operation := w.String("operation")
	switch {
	case operation == "enqueue":
		r.queued = append(r.queued, text)
	case operation != "remove" && operation != "dequeue" && operation != "popAll":
	case text != "":
		if i := slices.Index(r.queued, text); i >= 0 {
			r.queued = slices.Delete(r.queued, i, i+1)
		}
	case len(r.queued) > 0:
		text, r.queued = r.queued[0], r.queued[1:]
	}
	if operation != "remove" || strings.TrimSpace(text) == "" || r.survey.said[r.digest(text)] ||
		speakerOf(text) != saysPerson {
		return ""
	}
	return text
}
