package contextmgr

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// pictures are the bytes of an overlay's copies, which its JSON does not hold: parts of the copies
// name them, and parts of the record's message keep them.
type pictures struct {
	named map[string]*session.Blob // by their SHA-256
	noted []session.Part           // those for which imports of earlier versions kept only a note
}

// imageNote is that note.
const imageNote = "[image]"

// readPictures reads the pictures of the overlay's copies.
func (m *Manager) readPictures(ctx context.Context, s *snapshot) error {
	if s.Overlay == nil {
		return nil
	}
	copies := string(s.Overlay.Replacement)
	noted := strings.Contains(copies, `"`+imageNote+`"`) && s.Overlay.Trigger == session.TriggerImport
	if noted && s.Overlay.ThroughID != nil {
		record, err := m.store.MessageByID(ctx, *s.Overlay.ThroughID)
		if err != nil {
			return fmt.Errorf("the record of %s: %w", overlayName(s.Overlay.RowID), err)
		}
		s.Pictures.noted = recordedImages(&record)
	}
	if !strings.Contains(copies, `"blob"`) {
		return nil
	}
	s.Pictures.named = map[string]*session.Blob{}
	for _, msg := range ReplacementOf(s.Overlay) {
		for i := range msg.Parts {
			sha := msg.Parts[i].BlobSHA
			if sha == nil || s.Pictures.named[*sha] != nil {
				continue
			}
			blob, err := m.store.Blob(ctx, *sha)
			switch session.CodeOf(err) {
			case "":
				s.Pictures.named[*sha] = &blob
			case session.NotFound: // the loss says it
			default:
				return fmt.Errorf("a picture of %s: %w", overlayName(s.Overlay.RowID), err)
			}
		}
	}
	return nil
}

// recordedImages returns the images of the history that a record of Codex's holds as it came, in
// order.
func recordedImages(record *session.Message) (images []session.Part) {
	for i := range record.Parts {
		var payload struct {
			History jsontext.Value `json:"replacement_history"`
		}
		if b := record.Parts[i].Blob; b == nil || json.Unmarshal(b.Data, &payload) != nil {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(payload.History))
		for token, err := dec.Token(); err == nil; token, err = dec.Token() {
			url, _ := token.(string)
			head, encoded, found := strings.Cut(url, ";base64,")
			mediaType, isData := strings.CutPrefix(head, "data:")
			data, err := base64.StdEncoding.DecodeString(encoded)
			if !found || !isData || !strings.HasPrefix(mediaType, "image/") || err != nil {
				continue
			}
			blob := &session.Blob{SHA256: hashOf(string(data)), Size: int64(len(data)), MediaType: mediaType, Data: data}
			images = append(images, session.Part{
				Kind: session.PartImage, Blob: blob, BlobSHA: &blob.SHA256,
				Extra: session.JSONOf(map[string]string{"media_type": mediaType}),
			})
		}
	}
	return images
}

// attachPictures gives the overlay's copies their pictures. A note stands for those that are gone,
// with a loss.
func (in *Material) attachPictures(copies []session.Message) (losses []string) {
	var notes []*session.Part
	lose := func(what string) {
		losses = append(losses, overlayName(in.Overlay.RowID)+": a note stands for "+what)
	}
	for i := range copies {
		for k := range copies[i].Parts {
			p := &copies[i].Parts[k]
			if p.Text == imageNote && in.Overlay.Trigger == session.TriggerImport {
				notes = append(notes, p)
			}
			if p.BlobSHA == nil || p.Blob != nil {
				continue
			}
			if p.Blob = in.Pictures.named[*p.BlobSHA]; p.Blob == nil {
				lose(fmt.Sprintf("the %s %s of a copy: its bytes are gone", p.Kind, *p.BlobSHA))
				*p = session.TextPart("[" + string(p.Kind) + "]")
			}
		}
	}
	for i, p := range notes {
		if len(notes) != len(in.Pictures.noted) { // which is which is not known
			lose("an image of a copy, which its import did not keep")
			continue
		}
		*p = in.Pictures.noted[i]
	}
	return losses
}
