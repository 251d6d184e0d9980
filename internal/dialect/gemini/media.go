package gemini

import (
	"encoding/base64"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// files is where the provider keeps what was uploaded to it: an address only for the key that
// uploaded it, and so an id rather than a URL.
const files = "https://generativelanguage.googleapis.com/"

// medium reads {inlineData: {mimeType, data}} or {fileData: {mimeType, fileUri}}.
func (r *partReader) medium(o *wire.Fields, field, name string, x *partExtra) error {
	inner, err := inner(o, name)
	if err != nil {
		return err
	}
	x.MediaType = takeEither(&inner, "mimeType")
	p := session.Part{Kind: kindOfType(x.MediaType)}
	if field == fieldInline {
		text, exact := wire.TextOf(inner.Get("data"))
		if data, encoding, ok := decode64(text); ok && exact {
			x.Encoding = encoding
			blobType := x.MediaType
			if blobType == "" {
				blobType = "application/octet-stream"
			}
			wire.Attach(&p, wire.Blob(blobType, data))
			inner.Drop("data")
		}
	} else {
		x.locate(takeEither(&inner, "fileUri"))
	}
	x.Name = takeEither(&inner, "displayName")
	if err := inner.Fits(); err != nil {
		return err
	}
	x.Inner = inner.Object
	if field == fieldFile && x.Field == "" {
		x.Field = fieldFile // a part without bytes may be either
	}
	return r.keep(p, o, x)
}

// takeEither gives a field in either spelling. In the one that is not ours it stays in the
// object, and so in extra, by which export knows it.
func takeEither(o *wire.Fields, field string) string {
	_, raw := lookup(&o.Object, field)
	text, _ := exactText(raw)
	if !o.Has(snake(field)) {
		o.TakeExact(field)
	}
	return text
}

func (x *partExtra) locate(uri string) {
	if strings.HasPrefix(uri, files) {
		x.FileID = uri
		return
	}
	x.URL = uri
}

// exactText reads a string that has something in it and that a column can hold.
func exactText[T ~[]byte](raw T) (string, bool) {
	text, exact := wire.TextOf([]byte(raw))
	if !exact || text == "" {
		return "", false
	}
	return text, true
}

// kindOfType gives the kind of a medium. A film is a file.
func kindOfType(mediaType string) session.PartKind {
	switch {
	case strings.HasPrefix(mediaType, "image/"):
		return session.PartImage
	case strings.HasPrefix(mediaType, "audio/"):
		return session.PartAudio
	}
	return session.PartFile
}

// decode64 decodes base64 of the standard alphabet, or of the one for URLs, which the API takes
// and some clients write, where encoding gives the same text again.
func decode64(text string) (data []byte, encoding string, ok bool) {
	if data, ok = wire.Base64(text); ok {
		return data, "", true
	}
	data, err := base64.URLEncoding.Strict().DecodeString(text)
	if err != nil || len(data) == 0 || base64.URLEncoding.EncodedLen(len(data)) != len(text) {
		return nil, "", false
	}
	return data, "url", true
}

func encode64(data []byte, encoding string) string {
	if encoding == "url" {
		return base64.URLEncoding.EncodeToString(data)
	}
	return base64.StdEncoding.EncodeToString(data)
}
