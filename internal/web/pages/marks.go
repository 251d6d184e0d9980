package pages

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

// marksOf is what a person put on a session and its messages.
type marksOf struct {
	Tags     []marking // the session's
	Note     session.Mark
	Messages []marking // tags and notes of messages
	InAll    []string  // tags that sessions have, to choose from
}

// marking is a tag or a note, and where it leads.
type marking struct{ Text, Address, Word string }

// mostMarks is how many marks of messages a page lists.
const mostMarks = 100

// readMarks reads what a person put on a session and its messages.
func (p *Pages) readMarks(ctx context.Context, id session.ID) (out marksOf, err error) {
	all, err := p.Store.Marks(ctx, id)
	if err != nil {
		return out, err
	}
	for _, m := range all {
		switch {
		case m.Message == nil && m.Kind == store.MarkTag:
			out.Tags = append(out.Tags, marking{Text: m.Text, Address: address("/", nil, "tag", m.Text)})
		case m.Message == nil && m.Kind == store.MarkNote:
			out.Note = m
		case m.Message != nil && m.Kind != store.MarkPin && len(out.Messages) < mostMarks:
			text := transcript.OneLine(m.Text, promptWidth)
			if m.Kind == store.MarkTag {
				text = "#" + text
			}
			word := strconv.FormatInt(m.Message.Seq, 10)
			out.Messages = append(out.Messages, marking{text, messageAddress(id, *m.Message), word})
		}
	}
	values, err := p.Store.Values(ctx, store.ColumnTag)
	for _, v := range values {
		out.InAll = append(out.InAll, v.Text)
	}
	return out, err
}

// markBy does what a form changes of a session, and returns what it did and where to go on. Codes: NotFound, Invalid,
// PreconditionFailed (the note changed meanwhile).
func (p *Pages) markBy(ctx context.Context, id session.ID, r *http.Request) (said, to string, err error) {
	of, to := store.Marking{Session: id}, "/s/"+string(id)
	if message := r.PostFormValue("message"); message != "" {
		ref, err := refIn(id, message)
		if err != nil {
			return "", to, err
		}
		of.Message, to = &ref, messageAddress(id, ref)
	}
	yes, no, text := true, false, r.PostFormValue("text")
	patch := func(change store.SessionPatch, done string) {
		said = done
		_, err = p.Store.PatchSession(ctx, id, change)
	}
	switch r.PathValue("action") {
	case "tag":
		said = "Tagged."
		_, err = p.Store.ChangeTags(ctx, of, []string{text}, nil)
	case "untag":
		said = "The tag is removed."
		_, err = p.Store.ChangeTags(ctx, of, nil, []string{text})
	case "note":
		revision, parseErr := strconv.ParseInt(r.PostFormValue("revision"), 10, 64)
		if parseErr != nil {
			return "", to, session.Errorf(session.Invalid, "the note's form has no revision: reload the page")
		}
		said = "The note is stored."
		_, err = p.Store.SetNote(ctx, of, text, &revision)
	case "rename":
		title := transcript.OneLine(text, longestTitle)
		if title == "" {
			return "", to, session.Errorf(session.Invalid, "the title is empty: write one")
		}
		patch(store.SessionPatch{Title: &title}, "Renamed.")
	case "star":
		patch(store.SessionPatch{Starred: &yes}, "Starred.")
	case "unstar":
		patch(store.SessionPatch{Starred: &no}, "No star any more.")
	case "archive":
		patch(store.SessionPatch{Archived: &yes}, "Archived: lists leave it out, searches find it.")
	case "unarchive":
		patch(store.SessionPatch{Archived: &no}, "No longer archived.")
	}
	return said, to, err
}

// longestTitle is the longest title that a form stores, in columns.
const longestTitle = 200

// conflict is a stored note, and the text of a form that was made from an older one.
type conflict struct {
	ID     session.ID
	Theirs session.Mark
	Yours  string
}

// showConflict shows the stored note beside the text that was to be stored, which is kept in the form.
func (p *Pages) showConflict(w http.ResponseWriter, r *http.Request, id session.ID) error {
	theirs, err := p.Store.Note(r.Context(), store.Marking{Session: id})
	if err != nil {
		return err
	}
	return p.show(w, r, "conflict", frame{
		Title: "The note was changed meanwhile",
		Body:  conflict{id, theirs, strings.ReplaceAll(r.PostFormValue("text"), "\r\n", "\n")},
	})
}
