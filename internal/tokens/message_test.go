package tokens

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func TestMeasureSetsPartsAndTheirSum(t *testing.T) {
	c := Reference()
	m := &session.Message{Role: session.Assistant, Parts: []session.Part{
		session.TextPart("I will look at the lexer."),
		{Kind: session.PartReasoning, Text: "The lexer drops the last token."},
		{Kind: session.PartToolCall, ToolName: "read_file", Arguments: `{"path":"lexer.go"}`},
		{Kind: session.PartToolResult, Text: "package lexer\n"},
		{Kind: session.PartRefusal, Text: "I cannot do that."},
		{Kind: session.PartReasoning, Extra: session.JSON(`{"signature":"` + strings.Repeat("QUJD", 400) + `"}`)},
	}}
	c.Measure(m)
	sum := int64(PerMessage)
	for i, p := range m.Parts[:5] {
		if p.Tokens < 3 || p.Tokens > 20 {
			t.Errorf("part %d: %d tokens", i, p.Tokens)
		}
		sum += p.Tokens
	}
	if m.Parts[5].Tokens != 0 {
		t.Errorf("a signature was counted as text: %d", m.Parts[5].Tokens)
	}
	if m.Tokens != sum {
		t.Errorf("message %d, parts and framing %d", m.Tokens, sum)
	}
	if call := m.Parts[2]; call.Tokens != c.Text("read_file")+c.Text(call.Arguments)+perTool {
		t.Errorf("a call is its name and its arguments: %d", call.Tokens)
	}
}

func TestMeasureCountsTheNameOfTheSpeaker(t *testing.T) {
	c := Reference()
	nameless, named := &session.Message{}, &session.Message{Author: "alice"}
	c.Measure(nameless)
	c.Measure(named)
	if nameless.Tokens != PerMessage || named.Tokens <= PerMessage+perName {
		t.Errorf("nameless %d, named %d", nameless.Tokens, named.Tokens)
	}
}

func TestMeasureReadsTextFromABlob(t *testing.T) {
	c := Reference()
	text := strings.Repeat("A line of a very long output.\n", 4000)
	blob := &session.Blob{MediaType: session.TextBlob, Data: []byte(text)}
	m := &session.Message{Parts: []session.Part{
		{Kind: session.PartToolResult, Blob: blob},
		{Kind: session.PartToolCall, ToolName: "write", Blob: blob},
		{Kind: session.PartFile, Blob: blob},
	}}
	c.Measure(m)
	want := c.Text(text)
	for i, p := range m.Parts {
		if p.Tokens < want || p.Tokens > want+10 {
			t.Errorf("part %d: %d tokens, want about %d", i, p.Tokens, want)
		}
	}
}

// A line that is kept as it is costs its text, also when that is too long for its column.
func TestALongLineThatIsKeptCostsItsText(t *testing.T) {
	line := strings.Repeat("[words] ", 20_000)
	want := Reference().Part(&session.Part{Kind: session.PartData, Text: line})
	blob := session.Blob{Data: []byte(line), MediaType: session.TextBlob}
	if got := Reference().Part(&session.Part{Kind: session.PartData, Blob: &blob}); got != want || want < 1000 {
		t.Errorf("%d, not %d", got, want)
	}
	blob.MediaType = "application/octet-stream"
	if got := Reference().Part(&session.Part{Kind: session.PartData, Blob: &blob}); got != 0 {
		t.Errorf("bytes: %d", got)
	}
}

func encoded(t *testing.T, format string, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	picture := image.NewPaletted(image.Rect(0, 0, width, height), nil)
	picture.Palette = append(picture.Palette, image.White)
	switch format {
	case "png":
		err = png.Encode(&b, picture)
	case "gif":
		err = gif.Encode(&b, picture, nil)
	default:
		err = jpeg.Encode(&b, picture, nil)
	}
	testkit.Check(t, err)
	return b.Bytes()
}

func TestImagesCountByTheirSize(t *testing.T) {
	bytesOf := func(format string, w, h int) session.Part {
		return session.Part{
			Kind: session.PartImage,
			Blob: &session.Blob{MediaType: "image/" + format, Data: encoded(t, format, w, h)},
		}
	}
	dataURL := "data:image/png;base64," + base64.StdEncoding.EncodeToString(encoded(t, "png", 600, 300))
	for _, c := range []struct {
		name string
		part session.Part
		want int64
	}{
		{"one tile", bytesOf("png", 512, 512), 85 + 170},
		{"two tiles", bytesOf("jpeg", 600, 300), 85 + 2*170},
		{"a GIF", bytesOf("gif", 10, 10), 85 + 170},
		{"brought down to 768", bytesOf("png", 1024, 1024), 85 + 4*170}, // OpenAI's own example
		{"brought down twice", bytesOf("png", 2048, 4096), 85 + 6*170},  // and its second
		{"a data URL", session.Part{Kind: session.PartImage, Text: dataURL}, 85 + 2*170},
		{"low detail", session.Part{Kind: session.PartImage, Extra: session.JSON(`{"detail":"low"}`)}, 85},
		{"a stated size", session.Part{Kind: session.PartImage, Extra: session.JSON(`{"width":100,"height":100}`)}, 85 + 170},
		{"a link", session.Part{Kind: session.PartImage, Text: "https://example.com/a.png"}, perImage},
		{"nothing", session.Part{Kind: session.PartImage}, perImage},
		{"broken bytes", session.Part{
			Kind: session.PartImage,
			Blob: &session.Blob{MediaType: "image/png", Data: []byte("\x89PNG and no more")},
		}, perImage},
		{"broken base64", session.Part{Kind: session.PartImage, Text: "data:image/png;base64,!!!!"}, perImage},
		{"an extra that is no object", session.Part{Kind: session.PartImage, Extra: session.JSON(`[1]`)}, perImage},
		{"sound", session.Part{
			Kind: session.PartAudio,
			Blob: &session.Blob{MediaType: "audio/wav", Data: make([]byte, 1<<20)},
		}, perFile},
		{"a PDF", session.Part{Kind: session.PartFile, Blob: &session.Blob{
			MediaType: "application/pdf",
			Data:      []byte("%PDF-1.7\n\xe2\xe3\xcf\xd3"),
		}}, perFile},
		{"a file as a data URL", session.Part{
			Kind: session.PartFile,
			Text: "data:application/pdf;base64," + strings.Repeat("QUJD", 1000),
		}, perFile},
		{"a data URL as data", session.Part{Kind: session.PartData, Text: dataURL}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Reference().Part(&c.part); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
