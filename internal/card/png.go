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
	var rasterizer vector.Rasterizer
	for i := range p.boxes {
		p.boxes[i].fill(canvas, &rasterizer)
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

// band is the rows that are filled at once: a rasterizer needs memory for every pixel of its area.
const band = 64

// fill fills the box, with curves for its corners, band by band.
func (r *box) fill(canvas draw.Image, z *vector.Rasterizer) {
	at := image.Rect(int(r.x*scale), int(r.y*scale),
		int(math.Ceil((r.x+r.w)*scale)), int(math.Ceil((r.y+r.h)*scale)))
	for rows := at; rows.Min.Y < at.Max.Y; rows.Min.Y += band {
		rows.Max.Y = min(rows.Min.Y+band, at.Max.Y)
		z.Reset(rows.Dx(), rows.Dy())
		r.outline(z, rows.Min)
		z.Draw(canvas, rows, image.NewUniform(r.color), image.Point{})
	}
}

// outline adds the path of the box, seen from the pixel origin.
func (r *box) outline(z *vector.Rasterizer, origin image.Point) {
	x, y := float32(r.x*scale)-float32(origin.X), float32(r.y*scale)-float32(origin.Y)
	w, h := float32(r.w*scale), float32(r.h*scale)
	c := min(float32(r.round*scale), w/2, h/2)
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
