package card

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"runtime"
	"strings"
	"testing"

	"sessiond/internal/analytics"
	"sessiond/internal/testkit"
)

func year() *analytics.Year {
	usd := 694.57
	y := &analytics.Year{
		Year: 2026, Hours: 312, Days: 2,
		ByDay: map[string]int64{"2026-01-01": 9, "2026-12-31": 1},
		BySource: []analytics.Bucket{
			{Source: "pi", Sums: analytics.Sums{Sessions: 3}},
			{Source: "codex", Sums: analytics.Sums{Sessions: 40}},
			{Source: "goose", Sums: analytics.Sums{Sessions: 2}},
			{Source: "a<b", Sums: analytics.Sums{Sessions: 9}},
			{Source: "kilo", Sums: analytics.Sums{Sessions: 1}},
			{Source: "zed", Sums: analytics.Sums{Sessions: 4, Subagents: 4}},
		},
	}
	y.Sessions, y.Subagents, y.CostUSD, y.UnpricedCalls = 59, 4, &usd, 1
	y.Tokens.Input, y.ByHour[23] = 3_400_000_000, 10
	return y
}

func TestDraw(t *testing.T) {
	words := map[string]bool{}
	for _, text := range Draw(year()).texts {
		words[text.words] = true
		if text.x < margin || text.x > width-margin || text.y > height {
			t.Errorf("%q is at %v, %v", text.words, text.x, text.y)
		}
	}
	for _, want := range []string{
		"2026 with agents", "312", "hours on 2 days", "55", "conversations", "0", "prompts", "3.4B", "$695",
		"at least, at list prices",
		"codex", "a<b", "pi", "2 others",
	} {
		if !words[want] {
			t.Errorf("%q is not on the card: %v", want, words)
		}
	}
	days := 0
	for _, box := range Draw(year()).boxes {
		if box.x < 0 || box.y < 0 || box.x+box.w > width || box.y+box.h > height {
			t.Errorf("a box is outside: %+v", box)
		}
		if box.w == 16 && box.h == 16 {
			days++
		}
	}
	if days != 365 {
		t.Errorf("%d days", days)
	}
}

func TestShadesTellDaysApart(t *testing.T) {
	for n, want := range map[int64]int{0: 0, 1: 1, 300: 3, 1000: 4} {
		if got := shadeOf(n, 1000); got != want {
			t.Errorf("%d of 1000: %v", n, got)
		}
	}
}

func TestWriters(t *testing.T) {
	for _, y := range []*analytics.Year{year(), {Year: 2025}} {
		var drawn bytes.Buffer
		testkit.Check(t, Draw(y).SVG(&drawn))
		for d := xml.NewDecoder(strings.NewReader(drawn.String())); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if strings.Contains(drawn.String(), "a<b") || strings.Contains(drawn.String(), "<script") {
			t.Error("the SVG holds a name as it is")
		}
		drawn.Reset()
		testkit.Check(t, Draw(y).PNG(&drawn))
		picture := testkit.Must(png.Decode(&drawn))(t)
		if size := picture.Bounds().Size(); size.X != 2*width || size.Y != 2*height {
			t.Errorf("the PNG is %v", size)
		}
		colours := map[[3]uint32]bool{}
		for x := range picture.Bounds().Dx() {
			r, g, b, _ := picture.At(x, 2*280+10).RGBA() // the first row of days
			colours[[3]uint32{r, g, b}] = true
		}
		if len(colours) < 2 {
			t.Error("no day is drawn")
		}
	}
	if _, ok := WriterOf("card.jpg"); ok {
		t.Error("a JPEG can be written")
	}
}

// The picture itself is most of the memory that a PNG needs: a box as large as the picture is filled in bands.
func TestPNGNeedsLittleMoreMemoryThanItsPixels(t *testing.T) {
	picture := Draw(year())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	testkit.Check(t, picture.PNG(io.Discard))
	runtime.ReadMemStats(&after)
	pixels := uint64(width * scale * height * scale * 4)
	if got := after.TotalAlloc - before.TotalAlloc; got > 2*pixels {
		t.Errorf("a picture of %d bytes allocates %d", pixels, got)
	}
}
