package search

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"sessiond/internal/session"
)

// A word in a tag or a note counts as in a title: a person chose it.
const markWeight = titleWeight

// marked are the tags and notes that a query finds.
type marked struct {
	docs     []doc                           // of messages whose tags and note have all words of the query
	sessions map[session.ID]*strings.Builder // the sessions' own tags and notes that have one of the words
}

// findMarked finds the words of the query in tags and notes, which are not in the index: they change.
func (r *run) findMarked(ctx context.Context) error {
	r.marked = marked{sessions: map[session.ID]*strings.Builder{}}
	content := r.parsed.content()
	if r.query.Rare || len(content) == 0 {
		return nil
	}
	all, err := r.ix.src.MarksWith(ctx, r.spellings(content))
	if err != nil || len(all) == 0 {
		return err
	}
	texts := map[int64]string{} // by row
	for i := range all {
		switch m := &all[i]; {
		case m.Row != 0:
			texts[m.Row] += m.Text + "\n"
		case r.marked.sessions[m.Session] == nil:
			r.marked.sessions[m.Session] = &strings.Builder{}
			fallthrough
		default:
			r.marked.sessions[m.Session].WriteString(m.Text + "\n")
		}
	}
	var rows []string
	for row, text := range texts {
		names := r.namesIn(text)
		if !slices.ContainsFunc(content, func(t term) bool { return !t.isIn(names) }) {
			rows = append(rows, strconv.FormatInt(row, 10))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	slices.Sort(rows)
	filtered := *r // by everything but words, which the marks have
	_, filtered.parsed.terms = r.parsed.wanted()
	from, to := r.query.docRange()
	for _, place := range r.places {
		some, err := readRows(ctx, place, scanDoc, `SELECT d.docid, d.message_id, d.session_id, d.seq, d.words, d.tool, 0.0
			FROM docs d CROSS JOIN words w ON w.rowid = d.docid
			WHERE d.message_id IN (`+strings.Join(rows, ", ")+`) AND d.docid BETWEEN ? AND ? AND w.words MATCH ?`,
			from, to, filtered.expression(anyTag(tagRole, []string{"system", "user", "assistant", "tool"})))
		if err != nil {
			return err
		}
		r.marked.docs = append(r.marked.docs, some...)
	}
	for i := range r.marked.docs {
		d := &r.marked.docs[i]
		d.marked = strings.TrimSpace(texts[d.rowID])
		for _, t := range content {
			d.score += markWeight * r.rarity[t.raw]
		}
	}
	slices.SortFunc(r.marked.docs, func(a, b doc) int { return cmp.Compare(b.docid, a.docid) })
	if len(r.marked.docs) > 0 { // they have all words
		r.missing = slices.DeleteFunc(r.missing, func(m Missing) bool {
			return slices.ContainsFunc(content, func(t term) bool { return m.Word == shortened(t.raw) })
		})
	}
	return nil
}

// spellings returns how words may be written in names, in small letters.
func (r *run) spellings(content []term) (texts []string) {
	for _, t := range content {
		patterns := append(t.patterns(), strings.ToLower(t.raw))
		if r := []rune(patterns[len(patterns)-1]); len(t.languages) > 0 && len(r) > namePrefix { // Verträge, of Vertrag
			patterns = append(patterns, string(r[:namePrefix]))
		}
		for _, pattern := range patterns {
			texts = append(texts, pattern, norm.NFC.String(pattern), norm.NFD.String(pattern))
			// SQLite's LOWER leaves these as they are
			if first, size := utf8.DecodeRuneInString(pattern); first >= utf8.RuneSelf {
				texts = append(texts, string(unicode.ToUpper(first))+pattern[size:])
			}
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}
