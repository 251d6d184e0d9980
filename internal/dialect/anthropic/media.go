package anthropic

import (
	"encoding/base64"
	"encoding/json"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// Types of a source.
const (
	sourceBase64  = "base64"
	sourceText    = "text"
	sourceContent = "content"
	sourceURL     = "url"
	sourceFile    = "file"
)

// source reads the source of an image or a document. Bytes, and the text of a document that
// is plain text, become the part's blob where that gives them back exactly. Everything else
// of the source stays as it came; the columns' names are for other dialects.
func (b *block) source(p *session.Part, x *partExtra) error {
	source, err := b.Inner("source")
	if err != nil {
		return err
	}
	if err := source.Fits(); err != nil {
		return err
	}
	kind, _ := wire.TextOf(source.Get("type"))
	x.MediaType = exactText(&source.Object, "media_type")
	data, exact := wire.TextOf(source.Get("data"))
	switch kind {
	case sourceBase64:
		if decoded, ok := wire.Base64(data); ok && exact {
			wire.Attach(p, wire.Blob(x.MediaType, decoded))
			source.Drop("data")
		}
	case sourceText:
		if exact && data != "" {
			wire.Attach(p, wire.Blob(x.MediaType, []byte(data)))
			source.Drop("data")
		}
	case sourceContent:
		if text := readable(&source.Object); len(text) <= session.BlobThreshold { // the blob is for bytes
			p.Text = text
		}
	case sourceURL:
		x.URL = exactText(&source.Object, "url")
	case sourceFile:
		x.FileID = exactText(&source.Object, "file_id")
	}
	x.Name = exactText(&b.Object, "title")
	b.Drop("source")
	x.Source = source.Object
	return nil
}

// exportSource gives a source back.
func exportSource(p *session.Part, x *partExtra) json.RawMessage {
	var o wire.Object
	if p.Blob != nil {
		if kind, _ := wire.TextOf(x.Source.Get("type")); kind == sourceText {
			o.SetText("data", string(p.Blob.Data))
		} else {
			o.SetText("data", encode(p.Blob.Data))
		}
	}
	o.Overlay(x.Source)
	return o.JSON()
}

func encode(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
