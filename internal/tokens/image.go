package tokens

import (
	"bytes"
	"encoding/base64"
	"image"
	_ "image/gif"  // so that image.DecodeConfig
	_ "image/jpeg" // reads
	_ "image/png"  // them
	"io"
	"strings"

	"github.com/go-json-experiment/json"

	"sessiond/internal/session"
)

// perImage is the estimate for an image of unknown size.
const perImage = 1200

// imageTokens estimates an image by OpenAI's published rule for high detail: scale it to fit into
// 2048 × 2048, scale its shorter side to 768, and count 85 plus 170 per tile of 512 × 512. Low detail
// is 85. An image of unknown size is perImage.
func imageTokens(p *session.Part) int64 {
	type statedSize struct {
		Width  int    `json:"width"`
		Height int    `json:"height"`
		Detail string `json:"detail"`
	}
	var stated statedSize
	if len(p.Extra) > 0 && json.Unmarshal(p.Extra, &stated) != nil {
		stated = statedSize{}
	}
	if stated.Detail == "low" {
		return 85
	}
	w, h := stated.Width, stated.Height
	if w <= 0 || h <= 0 {
		w, h = imageSize(p)
	}
	if w <= 0 || h <= 0 {
		return perImage
	}
	fw, fh := float64(w), float64(h)
	if long := max(fw, fh); long > 2048 {
		fw, fh = fw*2048/long, fh*2048/long
	}
	if short := min(fw, fh); short > 768 {
		fw, fh = fw*768/short, fh*768/short
	}
	return 85 + 170*tiles(fw)*tiles(fh)
}

func tiles(side float64) int64 { return (max(1, int64(side)) + 511) / 512 }

// imageSize returns an image's width and height in pixels from the header of its bytes, in a blob or
// a data URL; 0, 0 when unknown.
func imageSize(p *session.Part) (width, height int) {
	if p.Blob != nil {
		return headerSize(bytes.NewReader(p.Blob.Data))
	}
	if text := p.Content(); isDataURL(text) {
		_, data, _ := strings.Cut(text, ",")
		return headerSize(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	}
	return 0, 0
}

// headerSize returns the size in an image's header.
func headerSize(r io.Reader) (width, height int) {
	const enough = 512 << 10 // a photograph's metadata may come before its size
	config, _, err := image.DecodeConfig(io.LimitReader(r, enough))
	if err != nil {
		return 0, 0
	}
	return config.Width, config.Height
}

// isDataURL reports whether a text is bytes in base64: data:image/png;base64,….
func isDataURL(s string) bool {
	if !strings.HasPrefix(s, "data:") {
		return false
	}
	head, _, ok := strings.Cut(s[:min(len(s), 200)], ",")
	return ok && strings.HasSuffix(head, ";base64")
}
