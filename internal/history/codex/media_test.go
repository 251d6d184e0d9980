package codex_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"

	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
)

// noise is a picture that does not compress.
func noise(t *testing.T) string {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, 160, 160))
	seed := uint32(1)
	for i := range m.Pix {
		seed = seed*1664525 + 1013904223
		m.Pix[i] = byte(seed >> 24)
	}
	var b bytes.Buffer
	testkit.Check(t, png.Encode(&b, m))
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// A picture that each compaction repeats in its history is stored once, and the context after the
// last one has it.
func TestPictureThatCompactionsRepeatIsStoredOnce(t *testing.T) {
	prompt := `{"type":"message","role":"user","content":[{"type":"input_text","text":"what is it"},{"type":"input_image","image_url":"data:image/png;base64,` + noise(t) + `"}]}`
	lines := []string{header, item(prompt), says("assistant", "noise")}
	for range 20 {
		lines = append(lines, `{"timestamp":"2026-03-01T11:00:00.000Z","type":"compacted","payload":{"message":"So far.","replacement_history":[`+prompt+`]}}`,
			says("user", "again"), says("assistant", "still noise"))
	}
	h := newHouse(t)
	h.Import(h.Write("rollout.jsonl", lines...))
	s := h.Session("one")
	h.BeginsWith(s.ID, []string{
		"user: <conversation_summary>", "user: what is it <image>", "user: again",
		"assistant: still noise",
	})
	var stored struct {
		Pictures    int
		Bytes       int
		Compactions int
	}
	for query, into := range map[string]*int{
		`SELECT COUNT(*) FROM blobs WHERE media_type = 'image/png'`: &stored.Pictures,
		`SELECT SUM(size) FROM blobs`:                               &stored.Bytes,
		`SELECT COUNT(*) FROM compactions`:                          &stored.Compactions,
	} {
		testkit.Check(t, h.Store.Reader().Get(into, query))
	}
	if stored.Pictures != 1 || stored.Bytes > 2*len(prompt) || stored.Compactions != 20 {
		t.Errorf("stored %+v; the picture has %d bytes", stored, len(prompt))
	}
	h.Examine()
}

// Of the case: the database is about as large as the picture, not as the file that repeats it.
func TestRepeatedPicturesOfARealFormAreStoredOnce(t *testing.T) {
	folder := samples.Case(t, "44-codex-repeated-images")
	h := newHouse(t)
	h.Import(folder + "/codex")
	var bytes int64
	testkit.Check(t, h.Store.Reader().Get(&bytes, `SELECT SUM(size) FROM blobs`))
	if bytes > 900_000 {
		t.Errorf("%d bytes of blobs", bytes)
	}
	if given := h.Given(h.Sessions()[0].ID); len(given) < 2 || !strings.Contains(given[1], "what is on the picture") {
		t.Errorf("given %q", given)
	}
}
