package card

import (
	"encoding/xml"
	"fmt"
	"image/color"
	"io"
	"strings"
)

// SVG writes the picture as a document without scripts and without anything from elsewhere.
func (p *Picture) SVG(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="Go, `+
		`system-ui, sans-serif"><title>%s</title>`+"\n", width, height, escaped(p.name))
	for _, r := range p.boxes {
		fmt.Fprintf(&b, `<rect x="%g" y="%g" width="%g" height="%g" rx="%g" fill="%s"/>`+"\n", rounded(r.x), rounded(r.y),
			rounded(r.w), rounded(r.h), r.round, hex(r.color))
	}
	for _, t := range p.texts {
		weight := ""
		if t.bold {
			weight = ` font-weight="700"`
		}
		fmt.Fprintf(&b, `<text x="%g" y="%g" font-size="%g" text-anchor="%s" fill="%s"%s>%s</text>`+"\n", rounded(t.x), t.y,
			t.size, t.at, hex(t.color), weight, escaped(t.words))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// rounded leaves a tenth of a pixel.
func rounded(v float64) float64 { return float64(int(v*10+0.5)) / 10 }

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a builder takes everything
	return b.String()
}
