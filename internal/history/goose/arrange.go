package goose

import (
	"slices"

	"sessiond/internal/session"
)

// shown is what the rest of the conversation makes of a record.
type shown struct {
	marker  bool   // a compaction's own row: its text is in the overlay
	hidden  bool   // a compaction hides it
	again   string // the key of the prompt that it repeats
	author  session.Origin
	note    string
	paired  bool // it is a call or a result that a summary replaces, or that summary
	between bool // it is the summary: its text is in an overlay
}

// arrange finds the records that belong to a compaction, are hidden by one, or repeat a prompt.
func (r *reader) arrange() {
	r.markers, r.again, r.repeated = map[int]*summarised{}, map[int]int{}, map[int]bool{}
	r.hidden = -1
	wanted := map[uint64]int{} // texts of prompts that are repeated: index of the newest, -1: none yet
	kept := map[int]bool{}
	for k := range r.overlays {
		c := &r.overlays[k]
		if k > 0 {
			c.previous = r.overlays[k-1].through + 1
		}
		r.markers[c.summary] = c
		if c.proceed >= 0 {
			r.markers[c.proceed] = nil
		}
		if c.kept >= 0 {
			kept[c.kept] = true
			wanted[r.records[c.kept].text] = -1
		}
		r.hidden = c.summary
	}
	for i := range r.records {
		m := &r.records[i]
		_, marker := r.markers[i]
		last, is := wanted[m.text]
		if !is || m.text == 0 || m.role != "user" || marker {
			continue
		}
		if last >= 0 && kept[i] { // a compaction says the last prompt again
			r.again[i], r.repeated[last] = last, true
		}
		wanted[m.text] = i
	}
	r.pairings()
}

// shown returns what the rest of the conversation makes of a record.
func (r *reader) shown(i int) shown {
	_, marker := r.markers[i]
	how := shown{marker: marker, hidden: i < r.hidden, author: r.about.author}
	if k, ok := r.paired[i]; ok {
		how.paired = true
		if how.between = slices.Contains(r.pairs[k].summaries, i); how.between {
			how.note = "stands for calls that the model does not see any more"
		}
	}
	if first, ok := r.again[i]; ok {
		how.again = r.records[first].key
	}
	return how
}
