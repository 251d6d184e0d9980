package summarize

// merge puts the summaries of consecutive spans together, oldest first. Only the newest tells
// what is in progress and what comes next: of the others that is done by now, or was left.
// Entries of the indexes take turns, the newest span's first, so that each has its share.
func merge(spans []string) outline {
	var all outline
	taken := map[string]bool{}
	indexes := make([][]string, len(spans))
	for i, text := range spans {
		o := parseOutline(text)
		indexes[len(spans)-1-i] = o.index
		for s := range sectionCount {
			to := s
			if i < len(spans)-1 && (s == inProgress || s == next) {
				to = done
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
