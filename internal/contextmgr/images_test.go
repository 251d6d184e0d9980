package contextmgr_test

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

// An image over the limits is sent smaller, with the same bytes each time. A note replaces one that
// cannot be read or shrunk.
func TestImagesOverTheLimitsAreSentSmaller(t *testing.T) {
	effort.NotShort(t, "images of megabytes are packed and unpacked by one goroutine")
	noise := image.NewRGBA(image.Rect(0, 0, 2600, 1300))
	for i := range noise.Pix {
		noise.Pix[i] = byte(i*i>>3 ^ i>>5)
	}
	var big, small, jpg, gifs bytes.Buffer
	for _, err := range []error{
		png.Encode(&big, noise),
		png.Encode(&small, image.NewGray(image.Rect(0, 0, 2000, 20))),
		jpeg.Encode(&jpg, image.NewGray(image.Rect(0, 0, 10, 2001)), nil),
		gif.Encode(&gifs, image.NewPaletted(image.Rect(0, 0, 2400, 3), color.Palette{color.White, color.Black}), nil),
	} {
		testkit.Check(t, err)
	}
	webp := func(w, h int) []byte {
		return append([]byte("RIFF____WEBPVP8X____\x00\x00\x00\x00"), byte(w-1), byte((w-1)>>8), 0, byte(h-1), byte((h-1)>>8),
			0, 0, 0)
	}
	tests := []struct {
		name      string
		data      []byte
		mediaType string
		width     int // 0: a note
		changed   bool
	}{
		{"small enough", small.Bytes(), "image/png", 2000, false},
		{"too wide, and over 5 MiB", big.Bytes(), "image/png", 2000, true},
		{"too high", jpg.Bytes(), "image/jpeg", 9, true},
		{"a GIF", gifs.Bytes(), "image/gif", 2000, true},
		{"a WebP", webp(1999, 2000), "image/webp", -1, false},
		{"a WebP that is too wide", webp(2001, 20), "image/webp", 0, true},
		{"cut off", big.Bytes()[:20], "image/png", 0, true},
		{"cut off behind its header", big.Bytes()[:2000], "image/png", 0, true},
		{"no image", []byte("hello"), "image/png", 0, true},
		{"of a type that only some take", []byte("....ftypheic"), "image/heic", -1, false},
	}
	d := newDesk(t)
	id := d.begin()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d.follow(id, session.Message{
				Kind: session.KindMessage, Role: session.User, Origin: session.Person, InContext: true, Display: true,
				Parts: []session.Part{{
					Kind: session.PartImage, Blob: &session.Blob{MediaType: tt.mediaType, Data: tt.data},
					Extra: session.JSONOf(map[string]string{"media_type": tt.mediaType, "detail": "low"}),
				}},
			})
			var before []byte
			for range 2 {
				v := testkit.Must(d.mgr.Assemble(t.Context(), id, contextmgr.Budget{Window: 100000}))(t)
				p := v.Messages[len(v.Messages)-1].Parts[0]
				if tt.width == 0 {
					if p.Kind != session.PartText || !strings.HasPrefix(p.Text, "[image left out: ") {
						t.Errorf("sent is %s %.80s", p.Kind, p.Text)
					}
					continue
				}
				if !tt.changed {
					if !bytes.Equal(p.Blob.Data, tt.data) {
						t.Error("it was changed")
					}
					continue
				}
				if before != nil && !bytes.Equal(before, p.Blob.Data) {
					t.Error("it is another image the second time")
				}
				before = p.Blob.Data
				c, err := jpeg.DecodeConfig(bytes.NewReader(p.Blob.Data))
				if err != nil || c.Width != tt.width || c.Height > 2000 || len(p.Blob.Data) > 5<<20 ||
					!strings.Contains(string(p.Extra), "image/jpeg") {
					t.Errorf("sent are %d×%d pixels, %d bytes, %s: %v", c.Width, c.Height, len(p.Blob.Data), p.Extra, err)
				}
			}
		})
	}
}
