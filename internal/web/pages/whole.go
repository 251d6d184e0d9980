package pages

import (
	"net/http"
	"strconv"
	"strings"

	"sessiond/internal/session"
	"sessiond/internal/transcript"
)

// whole answers a part of a message that a conversation's page does not show whole: a text as plain text, an image
// as what it is, anything else as a download. Nothing in it can run.
func (p *Pages) whole(w http.ResponseWriter, r *http.Request) error {
	ctx, id := r.Context(), session.ID(r.PathValue("id"))
	ref, err := refIn(id, r.PathValue("message"))
	if err != nil {
		return err
	}
	part, err := strconv.Atoi(r.PathValue("part"))
	if err != nil {
		return session.Errorf(session.Invalid, "part %.20q is not a number", r.PathValue("part"))
	}
	if err := p.Store.OnTree(ctx, id, ref); err != nil {
		return err
	}
	began := false
	err = p.Store.WritePart(ctx, ref, part, w, func(part *session.Part, head []byte) {
		began = true
		kind := "text/plain; charset=utf-8"
		if part.Kind.HasBytes() && part.BlobSHA != nil {
			if kind = transcript.PictureType(head); kind == "" {
				kind = "application/octet-stream"
				w.Header().Set("Content-Disposition",
					"attachment; filename="+strconv.Quote(strings.ReplaceAll(ref.String(), ".", "-")))
			}
		}
		w.Header().Set("Content-Type", kind)
	})
	if err != nil && began {
		panic(http.ErrAbortHandler) // what is out must not look whole
	}
	return err
}
