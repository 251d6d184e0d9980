package pages

import (
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"sessiond/internal/export"
	"sessiond/internal/folders"
	"sessiond/internal/session"
	"sessiond/internal/transcript"
)

// Limits of the view of files.
const (
	mostListed  = 500 // files
	mostChanged = 200 // messages whose changes are shown
)

// filesPage is what a session did to files.
type filesPage struct {
	*session.Session
	Files []fileRow
	More  int    // files that are left out
	Shown string // the file whose changes are shown; "": of all
	All   string // address of the conversation
	Older int    // messages whose changes are left out
	None  bool   // nothing was changed
}

// Pieces marks the place of the changes in the page.
func (*filesPage) Pieces() template.HTML { return piecesMark }

type fileRow struct {
	Path, Address string
	Reads         int
	Changes       int
	On            bool
}

// files shows the files that a session touched, and their changes in order. The parameter path narrows it to one file.
func (p *Pages) files(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	sess, err := p.Store.Session(ctx, session.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	files, err := p.Store.FilesOfSession(ctx, sess.ID)
	if err != nil {
		return err
	}
	page := filesPage{Session: &sess, Shown: r.FormValue("path"), All: "/s/" + string(sess.ID)}
	var rows []int64
	known := map[int64]bool{}
	for i := range files {
		f := &files[i]
		on := f.Path == page.Shown
		if i < mostListed || on {
			page.Files = append(page.Files, fileRow{
				inFolder(f.Path, sess.Directory), address(page.All+"/files", url.Values{}, "path", f.Path), f.Reads,
				len(f.Changes), on,
			})
		} else {
			page.More++
		}
		for _, row := range f.Changes {
			if (page.Shown == "" || on) && !known[row] {
				known[row] = true
				rows = append(rows, row)
			}
		}
	}
	page.None = len(rows) == 0
	page.Older = max(0, len(rows)-mostChanged)
	slices.Sort(rows)
	rows = rows[page.Older:]
	return p.show(w, r, "files", frame{
		Title: "Files of " + titleOf(&sess), Body: &page,
		pieces: func(w io.Writer) error { return p.changes(r, w, &sess, page.Shown, rows) },
	})
}

// changes writes what some messages changed, in files or in one of them.
func (p *Pages) changes(r *http.Request, w io.Writer, sess *session.Session, only string, rows []int64) error {
	pieces := transcript.NewPieces(w, p.Zone)
	head := session.Head{Text: 1 << 20}
	if err := p.Store.EachHead(r.Context(), rows, head, func(m *session.Message) error {
		for _, c := range transcript.Changes(m) {
			path := folders.Join(sess.Directory, c.Path)
			if only != "" && path != only {
				continue
			}
			c.Path = inFolder(path, sess.Directory)
			pieces.Change(m, &c, messageAddress(sess.ID, m.ID))
		}
		return nil
	}); err != nil {
		return err
	}
	return pieces.Close()
}

// inFolder returns a path as it is called in a folder.
func inFolder(path, folder string) string {
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(folder, "/")+"/"); ok && folder != "" {
		return rest
	}
	return path
}

// export answers a file of a conversation: html or md to read, jsonl for an import. With redact secrets are masked.
func (p *Pages) export(w http.ResponseWriter, r *http.Request) error {
	sess, err := p.Store.Session(r.Context(), session.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	return p.download(w, r, export.Format(r.FormValue("format")), string(sess.ID), []session.ID{sess.ID})
}
