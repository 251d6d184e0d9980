package goose

import (
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// summarised is a compaction as Goose leaves it: a summary in the user's role that only the
// model sees, mostly followed by a line that tells it to go on.
type summarised struct {
	summary  int // index of its record
	proceed  int // of the line after it, -1: there is none
	through  int // of the last record that it stands for
	kept     int // of the first one after it, -1: there is none
	previous int // how many before it are hidden by an earlier one
}

// compactions finds them: a row for the model only, before which the model sees nothing, and
// after it one of the assistant that only the model sees. Both may be hidden by a later
// compaction. Rule: Goose, context_mgmt.
func compactions(l *records) []summarised {
	var found []summarised
	something := false // that a summary can stand for
	for i := range l.len() {
		r := *l.at(i)
		if r.aside {
			continue
		}
		if something && isSummary(&r) {
			next := l.after(i)
			c := summarised{summary: i, proceed: -1, through: l.before(i), kept: next}
			if next >= 0 && isProceed(l.at(next)) && l.at(next).agent == r.agent {
				c.proceed, c.kept = next, l.after(next)
			}
			if c.proceed >= 0 || r.agent {
				found = append(found, c)
			}
		}
		if r.agent {
			break
		}
		something = something || r.says.model
	}
	return found
}

func isSummary(r *brief) bool {
	return r.role == userRole && !r.user && r.says.text && !r.says.calls && !r.says.results && r.says.model
}

func isProceed(r *brief) bool {
	return r.role == assistantRole && !r.user && r.says.text && !r.says.calls && !r.says.results
}

// overlay makes the compaction of what it became, without its texts. The through of a chain
// counts what an earlier one does not stand for.
func (c *summarised) overlay(l *records) session.Compaction {
	n := int64(0)
	for i := c.previous; i <= c.through; i++ {
		if !l.at(i).aside {
			n++
		}
	}
	return session.Compaction{
		Strategy: session.StrategySummarize, Trigger: session.TriggerImport, Status: session.StatusDone,
		MessageCount: n, CreatedAt: l.at(c.summary).time(),
	}
}

// overlay makes a compaction, with the texts of its rows.
func (r *reader) overlay(c *summarised) error {
	through := r.records.place(c.through)
	made := history.Compaction{Compaction: c.overlay(r.records), Key: r.records.place(c.summary).key, ThroughKey: through.key, ThroughSession: through.session}
	var err error
	if made.Summary, err = r.textOf(c.summary); err != nil {
		return err
	}
	details := session.CompactionDetails{ReadFiles: []string{}, ModifiedFiles: []string{}}
	if c.proceed >= 0 {
		if details.Instructions, err = r.textOf(c.proceed); err != nil {
			return err
		}
	}
	made.Details = session.JSONOf(details)
	if near := r.ledgerNear(made.CreatedAt); near != nil {
		made.Model, made.Provider = near.model, r.about.provider
		made.TokensBefore = near.input
	}
	r.batch.Compactions = append(r.batch.Compactions, made)
	return nil
}

// ledgerNear finds the call that made a summary.
func (r *reader) ledgerNear(at session.Time) *entry {
	for i := range r.ledger.summaries {
		if e := &r.ledger.summaries[i]; e.at != nil && e.at.Unix()-at.Unix() <= 5 && at.Unix()-e.at.Unix() <= 5 {
			return e
		}
	}
	return nil
}

// textOf gives the texts of a message, one under the other.
func (r *reader) textOf(i int) (string, error) {
	in, err := r.from.load(r.ctx, r.records, i)
	if err != nil {
		return "", err
	}
	blocks, _ := blocksOf(in)
	var texts []string
	for _, p := range partsOf(blocks) {
		if p.Kind == session.PartText && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n"), nil
}
