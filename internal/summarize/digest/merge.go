package digest

import "slices"

// merge joins the summaries of consecutive spans, oldest first. Work in progress and next steps of
// all but the newest count as done. The goal of the first stays; later ones are among what the person also said.
// Entries of the indexes alternate, the newest span's first, so that each span has its share.
func merge(spans []string) outline {
	var all outline
	has := map[string]bool{}
	first := -1 // the span with the goal
	indexes := make([][]string, len(spans))
	for i, text := range spans {
		o := parseOutline(text)
		if first < 0 && len(o.lines[goal]) > 0 {
			first = i
		}
		indexes[len(spans)-1-i] = o.index
		for s := range sectionCount {
			to := s
			switch {
			case i < len(spans)-1 && (s == inProgress || s == next):
				to = done
			case s == goal && len(all.lines[goal]) > 0 && i != first:
				to = alsoSaid
			}
			for _, l := range o.lines[s] {
				if !has[l.text] {
					has[l.text] = true
					all.lines[to] = append(all.lines[to], l)
				}
			}
		}
	}
	for k := 0; ; k++ {
		more := false
		for _, index := range indexes {
			if k < len(index) {
				more = true
				if !has[index[k]] {
					has[index[k]] = true
					all.index = append(all.index, index[k])
				}
			}
		}
		if !more {
			return all
		}
	}
}

// mergeRunning is merge without the rules that were taken back since their span: the running summary before has room
// for them, in limit tokens, and lacks them.
func mergeRunning(spans []string, running string, limit int64, count func(string) int64) outline {
	all := merge(spans)
	if running == "" {
		return all
	}
	held, room := map[string]bool{}, rulesBudget(limit)
	before := parseOutline(running)
	for s := range sectionCount {
		for _, l := range before.lines[s] {
			if s == rules || nameBehind.MatchString(l.text) {
				held[withoutName(l.text)] = true
				room -= count("- " + l.text + "\n")
			}
		}
	}
	for s := range sectionCount {
		all.lines[s] = slices.DeleteFunc(all.lines[s], func(l line) bool {
			return (s == rules || nameBehind.MatchString(l.text)) && !held[withoutName(l.text)] && count("- "+l.text+"\n") < room
		})
	}
	return all
}
