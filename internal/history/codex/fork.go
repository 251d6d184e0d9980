package codex

import (
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// gap watches for the pause that ends the burst in which a fork's copies were written.
type gap struct {
	last   session.Time
	copies int
	off    bool
}

// boundary notes the first record of a fork that is no copy, by the signs that need no look at
// the origin, best first: its ordinal, a turn that is younger than the thread, a record that
// only new turns have after another thread's header, a pause of a second after a burst.
func (s *surveyor) boundary(r *record) {
	if s.own >= 0 || s.line == 0 {
		s.gap.last = r.at
		return
	}
	start, given := number(s.header.Get("subagent_history_start_ordinal"))
	switch {
	case given:
		if r.ordered && r.ordinal >= int64(start) {
			s.begins(r)
		}
		return
	case r.kind == typeMeta:
		s.others = r.payload.String("id") != s.id
		s.foreign = s.foreign || s.others
	case s.header.String("forked_from_id") == "" && !s.foreign:
		return
	case r.kind == typeEvent && (r.sub == "task_started" || r.sub == "turn_started") && younger(r.payload.String("turn_id"), s.id),
		s.foreign && (r.kind == typeAgentMeta || r.kind == typeEvent && r.sub == "thread_settings_applied"),
		s.pause(r):
		s.begins(r)
	}
	s.gap.last = r.at
}

// begins notes where the fork's own records begin; its title is what is said there.
func (s *surveyor) begins(r *record) {
	s.own = r.offset
	s.firstUser, s.typed = "", ""
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
func isAgent(header history.Object) bool {
	if _, is := history.Fields(header.Get("source")); is {
		o, _ := history.Fields(header.Get("source"))
		return o.Get("custom") == nil
	}
	switch header.String("thread_source") {
	case "subagent", "guardian_review", "memory_consolidation":
		return true
	}
	return header.String("parent_thread_id") != ""
}

// spawner returns the thread that started a sub-agent.
func spawner(header history.Object) string {
	if id := header.String("parent_thread_id"); id != "" {
		return id
	}
	source, _ := history.Fields(header.Get("source"))
	agent, _ := history.Fields(source.Get("subagent"))
	spawn, _ := history.Fields(agent.Get("thread_spawn"))
	return spawn.String("parent_thread_id")
}

// lineage is where a thread comes from.
type lineage struct {
	root     string             // the oldest thread known of: the keys of all its forks begin with it
	sessions []*session.Session // those it was forked off that are here, the nearest first
	parent   *session.Session   // the nearest of them, or who started it
	kind     string             // fork or child
}

// origins follows the forks of a thread back.
func (r *reader) origins() (lineage, error) {
	l := lineage{root: r.id}
	next := r.header.String("forked_from_id")
	if base, ok := history.Fields(r.header.Get("history_base")); ok && next == "" {
		if id := r.threadOf(base.String("thread_id")); id != r.id {
			next = id
		}
	}
	agent := isAgent(r.header)
	seen := map[string]bool{r.id: true}
	for next != "" && !seen[next] && len(seen) < history.MaxForks && !agent {
		at := next
		seen[at] = true
		l.root = at
		found, err := r.in.Session(at)
		if err != nil {
			return l, err
		}
		if found == nil {
			if len(l.sessions) == 0 {
				r.in.Await(at)
			}
			break
		}
		l.sessions = append(l.sessions, found)
		metadata, _ := history.ParseObject(found.Metadata)
		header, _ := history.Fields(metadata.Get("codex"))
		next = header.String("forked_from_id")
		if next == "" {
			break
		}
	}
	if len(l.sessions) > 0 {
		l.parent, l.kind = l.sessions[0], session.ParentFork
		return l, nil
	}
	starter := spawner(r.header)
	if starter == "" && agent {
		starter = r.header.String("forked_from_id")
	}
	if starter == "" && agent && r.header.String("session_id") != r.id {
		starter = r.header.String("session_id")
	}
	if starter == "" || starter == r.id {
		return l, nil
	}
	found, err := r.in.Session(starter)
	if err == nil && found != nil {
		l.parent, l.kind = found, session.ParentChild
	} else {
		r.in.Await(starter)
	}
	return l, err
}
