package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/gif" // registers the format
	"image/jpeg"
	_ "image/png" // registers the format
	"net/http"
	"strings"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Limits of an image as it is sent. Every provider accepts an image within them.
const (
	maxSide  = 2000    // pixels
	maxBytes = 5 << 20 // of the encoded image
)

// maxPixels bounds the memory of an image to be shrunk: 160 MB.
const maxPixels = 40_000_000

// ImageAction says how an image is sent.
type ImageAction string

// The actions. An image that cannot be shrunk is replaced by a note, too.
const (
	ImageKeep   ImageAction = "keep"
	ImageShrink ImageAction = "shrink"
	ImageNote   ImageAction = "note" // a short text replaces it
)

// ImageInfo is what an image's header says.
type ImageInfo struct {
	Width, Height int
	Bytes         int64
	Readable      bool
}

// Action returns what the limits require.
func (i ImageInfo) Action() ImageAction {
	switch {
	case !i.Readable || i.Bytes == 0:
		return ImageNote
	case i.Width > maxSide || i.Height > maxSide || i.Bytes > maxBytes:
		return ImageShrink
	}
	return ImageKeep
}

// limitImages shrinks the images that exceed the limits, or replaces them by a note. Images without bytes here, or of a
// type that only some providers accept, are left to Send.
func (m *fitted) limitImages(shrink session.Shrink) (notes []session.FitNote) {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != session.PartImage || p.Blob == nil || !isCommonImage(p) {
			continue
		}
		info := imageInfo(p.Blob.Data)
		action := info.Action()
		if action == ImageKeep {
			continue
		}
		m.copyParts()
		m.Changed = true
		p = &m.Parts[i]
		if action == ImageShrink && shrink != nil {
			if small, ok := shrink(p.Blob, encodeSmaller); ok {
				p.Blob, p.BlobSHA, p.Extra = small, &small.SHA256, setJPEGType(p.Extra)
				notes = append(notes, session.FitNote{From: m.From, Text: fmt.Sprintf(
					"an image of %d×%d pixels, %d bytes, is sent smaller", info.Width, info.Height, info.Bytes)})
				continue
			}
		}
		why := fmt.Sprintf("it has %d×%d pixels and %d bytes; %d a side and %d bytes are taken", info.Width, info.Height,
			info.Bytes, maxSide, maxBytes)
		if !info.Readable {
			why = "its bytes are no image that can be read"
		}
		callID := p.CallID
		*p = session.TextPart("[image left out: " + why + "]")
		p.CallID = callID
		notes = append(notes, m.loss("a note replaces an image: "+why))
	}
	return notes
}

// isCommonImage reports whether a part is an image of a type that every provider accepts, by its media type or its
// bytes.
func isCommonImage(p *session.Part) bool {
	mediaType := strings.ToLower(MediaOf(p).MediaType)
	return mediaType == "" || mediaType == "image/jpg" || IsImage(mediaType) ||
		IsImage(http.DetectContentType(p.Blob.Data))
}

// setJPEGType replaces the media type in extra fields, if there is one.
func setJPEGType(extra session.JSON) session.JSON {
	fields, err := jsonx.ParseObject("", extra)
	if err != nil || !fields.Has("media_type") {
		return extra
	}
	fields.SetText("media_type", "image/jpeg")
	return session.JSON(fields.Value())
}

// imageInfo reads an image's header.
func imageInfo(data []byte) ImageInfo {
	info := ImageInfo{Bytes: int64(len(data))}
	if http.DetectContentType(data) == "image/webp" {
		info.Width, info.Height = webpSize(data)
	} else if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil { // of the formats imported here
		info.Width, info.Height = c.Width, c.Height
	}
	info.Readable = info.Width > 0 && info.Height > 0
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

// encodeSmaller encodes an image as a JPEG within the limits. The same image gives the same bytes.
// WebP cannot be decoded here.
func encodeSmaller(data []byte) ([]byte, bool) {
	info := imageInfo(data)
	if !info.Readable || info.Width*info.Height > maxPixels {
		return nil, false
	}
	m, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, false
	}
	full := image.NewRGBA(image.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
	draw.Draw(full, full.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(full, full.Bounds(), m, m.Bounds().Min, draw.Over)
	for side := maxSide; side >= maxSide/8; side /= 2 {
		small := scaleTo(full, side)
		for _, quality := range []int{85, 60, 40} {
			var b bytes.Buffer
			if jpeg.Encode(&b, small, &jpeg.Options{Quality: quality}) == nil && b.Len() <= maxBytes {
				return b.Bytes(), true
			}
		}
	}
	return nil, false
}

// scaleTo scales an image into a square: each pixel is the mean of those that it replaces.
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
