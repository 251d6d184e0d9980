package tokens

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"sessiond/internal/session"
)

// snippets of texts, of which each class of the scan has some.
func snippets() []string {
	return []string{
		"word", "Title", "CAPS", "camelCase", "x1y2z3", "1250000", "7", " ", "  ", "\t", "\t\t", "\n", "\r\n", "\n\n\n", "                 ", ".", ",", "'", "'s", "'ll", "''",
		"don't", "==", "=======", "(", "!?", "é", "Größe", "là…bas", "e\u0301", "数据库", "。", "あい", "ア", "한국", "жук", "ελ", "שלום", "है", "’", "─", "→→→", "🎉", "\u200d", "\x00", "\x1b", "\xff", "\xe1\xb8", "_", "-",
		"dGhlIHF1aWNrIGJyb3du", "5f2b9c0e7a614d38", "http://a.b/c?d=e",
	}
}

// TestAPartedPlaceRemembersNothing: wherever a text may be cut, both sides together have the
// pieces of the whole.
func TestAPartedPlaceRemembersNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(snippets()), 1, 40).Draw(t, "snippets"), "")
		var whole features
		whole.scan(text)
		for i := 1; i < len(text); i++ {
			if !parted(text[i-1], text[i]) {
				continue
			}
			var sides features
			sides.scan(text[:i])
			sides.scan(text[i:])
			if sides != whole {
				t.Fatalf("%q and %q are not %q", text[:i], text[i:], text)
			}
		}
	})
}

// longTexts are longer than a stretch: with a place to cut in reach, or with none.
func longTexts(t testing.TB) map[string]string {
	of := func(unit string, n int) string { return strings.Repeat(unit, n/len(unit)+1) }
	german := read(t, "testdata/heldout/german.txt")
	return map[string]string{
		"prose":                of(german, 3<<20),
		"chinese":              of(read(t, "testdata/heldout/chinese.txt"), 2<<20+5),
		"base64 in one line":   of("dGhlIHF1aWNrIGJyb3duIGZveA+/", 2<<20),
		"JSON in one line":     of(`{"id":"5f2b","n":1250000,"ok":true},`, 2<<20),
		"just one stretch":     of("a b ", longestStretch)[:longestStretch],
		"a byte more":          of("a b ", longestStretch)[:longestStretch+1],
		"one letter":           of("x", 3<<20+7),
		"one wide letter":      of("字", 3<<20+7),
		"signs":                of("=-", 2<<20+1),
		"spaces":               of(" ", 2<<20+1),
		"invalid":              of("\xbf", 2<<20+1),
		"words at long last":   of("x", longestStretch-9) + " " + of("y", longestStretch/2) + "\n" + german,
		"a space at the verge": of("x", longestStretch)[:longestStretch] + " " + of("y", 100),
	}
}

func TestALongTextCostsWhatItsPiecesDo(t *testing.T) {
	for name, text := range longTexts(t) {
		t.Run(name, func(t *testing.T) {
			var whole, long features
			whole.scan(text)
			long.scanLong(text)
			switch name {
			case "one letter", "one wide letter", "signs", "spaces", "invalid": // cut somewhere, into a few pieces more
				weights := o200kWeights()
				a, b := weights.of(&whole), weights.of(&long)
				if b < a-30 || b > a+30 {
					t.Errorf("%.0f tokens, uncut %.0f", b, a)
				}
			default:
				if whole != long {
					t.Error("cutting it changes what is counted")
				}
			}
			for _, family := range []Family{O200k, Claude, Gemini} {
				c := ForFamily(family)
				want := c.Text(text)
				for how, r := range map[string]io.Reader{
					"at once": strings.NewReader(text), "by halves": iotest.HalfReader(strings.NewReader(text)),
					"with its end": iotest.DataErrReader(strings.NewReader(text)),
				} {
					if got, err := c.Reader(r); err != nil || got != want {
						t.Errorf("%s, %s: read it costs %d (%v), held %d", family, how, got, err, want)
					}
				}
			}
		})
	}
}

// TestReadingCostsWhatHoldingDoes cuts texts of snippets anywhere.
func TestReadingCostsWhatHoldingDoes(t *testing.T) {
	c := Reference()
	rapid.Check(t, func(t *rapid.T) {
		unit := strings.Join(rapid.SliceOfN(rapid.SampledFrom(snippets()), 1, 30).Draw(t, "snippets"), "")
		text := strings.Repeat(unit, rapid.IntRange(0, 2<<20).Draw(t, "length")/len(unit))
		got, err := c.Reader(iotest.HalfReader(strings.NewReader(text)))
		if want := c.Text(text); err != nil || got != want {
			t.Fatalf("%d times %q: read %d (%v), held %d", len(text)/len(unit), unit, got, err, want)
		}
	})
}

func TestReaderGivesTheReadersError(t *testing.T) {
	broken := errors.New("broken")
	if _, err := Reference().Reader(io.MultiReader(strings.NewReader("some"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// elsewhere is a content of a text.
type elsewhere string

func (e elsewhere) Open() (io.Reader, error) { return strings.NewReader(string(e)), nil }

// A line that is kept as it is costs its text, also when that is too long for its column.
func TestALongLineThatIsKeptCostsItsText(t *testing.T) {
	line := strings.Repeat("[words] ", 20_000)
	want := Reference().Part(&session.Part{Kind: session.PartData, Text: line})
	for name, blob := range map[string]session.Blob{"held": {Data: []byte(line)}, "elsewhere": {From: elsewhere(line)}} {
		blob.MediaType = session.TextBlob
		if got := Reference().Part(&session.Part{Kind: session.PartData, Blob: &blob}); got != want || want < 1000 {
			t.Errorf("%s: %d, not %d", name, got, want)
		}
		blob.MediaType = "application/octet-stream"
		if got := Reference().Part(&session.Part{Kind: session.PartData, Blob: &blob}); got != 0 {
			t.Errorf("%s, bytes: %d", name, got)
		}
	}
}

func TestAPartCostsTheSameWhereverItsBytesLie(t *testing.T) {
	for name, data := range map[string]string{
		"text": strings.Repeat("Some words, to be counted.\n", 5000), "bytes": "\x00\xff" + strings.Repeat("x", 100_000), "nothing": "",
		"a data URL": "data:image/png;base64," + strings.Repeat("AAAA", 30_000), "an image": string(encoded(t, "png", 1600, 900)) + strings.Repeat("x", 100_000),
	} {
		for _, kind := range []session.PartKind{
			session.PartText, session.PartReasoning, session.PartToolCall, session.PartToolResult, session.PartImage, session.PartAudio, session.PartFile, session.PartRefusal, session.PartData,
		} {
			held := session.Part{Kind: kind, Blob: &session.Blob{Data: []byte(data)}}
			lies := session.Part{Kind: kind, Blob: &session.Blob{From: elsewhere(data)}}
			if a, b := Reference().Part(&held), Reference().Part(&lies); a != b {
				t.Errorf("%s of %s: %d held, %d elsewhere", kind, name, a, b)
			}
		}
	}
}
