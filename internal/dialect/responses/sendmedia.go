package responses

import (
	"encoding/json"
	"slices"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// medium writes an image or a file as an element of a content or an output. It gives nil, and
// names the loss, for what the API does not take. Of a sound, which it does not take, what was
// said stands in.
func (s *sender) medium(m *session.Message, p *session.Part, x *partExtra) json.RawMessage {
	media := wire.MediaOf(p)
	var o wire.Object
	ok := false
	switch p.Kind {
	case session.PartImage:
		o.SetText("type", typeImage)
		ok = image(&o, m, p, media)
	case session.PartFile:
		o.SetText("type", typeFile)
		ok = file(&o, m, p, media)
	case session.PartAudio:
		if text := p.Content(); text != "" {
			return textElement(textPrefix, text)
		}
	default:
		s.losePart(m, p, x)
		return nil
	}
	if !ok {
		s.lose(m, strings.TrimSuffix(string(p.Kind)+" "+media.MediaType, " ")+": its bytes or its type are not what the API takes")
		return nil
	}
	return o.JSON()
}

// uploaded tells whether a file's id is one of OpenAI's store: an id of another names nothing there.
func uploaded(m *session.Message) bool { return m.Dialect == Name || m.Dialect == "openai.chat" }

// image writes {detail, image_url | file_id}. Types as in OpenAI's guide to vision.
func image(o *wire.Object, m *session.Message, p *session.Part, media wire.Media) bool {
	if !slices.Contains([]string{"low", "high", "original"}, media.Detail) {
		media.Detail = "auto"
	}
	o.SetText("detail", media.Detail)
	switch {
	case p.Blob != nil:
		if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, media.MediaType) {
			return false
		}
		o.SetText("image_url", "data:"+media.MediaType+";base64,"+encode(p.Blob.Data))
	case isWeb(media.URL):
		o.SetText("image_url", media.URL)
	case media.FileID != "" && uploaded(m):
		o.SetText("file_id", media.FileID)
	default:
		return false
	}
	return true
}

// file writes {filename, file_data}, {file_url} or {file_id}.
func file(o *wire.Object, m *session.Message, p *session.Part, media wire.Media) bool {
	switch {
	case p.Blob != nil && strings.Contains(media.MediaType, "/"):
		if media.Name == "" {
			media.Name = "file"
		}
		o.SetText("filename", media.Name)
		o.SetText("file_data", "data:"+media.MediaType+";base64,"+encode(p.Blob.Data))
	case isWeb(media.URL):
		o.SetText("file_url", media.URL)
	case media.FileID != "" && uploaded(m):
		o.SetText("file_id", media.FileID)
	default:
		return false
	}
	return true
}

func isWeb(url string) bool {
	return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
}
