package codex

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// gap watches for the pause that ends the burst in which a fork's copies were written.
type gap struct {
	last   session.Time
	copies int
	off    bool
}

// boundary notes the first record of a fork that is no copy, by the signs that need no look at
// the origin, best first: its ordinal, a time or a turn that is younger than the thread, a record that
// only new turns have after another thread's header, a pause of a second after a burst.
func (s *surveyor) boundary(r *record) {
	if s.own >= 0 || s.line == 0 {
		s.gap.last = r.at
		return
	}
	start, given := history.Number(s.header.Get("subagent_history_start_ordinal"))
	foreign := s.foreign || s.header.String("forked_from_id") != ""
	switch {
	case given:
		if r.ordered && r.ordinal >= int64(start) {
			s.begins(r.offset, true)
		}
		return
	case r.kind == typeMeta:
		s.foreign = s.foreign || r.payload.String("id") != s.id
	case !foreign && starterOf(s.header) == "":
		return
	case s.endsReplay(r, foreign):
		s.begins(s.firstOwn(r), true)
	case foreign && (s.foreign && (r.kind == typeAgentMeta || r.isEvent("thread_settings_applied")) || s.pause(r)):
		s.begins(r.offset, false)
	}
	if r.isReply() || r.isTurnStart() || r.kind == typeContext || r.isEvent("token_count") {
		s.first = -1
	} else if s.first < 0 {
		s.first = r.offset
	}
	s.gap.last = r.at
}

// endsReplay notes copies that have the time or the turn of their original, and reports whether a record is the
// first one that is younger than the thread. foreign says that the file has other signs of copies.
func (s *surveyor) endsReplay(r *record, foreign bool) bool {
	turn := ""
	if r.isTurnStart() || r.kind == typeContext {
		turn = r.payload.String("turn_id")
	}
	switch {
	case r.timed && s.madeBefore(r.at):
		s.replays, s.timed = true, true
	case s.timed:
		return r.timed
	case younger(turn, s.id):
		return s.replays || foreign
	case younger(s.id, turn):
		s.replays = true
	}
	return false
}

// madeBefore reports whether a time lies before the thread began.
func (s *surveyor) madeBefore(at session.Time) bool {
	began, ok := history.ParseTime(s.header.String("timestamp"))
	if !ok || !s.stamp.IsZero() && s.stamp.Before(began.Time) {
		began = s.stamp
	}
	return at.Before(began.Time)
}

// firstOwn returns where the own records begin of a thread whose first own turn a record shows. A turn's context
// comes behind its prompt.
func (s *surveyor) firstOwn(r *record) int64 {
	if r.kind == typeContext && !s.timed && s.first >= 0 {
		return s.first
	}
	return r.offset
}

// begins notes where the fork's own records begin; its title is what is said there.
func (s *surveyor) begins(at int64, sure bool) {
	s.own, s.sure = at, sure
	s.firstUser, s.typed = "", ""
	if s.heard.offset >= at { // before its turn's context
		s.firstUser = s.heard.title
	}
	if i := len(s.users) - 1; i >= 0 && s.users[i].offset >= at {
		s.typed = s.users[i].title
	}
}

// pause reports whether a burst of copies ends before the record. Where the first two records
// are as far apart, times say nothing.
func (s *surveyor) pause(r *record) bool {
	if s.gap.off || !r.timed || s.gap.last.IsZero() {
		return false
	}
	if r.at.Sub(s.gap.last.Time) < time.Second {
		s.gap.copies++
		return false
	}
	if s.gap.copies < 2 {
		s.gap.off = true
		return false
	}
	return true
}

// younger reports whether a turn began after a thread was made, where both ids hold their time.
func younger(turn, thread string) bool {
	const version = 14 // the place of a UUID's version
	isTimed := func(id string) bool { return len(id) == 36 && id[version] == '7' }
	return isTimed(turn) && isTimed(thread) && strings.ToLower(turn[:13]) > strings.ToLower(thread[:13])
}

// isAgent reports whether a thread is a sub-agent's or otherwise no conversation of a person.
func isAgent(header jsonx.Object) bool {
	if source, is := jsonx.ReadFields(header.Get("source")); is {
		return source.Get("custom") == nil
	}
	switch header.String("thread_source") {
	case "subagent", "guardian_review", "memory_consolidation":
		return true
	}
	return header.String("parent_thread_id") != ""
}

// starterOf returns the thread that the header of a sub-agent names as the one that started it, "" for none.
func starterOf(header jsonx.Object) string {
	return cmp.Or(header.String("parent_thread_id"), spawn(header).String("parent_thread_id"))
}

// spawn returns what the header of a sub-agent says of its start.
func spawn(header jsonx.Object) jsonx.Object {
	return header.Inner("source").Inner("subagent").Inner("thread_spawn")
}

// lineage is where a thread comes from.
type lineage struct {
	root     string             // the oldest known thread: the keys of all its forks begin with it
	sessions []*session.Session // stored ones that it was forked off, the nearest first
	parent   *session.Session   // the nearest of them, or who started it
	kind     string             // fork or child
}

// origins follows the forks of a thread back.
func (r *reader) origins() lineage {
	l := lineage{root: r.id}
	next := r.header.String("forked_from_id")
	if base, ok := jsonx.ReadFields(r.header.Get("history_base")); ok && next == "" {
		next = threadOf(r.path, base.String("thread_id"))
	}
	agent := isAgent(r.header)
	seen := map[string]bool{r.id: true}
	for next != "" && !seen[next] && len(seen) < history.MaxForks && !agent {
		l.root, seen[next] = next, true
		found := r.in.Session(next)
		if found == nil {
			if len(l.sessions) == 0 {
				r.in.Await(next)
			}
			break
		}
		l.sessions = append(l.sessions, found)
		next = history.Notes(found, "codex").String("forked_from_id")
	}
	if len(l.sessions) > 0 {
		l.parent, l.kind = l.sessions[0], session.ParentFork
		return l
	}
	starter := starterOf(r.header)
	if agent {
		starter = cmp.Or(starter, r.header.String("forked_from_id"), r.header.String("session_id"))
	}
	if starter == "" || starter == r.id {
		return l
	}
	if l.parent = r.in.Session(starter); l.parent != nil {
		l.kind = session.ParentChild
	} else {
		r.in.Await(starter)
	}
	return l
}

// isEarly reports whether a record lies before the first that is surely the fork's own.
func (r *reader) isEarly(rec *record) bool { return r.own >= 0 && rec.offset < r.own }

// findCopies finds where the copies end that a sub-agent's rollout begins with: they follow one another in the
// parent, too, with others between them that were left out. Where the parent says nothing of it, the signs that
// the survey found count; where times or turns tell, the parent only has to confirm that there are copies.
func (r *reader) findCopies() {
	if !r.forked || r.from.kind != session.ParentChild || r.header.Get("subagent_history_start_ordinal") != nil {
		return
	}
	if r.sure && !r.replays {
		return
	}
	said := r.saidBefore()
	if r.replays {
		if !r.repeats(said) { // a clock went back
			r.own, r.sure, r.forked = -1, false, r.foreign || r.header.String("forked_from_id") != ""
		}
		return
	}
	found, own, title := false, int64(-1), ""
survey:
	for l := range r.in.Survey {
		rec, ok := parseRecord(l.Bytes)
		if !ok {
			continue
		}
		if found && own < 0 && rec.isTurnStart() {
			own = l.At
		}
		says := rec.saysBriefly()
		if len(says) == 0 {
			continue
		}
		rest := said
		for _, s := range says {
			at := slices.Index(rest, s)
			if at < 0 { // the copies end
				if found && own < 0 {
					own = l.At
				}
				if rec.isUser() {
					title = titleOf(joined(rec.payload.Get("content")))
				}
				break survey
			}
			rest = rest[at+1:]
		}
		said, found, own = rest, true, -1
	}
	if !found {
		return
	}
	if own < 0 { // nothing of its own is there yet
		own = r.end
	}
	r.own, r.firstUser, r.typed = own, title, ""
}

// repeats reports whether the first thing that is said before the thread's own records was said by its parent, too.
func (r *reader) repeats(said []string) bool {
	for l := range r.in.Survey {
		rec, ok := parseRecord(l.Bytes)
		switch {
		case l.At >= r.own:
			return true
		case !ok || rec.payload.String("role") == "developer":
			continue
		}
		if says := rec.saysBriefly(); len(says) > 0 {
			return slices.Contains(said, says[0])
		}
	}
	return true
}

// saidBefore returns in brief what the parent, and the threads that it was forked off, said, in order.
func (r *reader) saidBefore() (all []string) {
	for s := range r.in.Line(r.from.parent) {
		var said []string
		r.in.Entries(s.ID, func(m *session.Message) bool {
			for i := range m.Parts {
				switch p := &m.Parts[i]; p.Kind {
				case session.PartText:
					said = append(said, brief(m.Role, p.Content()))
				case session.PartToolCall, session.PartToolResult:
					said = append(said, string(p.Kind)+p.CallID)
				}
			}
			return true
		})
		all = append(said, all...)
	}
	return all
}

// saysBriefly returns what an item says as saidBefore has it.
func (r *record) saysBriefly() (all []string) {
	call := plainText(r.payload.String("call_id"))
	switch {
	case r.kind != typeItem, call == "" && r.sub != "message":
	case strings.HasSuffix(r.sub, "_output"):
		return []string{string(session.PartToolResult) + call}
	case strings.HasSuffix(r.sub, "_call"):
		return []string{string(session.PartToolCall) + call}
	case r.sub == "message":
		role := session.Role(r.payload.String("role"))
		if role != session.User && role != session.Assistant {
			role = session.System
		}
		for _, text := range texts(r.payload.Get("content")) {
			all = append(all, brief(role, plainText(text)))
		}
	}
	return all
}

func brief(role session.Role, text string) string { return string(role) + digestOf(text) }

// copied skips a record of a fork that repeats one of its origin's and has no key of its own. Those of
// the conversation are known by their keys (checkCopy), calls by theirs (checkCopiedCall).
func (r *reader) copied(rec *record) bool {
	r.inherits = r.forked && !r.state.Copying && rec.kind != typeMeta && r.from.kind == session.ParentChild &&
		r.isEarly(rec)
	counts := !r.novel() && (rec.kind == typeUsage || rec.isEvent("token_count"))
	if r.sure && rec.offset >= r.own {
		r.state.Copying = false
	}
	switch {
	case !r.state.Copying, rec.kind == typeMeta, rec.speaks(), counts:
		return false
	case rec.isTurnStart() && younger(rec.payload.String("turn_id"), r.id):
		r.state.Copying = false
		return false
	case rec.kind == typeContext:
		r.state.Context = contextOf(rec)
		r.state.Model = plainText(rec.payload.String("model"))
	}
	r.skip(skipInherited)
	return true
}

// checkCopy ends the copies with a record of the conversation that the origin does not have. An early
// one is a copy whose original is not here.
func (r *reader) checkCopy(key string, rec *record) {
	for _, s := range r.from.sessions {
		if r.in.Message(s.ID, key) != nil {
			return
		}
	}
	r.inherits = r.isEarly(rec)
	r.state.Copying = r.inherits
}

// checkCopiedCall ends the copies with a call that was not counted for the origin. An early one is of
// an origin that is not here: it only says where the fork's own usage begins.
func (r *reader) checkCopiedCall(key string, rec *record) {
	owner := r.in.CallOwner("codex:" + key)
	// A copy of this file may have been here before: then the call is the fork's own.
	isOrigins := owner != nil && (r.talk.Here == nil || owner.ID != r.talk.Here.ID)
	r.state.Copying = isOrigins || r.isEarly(rec)
}

// findBase follows history_base: the records before this file's stand in another one. Their keys lead
// to the stored ones.
func (r *reader) findBase() {
	base, ok := jsonx.ReadFields(r.header.Get("history_base"))
	if !ok {
		return
	}
	before, err := walk(r.path, base, map[string]bool{r.path: true})
	if r.in.Fail(err); err != nil {
		return
	}
	if before == nil {
		r.in.Problem(r.headerLine, "its history_base names a rollout that is not here; only its own part is imported")
		r.state.Chain += "/" + rolloutID(r.path)
		return
	}
	r.state.Chain, r.state.Total, r.state.Usage, r.state.Model = before.Chain, before.Total, before.Usage, before.Model
	if _, found := r.talk.Find(before.Tip); !found {
		r.in.Problem(r.headerLine, "the records of its history_base are not here; only its own part is imported")
		return
	}
	r.state.Tip, r.state.Base = before.Tip, &before.Tip
}

// walk replays the part of a rollout that another one begins with, and returns the state behind it;
// nil where a file is missing or the files name one another in a circle.
func walk(from string, base jsonx.Object, seen map[string]bool) (*state, error) {
	path := sibling(from, base.String("thread_id"))
	if path == "" || seen[path] || len(seen) > history.MaxForks {
		return nil, nil
	}
	seen[path] = true
	file, err := history.OpenText(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	end := file.Size
	if n, ok := history.Number(base.Get("end_byte_offset")); ok && n >= 0 && n < float64(end) {
		end = int64(n)
	}
	last, bounded := history.Number(base.Get("end_ordinal_exclusive"))
	var s *state
	for line, err := range history.EachRecord(file, end) {
		if err != nil {
			return nil, err
		}
		rec, ok := parseRecord(line.Bytes)
		if !ok {
			continue
		}
		if s == nil && rec.kind == typeMeta {
			if s, err = stateBefore(path, rec.payload, seen); s == nil {
				return nil, err
			}
		}
		if bounded && rec.ordered && float64(rec.ordinal) >= last {
			return s, nil
		}
		if s != nil {
			s.pass(&rec)
		}
	}
	return s, nil
}

// stateBefore returns the state that a rollout begins with.
func stateBefore(path string, header jsonx.Object, seen map[string]bool) (*state, error) {
	if base, ok := jsonx.ReadFields(header.Get("history_base")); ok {
		return walk(path, base, seen)
	}
	id := header.String("id")
	return &state{Chain: "codex:" + id, Usage: id}, nil
}

// pass moves over a record without decoding it.
func (s *state) pass(r *record) {
	switch {
	case r.speaks():
		s.Tip = s.advance(r)
	case r.isEvent("token_count"):
		if info := parseTokenInfo(r.payload.Get("info")); info != nil {
			if used, _, ok := s.counted(info); ok {
				s.usageKey(used)
			}
		}
	case r.kind == typeContext:
		s.Model = plainText(r.payload.String("model"))
	}
}
