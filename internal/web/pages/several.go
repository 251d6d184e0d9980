package pages

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"sessiond/internal/export"
	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/web/answers"
)

// several does with the sessions that are marked in a list what a button of the list says, and shows the list again.
func (p *Pages) several(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return session.Errorf(session.Invalid, "the form cannot be read: reload the page")
	}
	ids, back := r.PostForm["session"], ownPage(r.PostFormValue("back"))
	say := func(text string) {
		http.SetCookie(w, saidCookie("/", url.QueryEscape(text), 60))
		http.Redirect(w, r, back, http.StatusSeeOther)
	}
	if len(ids) == 0 {
		say("No session is marked: mark some with the boxes before their titles.")
		return nil
	}
	on, off := true, false
	var change store.SessionPatch
	var tags []string // to add instead
	done := ""
	switch r.PostFormValue("do") {
	case "star":
		change.Starred, done = &on, "starred"
	case "unstar":
		change.Starred, done = &off, "without a star"
	case "archive":
		change.Archived, done = &on, "archived"
	case "unarchive":
		change.Archived, done = &off, "no longer archived"
	case "tag":
		tag := strings.TrimSpace(r.PostFormValue("text"))
		if tag == "" {
			say("Nothing was tagged: write the tag beside the button.")
			return nil
		}
		tags, done = []string{tag}, "tagged #"+tag
	case "md", "jsonl":
		return p.exportSeveral(w, r, ids)
	default:
		return session.Errorf(session.NotFound, "a list has no action %q", r.PostFormValue("do"))
	}
	for i, id := range ids {
		var err error
		if tags != nil {
			_, err = p.Store.ChangeTags(r.Context(), store.Marking{Session: session.ID(id)}, tags, nil)
		} else {
			_, err = p.Store.PatchSession(r.Context(), session.ID(id), change)
		}
		if err != nil {
			if i > 0 {
				err = session.Errorf(session.CodeOf(err), "%s changed; then: %v", transcript.Counted(i, "session"), err)
			}
			return err
		}
	}
	say(transcript.Counted(len(ids), "session") + ": " + done + ".")
	return nil
}

// exportSeveral answers a file with some sessions: md to read, jsonl for an import.
func (p *Pages) exportSeveral(w http.ResponseWriter, r *http.Request, names []string) error {
	var ids []session.ID
	for _, name := range names {
		sess, err := p.Store.Session(r.Context(), session.ID(name))
		if err != nil {
			return err
		}
		ids = append(ids, sess.ID)
	}
	name := "sessions"
	if len(ids) == 1 {
		name = string(ids[0])
	}
	return p.download(w, r, export.Format(r.PostFormValue("do")), name, ids)
}

// download answers an export. With the field redact secrets in it are masked. Codes: Invalid (the format).
func (p *Pages) download(w http.ResponseWriter, r *http.Request, format export.Format, name string,
	ids []session.ID,
) error {
	if err := format.Check(); err != nil {
		return err
	}
	opt := export.Options{Zone: p.Zone}
	if r.FormValue("redact") != "" {
		opt.Mask = &redact.Masker{}
	}
	w.Header().Set("Content-Type", format.MediaType())
	w.Header().Set("Content-Disposition", "attachment; filename="+strconv.Quote(name+format.Extension()))
	if _, err := export.Write(r.Context(), answers.Patient(w), p.Store, format, ids, opt); err != nil {
		if r.Context().Err() == nil {
			p.Log.Error().Err(err).Str("path", r.URL.Path).Msg("an export failed")
		}
		panic(http.ErrAbortHandler) // half a file is out: the browser must see that it is broken
	}
	return nil
}
