package card

import (
	"image"
	"image/draw"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// scale is the pixels of a PNG for each of the picture.
const scale = 2

// PNG writes the picture with the Go fonts, which the program holds.
func (p *Picture) PNG(w io.Writer) error {
	canvas := image.NewRGBA(image.Rect(0, 0, width*scale, height*scale))
	for i := range p.boxes {
		p.boxes[i].fill(canvas)
	}
	fonts := map[bool]*opentype.Font{}
	for bold, file := range map[bool][]byte{false: goregular.TTF, true: gobold.TTF} {
		parsed, err := opentype.Parse(file)
		if err != nil {
			return err
		}
		fonts[bold] = parsed
	}
	for i := range p.texts {
		if err := p.texts[i].draw(canvas, fonts[p.texts[i].bold]); err != nil {
			return err
		}
	}
	return png.Encode(w, canvas)
}

// fill fills the box, with curves for its corners.
func (r *box) fill(canvas draw.Image) {
	at := image.Rect(int(r.x*scale), int(r.y*scale),
		int(math.Ceil((r.x+r.w)*scale)), int(math.Ceil((r.y+r.h)*scale)))
	x, y := float32(r.x*scale)-float32(at.Min.X), float32(r.y*scale)-float32(at.Min.Y)
	w, h := float32(r.w*scale), float32(r.h*scale)
	c := min(float32(r.round*scale), w/2, h/2)
	z := vector.NewRasterizer(at.Dx(), at.Dy())
	z.MoveTo(x+c, y)
	z.LineTo(x+w-c, y)
	z.QuadTo(x+w, y, x+w, y+c)
	z.LineTo(x+w, y+h-c)
	z.QuadTo(x+w, y+h, x+w-c, y+h)
	z.LineTo(x+c, y+h)
	z.QuadTo(x, y+h, x, y+h-c)
	z.LineTo(x, y+c)
	z.QuadTo(x, y, x+c, y)
	z.ClosePath()
	z.Draw(canvas, at, image.NewUniform(r.color), image.Point{})
}

func (t *text) draw(canvas draw.Image, of *opentype.Font) error {
	face, err := opentype.NewFace(of, &opentype.FaceOptions{Size: t.size * scale, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		return err
	}
	defer face.Close() //nolint:errcheck // it holds nothing
	d := font.Drawer{Dst: canvas, Src: image.NewUniform(t.color), Face: face}
	d.Dot = fixed.Point26_6{X: fixed.Int26_6(t.x * scale * 64), Y: fixed.Int26_6(t.y * scale * 64)}
	switch wide := d.MeasureString(t.words); t.at {
	case middle:
		d.Dot.X -= wide / 2
	case end:
		d.Dot.X -= wide
	}
	d.DrawString(t.words)
	return nil
}
