package contextmgr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"sync"

	"sessiond/internal/session"
)

// Limits of an image as it is sent. Every provider takes one within them.
const (
	mostSide  = 2000    // pixels
	mostBytes = 5 << 20 // of the encoded image
)

// mostPixels bounds what an image may become in memory to be shrunk: 160 MB.
const mostPixels = 40_000_000

// ImageAction is what becomes of an image on its way to a provider.
type ImageAction string

// The actions. What cannot be shrunk is replaced by a note, too.
const (
	ImageKeep   ImageAction = "keep"
	ImageShrink ImageAction = "shrink"
	ImageNote   ImageAction = "note" // a short text in its place
)

// ImageInfo is what the first bytes of an image tell.
type ImageInfo struct {
	Width, Height int
	Bytes         int64
	Readable      bool
}

// Action says whether an image keeps to the limits.
func (i ImageInfo) Action() ImageAction {
	switch {
	case !i.Readable || i.Bytes == 0:
		return ImageNote
	case i.Width > mostSide || i.Height > mostSide || i.Bytes > mostBytes:
		return ImageShrink
	}
	return ImageKeep
}

// Shrink gives an image within the limits for one that is over them; not ok where it cannot.
type Shrink func(*session.Blob) (*session.Blob, bool)

// limitImages holds the images of an item against the limits. Where the bytes are with the
// provider, or of a type that only some take, it is for the dialect to know.
func (d *Draft) limitImages(item *Item, shrink Shrink) {
	for i := range item.Message.Parts {
		p := &item.Message.Parts[i]
		if p.Kind != session.PartImage || p.Blob == nil || !isCommonImage(p) {
			continue
		}
		info := imageInfo(p.Blob.Data)
		action := info.Action()
		if action == ImageKeep {
			continue
		}
		item.own()
		item.Changed = true
		p = &item.Message.Parts[i]
		if action == ImageShrink && shrink != nil {
			if small, ok := shrink(p.Blob); ok {
				p.Blob, p.BlobSHA, p.Extra = small, &small.SHA256, withoutMediaType(p.Extra)
				d.Adjustments = append(d.Adjustments, fmt.Sprintf("%s: an image of %d×%d pixels, %d bytes, was made smaller", item.Message.ID, info.Width, info.Height, info.Bytes))
				continue
			}
		}
		why := fmt.Sprintf("it has %d×%d pixels and %d bytes; %d a side and %d bytes are taken", info.Width, info.Height, info.Bytes, mostSide, mostBytes)
		if !info.Readable {
			why = "its bytes are no image that can be read"
		}
		callID := p.CallID
		item.Message.Parts[i] = session.TextPart("[image left out: " + why + "]")
		item.Message.Parts[i].CallID = callID
		d.Losses = append(d.Losses, fmt.Sprintf("%s: an image was replaced by a note: %s", item.Message.ID, why))
	}
}

// isCommonImage tells whether a part is said to be, or is, an image of a type that every provider takes.
func isCommonImage(p *session.Part) bool {
	mediaType := p.Blob.MediaType
	var extra struct {
		MediaType string `json:"media_type"`
	}
	if len(p.Extra) > 0 && decode(p.Extra, &extra) && extra.MediaType != "" {
		mediaType = extra.MediaType
	}
	switch strings.ToLower(mediaType) {
	case "", "image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp":
		return true
	}
	return formatOf(p.Blob.Data) != ""
}

// withoutMediaType takes the type out of an extra, since the bytes are of another now.
func withoutMediaType(extra session.JSON) session.JSON {
	var fields map[string]any
	if len(extra) == 0 || !decode(extra, &fields) {
		return extra
	}
	if _, said := fields["media_type"]; !said {
		return extra
	}
	fields["media_type"] = "image/jpeg"
	return session.JSONOf(fields)
}

// formatOf tells the format of an image by its first bytes, "" for none that is known here.
func formatOf(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "jpeg"
	case bytes.HasPrefix(data, []byte("GIF8")):
		return "gif"
	case bytes.HasPrefix(data, []byte("RIFF")) && len(data) >= 12 && string(data[8:12]) == "WEBP":
		return "webp"
	}
	return ""
}

// imageInfo reads an image's header.
func imageInfo(data []byte) ImageInfo {
	info := ImageInfo{Bytes: int64(len(data))}
	var c image.Config
	var err error
	switch formatOf(data) {
	case "png":
		c, err = png.DecodeConfig(bytes.NewReader(data))
	case "jpeg":
		c, err = jpeg.DecodeConfig(bytes.NewReader(data))
	case "gif":
		c, err = gif.DecodeConfig(bytes.NewReader(data))
	case "webp":
		info.Width, info.Height = webpSize(data)
		info.Readable = info.Width > 0
		return info
	default:
		return info
	}
	info.Width, info.Height, info.Readable = c.Width, c.Height, err == nil && c.Width > 0 && c.Height > 0
	return info
}

// webpSize reads the canvas of a WebP: RFC 9649, sections 2.5 to 2.7.
func webpSize(data []byte) (width, height int) {
	if len(data) < 30 {
		return 0, 0
	}
	switch string(data[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(data[26:])) & 0x3fff, int(binary.LittleEndian.Uint16(data[28:])) & 0x3fff
	case "VP8L":
		bits := binary.LittleEndian.Uint32(data[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
	case "VP8X":
		const byte24 = 0xffffff
		return int(binary.LittleEndian.Uint32(data[24:])&byte24) + 1, int(binary.LittleEndian.Uint32(data[26:])>>8) + 1
	}
	return 0, 0
}

// shrinkImage encodes an image anew, as a JPEG within the limits. The same image gives the
// same bytes each time. WebP can only be measured.
func shrinkImage(data []byte) ([]byte, bool) {
	info := imageInfo(data)
	if !info.Readable || info.Width*info.Height > mostPixels {
		return nil, false
	}
	var m image.Image
	var err error
	switch formatOf(data) {
	case "png":
		m, err = png.Decode(bytes.NewReader(data))
	case "jpeg":
		m, err = jpeg.Decode(bytes.NewReader(data))
	case "gif":
		m, err = gif.Decode(bytes.NewReader(data))
	default:
		return nil, false
	}
	if err != nil {
		return nil, false
	}
	full := image.NewRGBA(image.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
	draw.Draw(full, full.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(full, full.Bounds(), m, m.Bounds().Min, draw.Over)
	for side := mostSide; side >= mostSide/8; side /= 2 {
		small := scaleTo(full, side)
		for _, quality := range []int{85, 60, 40} {
			var b bytes.Buffer
			if jpeg.Encode(&b, small, &jpeg.Options{Quality: quality}) == nil && b.Len() <= mostBytes {
				return b.Bytes(), true
			}
		}
	}
	return nil, false
}

// scaleTo makes an image fit a square: each pixel is the mean of those that it stands for.
func scaleTo(m *image.RGBA, side int) *image.RGBA {
	w, h := m.Rect.Dx(), m.Rect.Dy()
	longest := max(w, h)
	if longest <= side {
		return m
	}
	nw, nh := max(1, w*side/longest), max(1, h*side/longest)
	out := image.NewRGBA(image.Rect(0, 0, nw, nh))
	for y := range nh {
		y0, y1 := y*h/nh, max((y+1)*h/nh, y*h/nh+1)
		for x := range nw {
			x0, x1 := x*w/nw, max((x+1)*w/nw, x*w/nw+1)
			var sum [3]int
			for sy := y0; sy < y1; sy++ {
				row := m.Pix[sy*m.Stride+4*x0 : sy*m.Stride+4*x1]
				for i := 0; i < len(row); i += 4 {
					sum[0] += int(row[i])
					sum[1] += int(row[i+1])
					sum[2] += int(row[i+2])
				}
			}
			n := (y1 - y0) * (x1 - x0)
			at := out.PixOffset(x, y)
			out.Pix[at], out.Pix[at+1], out.Pix[at+2], out.Pix[at+3] = uint8(sum[0]/n), uint8(sum[1]/n), uint8(sum[2]/n), 0xff
		}
	}
	return out
}

// mostShrunk bounds the memory of shrunk images, in bytes.
const mostShrunk = 32 << 20

// imageMemory remembers shrunk images: a stored one never changes. One is shrunk at a time,
// since each takes much memory.
type imageMemory struct {
	mu   sync.Mutex
	by   map[string]*session.Blob // by the hash of the original; nil: it cannot be shrunk
	size int
}

func (m *imageMemory) shrink(original *session.Blob) (*session.Blob, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if small, known := m.by[original.SHA256]; known && original.SHA256 != "" {
		return small, small != nil
	}
	var small *session.Blob
	if data, ok := shrinkImage(original.Data); ok {
		small = &session.Blob{SHA256: hashOf(string(data)), Size: int64(len(data)), MediaType: "image/jpeg", Data: data}
	}
	size := 0
	if small != nil {
		size = len(small.Data)
	}
	if m.by == nil || m.size+size > mostShrunk || len(m.by) >= mostAsked {
		m.by, m.size = map[string]*session.Blob{}, 0
	}
	m.by[original.SHA256], m.size = small, m.size+size
	return small, small != nil
}
