package openaichat

import (
	"encoding/json"
	"slices"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// medium writes an image, a sound or a file as an element of a user's content. It gives nil,
// and names the loss, for what the API does not take.
func (s *sender) medium(m *session.Message, p *session.Part) json.RawMessage {
	media := wire.MediaOf(p)
	var inner wire.Object
	kind := ""
	switch p.Kind {
	case session.PartImage:
		kind = typeImage
		s.image(&inner, p, media)
	case session.PartAudio:
		kind = typeAudio
		if format := soundFormat(media.MediaType); p.Blob != nil && format != "" {
			inner.SetText("data", encode(p.Blob.Data))
			inner.SetText("format", format)
		}
	case session.PartFile:
		kind = typeFile
		switch {
		case p.Blob != nil && media.MediaType != "":
			if media.Name == "" {
				media.Name = typeFile
			}
			inner.SetText("filename", media.Name)
			inner.SetText("file_data", "data:"+media.MediaType+";base64,"+encode(p.Blob.Data))
		case media.FileID != "" && m.Dialect == Name: // an id of another provider's store names nothing here
			inner.SetText("file_id", media.FileID)
		}
	default:
		s.losePart(m, p)
		return nil
	}
	if inner.Len() == 0 {
		s.lose(m, string(p.Kind)+" "+media.MediaType+": its bytes or its type are not what the API takes")
		return nil
	}
	var o wire.Object
	o.SetText("type", kind)
	o.Set(kind, inner.JSON())
	return o.JSON()
}

// image writes {url, detail}. Types as in OpenAI's guide to vision.
func (s *sender) image(inner *wire.Object, p *session.Part, media wire.Media) {
	switch {
	case p.Blob != nil:
		if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, media.MediaType) {
			return
		}
		inner.SetText("url", "data:"+media.MediaType+";base64,"+encode(p.Blob.Data))
	case strings.HasPrefix(media.URL, "https://") || strings.HasPrefix(media.URL, "http://"):
		inner.SetText("url", media.URL)
	default:
		return
	}
	if slices.Contains([]string{"auto", "low", "high"}, media.Detail) {
		inner.SetText("detail", media.Detail)
	}
}
