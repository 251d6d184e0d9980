package goose

import (
	"slices"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// summarised is a compaction as Goose leaves it: a summary in the user's role that only the
// model sees, mostly followed by a line that tells it to go on.
type summarised struct {
	summary  int // index of its record
	proceed  int // of the line after it, -1: there is none
	through  int // of the last record that it replaces
	kept     int // of the first one after it, -1: there is none
	previous int // how many before it are hidden by an earlier one
}

// compactions finds them: a row for the model only, before which the model sees nothing, and
// after it one of the assistant that only the model sees. Both may be hidden by a later
// compaction. Rule: Goose, context_mgmt.
func compactions(records []record) []summarised {
	var found []summarised
	before, something := -1, false // the record before on the path; whether there is anything to summarise
	for i := range records {
		m := &records[i]
		if m.why != "" {
			continue
		}
		if something && m.isSummary() {
			next := after(records, i)
			c := summarised{summary: i, proceed: -1, through: before, kept: next}
			if next >= 0 && records[next].isProceed() && records[next].agent == m.agent {
				c.proceed, c.kept = next, after(records, next)
			}
			if c.proceed >= 0 || m.agent {
				found = append(found, c)
			}
		}
		if m.agent {
			break
		}
		before, something = i, something || m.says.model
	}
	return found
}

// arrange finds the records that belong to a compaction, are hidden by one, or repeat a prompt.
func (r *reader) arrange() {
	wanted := map[uint64]int{} // texts of prompts that are repeated: index of the newest, -1: none yet
	kept := map[int]bool{}
	hidden := -1 // the newest summary's index
	r.overlays = compactions(r.records)
	for k := range r.overlays {
		c := &r.overlays[k]
		if k > 0 {
			c.previous = r.overlays[k-1].through + 1
		}
		r.records[c.summary].marker, r.records[c.summary].made = true, c
		if c.proceed >= 0 {
			r.records[c.proceed].marker = true
		}
		if c.kept >= 0 {
			kept[c.kept] = true
			wanted[r.records[c.kept].text] = -1
		}
		hidden = c.summary
	}
	for i := range r.records {
		m := &r.records[i]
		m.hidden = i < hidden
		last, is := wanted[m.text]
		if !is || m.text == 0 || m.role != "user" || m.marker {
			continue
		}
		if last >= 0 && kept[i] { // a compaction says the last prompt again
			m.again, r.records[last].repeated = r.records[last].key, true
		}
		wanted[m.text] = i
	}
	r.pairings(hidden)
}

// after returns the index of the next record on the path, -1 if there is none.
func after(records []record, i int) int {
	for i++; i < len(records); i++ {
		if records[i].why == "" {
			return i
		}
	}
	return -1
}

func (m *record) isSummary() bool {
	return m.role == "user" && !m.user && m.says.text && !m.says.calls && !m.says.results && m.says.model
}

func (m *record) isProceed() bool {
	return m.role == "assistant" && !m.user && m.says.text && !m.says.calls && !m.says.results
}

// overlay adds a compaction, with the texts of its rows. Its count leaves out the messages that
// an earlier one replaces.
func (r *reader) overlay(c *summarised) {
	made := history.Compaction{Key: r.records[c.summary].key, ThroughKey: r.records[c.through].key}
	made.CreatedAt = r.records[c.summary].at
	for i := c.previous; i <= c.through; i++ {
		if r.records[i].why == "" {
			made.MessageCount++
		}
	}
	made.Summary = r.textOf(c.summary)
	details := session.CompactionDetails{ReadFiles: []string{}, ModifiedFiles: []string{}}
	if c.proceed >= 0 {
		details.Instructions = r.textOf(c.proceed)
	}
	made.Details = session.JSONOf(details)
	near := slices.IndexFunc(r.ledger, func(u usage) bool {
		return u.Purpose == session.PurposeSummary && isNear(u.CreatedAt, made.CreatedAt)
	})
	if near >= 0 {
		made.Model, made.Provider, made.TokensBefore = r.ledger[near].Model, r.about.provider, r.ledger[near].InputTokens
	}
	r.talk.Compact(made)
}

// isNear reports whether a summary and the call that made it can have two times.
func isNear(a, b session.Time) bool { return max(a.Unix()-b.Unix(), b.Unix()-a.Unix()) <= 5 }

// textOf returns the texts of a message, one under the other.
func (r *reader) textOf(i int) string {
	blocks, _ := blocksOf(r.records[i].row)
	var texts []string
	for _, p := range partsOf(blocks) {
		if p.Kind == session.PartText && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}
