package codex

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// rolloutID is the last UUID in a rollout's file name.
func rolloutID(path string) string {
	name := stem(path)
	const uuid = 36
	if len(name) < uuid {
		return ""
	}
	return name[len(name)-uuid:]
}

func stem(path string) string {
	name := filepath.Base(path)
	name = strings.TrimSuffix(name, ".zst")
	return strings.TrimSuffix(name, plainEnding)
}

// sibling finds the file of a rollout: in the same folder, else anywhere in the same home.
func sibling(path, id string) string {
	if id == "" || strings.ContainsAny(id, `/\*?[`) {
		return ""
	}
	patterns := []string{filepath.Dir(path)}
	if dir := home(path); dir != "" {
		patterns = append(patterns, filepath.Join(dir, archive), filepath.Join(dir, "sessions", "*", "*", "*"))
	}
	for _, dir := range patterns {
		for _, ending := range []string{plainEnding, compressedEnding} {
			found, err := filepath.Glob(filepath.Join(dir, "*"+id+ending))
			if err != nil {
				continue
			}
			for _, file := range found {
				if rolloutID(file) == id && file != path {
					return file
				}
			}
		}
	}
	return ""
}

// threadOf returns the thread of a rollout, by its file's name; without the file it is taken for
// the first rollout of its thread, whose ids are equal.
func (r *reader) threadOf(rollout string) string {
	if file := sibling(r.path, rollout); file != "" {
		name := stem(file)
		if before, _, ok := strings.Cut(name, "_"); ok && len(before) >= 36 {
			return before[len(before)-36:]
		}
	}
	return rollout
}

// findBase follows history_base: the records before this file's stand in another one. Their
// keys lead to what is here of them.
func (r *reader) findBase() error {
	base, ok := history.Fields(r.header.Get("history_base"))
	if !ok {
		return nil
	}
	before, err := r.walk(r.path, base, map[string]bool{r.path: true})
	switch {
	case err != nil:
		return err
	case before == nil:
		r.in.Problem(1, "its history_base names a rollout that is not here; only its own part is imported")
		r.state.Chain += "/" + rolloutID(r.path)
		return nil
	}
	r.state.Chain, r.state.Total, r.state.Usage = before.Chain, before.Total, before.Usage
	r.state.Model, r.state.Effort = before.Model, before.Effort
	sessions := r.from.sessions
	if own, err := r.in.Session(r.id); err != nil {
		return err
	} else if own != nil {
		sessions = append([]*session.Session{own}, sessions...)
	}
	for _, s := range sessions {
		at, err := r.in.Known.Message(r.in.Context(), s.ID, before.Tip.Key)
		if err != nil {
			return err
		}
		if at != nil {
			r.state.Tip = place{Key: before.Tip.Key}
			base := r.state.Tip
			r.state.Base = &base
			return nil
		}
	}
	r.in.Problem(1, "the records of its history_base are not here; only its own part is imported")
	return nil
}

// walk goes over the part of a rollout that another one begins with, recursively, and gives
// the state behind it; nil where a file is missing or the files name one another in a circle.
func (r *reader) walk(from string, base history.Object, seen map[string]bool) (*state, error) {
	path := sibling(from, base.String("thread_id"))
	if path == "" || seen[path] || len(seen) > history.MaxForks {
		return nil, nil
	}
	seen[path] = true
	file, err := open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.close()
	end := file.size
	if n, ok := number(base.Get("end_byte_offset")); ok && n >= 0 && n < float64(end) {
		end = int64(n)
	}
	last, bounded := number(base.Get("end_ordinal_exclusive"))
	s := &state{}
	lines := history.NewLines(file, 0, end)
	for first := true; ; {
		line, _, ended, err := lines.Next()
		if errors.Is(err, io.EOF) || err == nil && !ended {
			break
		}
		if err != nil {
			return nil, err
		}
		rec, ok := parseRecord(line)
		if !ok {
			continue
		}
		if first && rec.kind == typeMeta {
			first = false
			if s.Chain, err = r.baseChain(path, rec.payload, s, seen); err != nil || s.Chain == "" {
				return nil, err
			}
		}
		if bounded && rec.ordered && float64(rec.ordinal) >= last {
			break
		}
		s.pass(&rec)
	}
	return s, nil
}

// baseChain returns the key that a rollout begins with.
func (r *reader) baseChain(path string, header history.Object, s *state, seen map[string]bool) (string, error) {
	inner, ok := history.Fields(header.Get("history_base"))
	if !ok {
		s.Usage = header.String("id")
		return "codex:" + header.String("id"), nil
	}
	before, err := r.walk(path, inner, seen)
	if err != nil || before == nil {
		return "", err
	}
	s.Total, s.Usage, s.Tip = before.Total, before.Usage, before.Tip
	return before.Chain, nil
}

// pass moves over a record without decoding it.
func (s *state) pass(r *record) {
	switch {
	case r.speaks():
		s.Tip = place{Key: s.advance(r)}
	case r.kind == typeUsage:
		s.Recorded = true
	case r.kind == typeEvent && r.sub == "token_count":
		info, _ := history.Fields(r.payload.Get("info"))
		if used, _, ok := s.counted(info); ok {
			s.Usage = after(s.Usage, s.Total.String()+" "+used.String())
		}
	case r.kind == typeContext:
		s.Model, s.Effort = plainText(r.payload.String("model")), plainText(r.payload.String("effort"))
	}
}
