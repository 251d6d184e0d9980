package summarize

// merge joins the summaries of consecutive spans, oldest first. Work in progress and next steps of
// all but the newest count as done. The goal of the first stays; later ones are among what the person also said.
// Entries of the indexes alternate, the newest span's first, so that each span has its share. Rules that the summary
// before, previous, no longer has were taken back since: they are left out. "": that is not known.
func merge(spans []string, previous string) outline {
	var all outline
	held := rulesIn(previous)
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
				if previous != "" && (s == rules || nameBehind.MatchString(l.text)) && !held[withoutName(l.text)] {
					continue
				}
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

// rulesIn returns the standing rules of a summary, as withoutName writes them.
func rulesIn(summary string) map[string]bool {
	held := map[string]bool{}
	o := parseOutline(summary)
	for s := range sectionCount {
		for _, l := range o.lines[s] {
			if s == rules || nameBehind.MatchString(l.text) {
				held[withoutName(l.text)] = true
			}
		}
	}
	return held
}
