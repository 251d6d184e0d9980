package contextmgr

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// Compactions that were imported before their pictures were kept have a note in their place. The
// record holds them as they came, and the context has them again; where it does not, a loss says so.
func TestNotedPicturesComeFromTheRecord(t *testing.T) {
	var b bytes.Buffer
	testkit.Check(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))))
	url := "data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes())
	prompt := `{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"` + url + `"}]}`
	record := func(history string) *session.Message {
		return &session.Message{Parts: []session.Part{
			session.TextPart("context compacted"),
			{Kind: session.PartData, Blob: &session.Blob{
				MediaType: "application/json",
				Data:      []byte(`{"message":"","replacement_history":[` + history + `]}`),
			}},
		}}
	}
	copied := session.JSON(`[{"kind":"message","role":"user","parts":[{"kind":"text","text":"see"},{"kind":"text","text":"[image]"}]}]`)
	for _, c := range []struct {
		name, history string
		comesBack     bool
	}{
		{"one", prompt, true},
		{"none", ``, false},
		{"another number", prompt + "," + prompt, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := Material{
				Overlay:  &session.Compaction{RowID: 7, Trigger: session.TriggerImport, Replacement: copied},
				Pictures: pictures{noted: recordedImages(record(c.history))}, Weigh: &scales{counter: runes{}, scale: 1},
			}
			d := Assemble(in)
			p := d.Items[0].Message.Parts[1]
			if back := p.Kind == session.PartImage && p.Blob != nil && bytes.Equal(p.Blob.Data, b.Bytes()); back != c.comesBack {
				t.Errorf("the part is %+v", p)
			}
			if lost := strings.Contains(strings.Join(d.Losses, " "), "cmp_7: a note stands for an image"); lost == c.comesBack {
				t.Errorf("losses %q", d.Losses)
			}
		})
	}
}
