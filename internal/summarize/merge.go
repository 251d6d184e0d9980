package summarize

// merge puts the summaries of consecutive spans together, oldest first. Only the newest tells
// what is in progress and what comes next: of the others that is done by now, or was left.
// What a person began a later span with is one wish among others, not what all is for.
// Entries of the indexes take turns, the newest span's first, so that each has its share.
func merge(spans []string) outline {
	var all outline
	taken := map[string]bool{}
	first := -1 // the span that says what all is for
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
				to = constraints
			}
			for _, l := range o.lines[s] {
				if !taken[l.text] {
					taken[l.text] = true
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
				if !taken[index[k]] {
					taken[index[k]] = true
					all.index = append(all.index, index[k])
				}
			}
		}
		if !more {
			return all
		}
	}
}
