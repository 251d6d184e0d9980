package responses

import (
	"encoding/base64"
	"encoding/json"
	"mime"
	"path/filepath"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// element reads one element of a content, an output or a summary. A type that is not known is
// kept whole as data.
func (b *built) element(e wire.Value, texts string) error {
	o, err := e.Fields()
	if err != nil {
		return err
	}
	kind, _ := wire.TextOf(o.Get("type"))
	switch kind {
	case "":
		return o.Field("type").Errorf(session.Invalid, "must say what the element is, not be %s", wire.Describe(o.Get("type")))
	case typeInputText, typeOutputText, typeText, typeSummary, typeReasoning:
		b.Kind = session.PartText
		b.Text, err = o.Take("text")
	case typeRefusal:
		b.Kind = session.PartRefusal
		b.Text, err = o.Take("refusal")
	case typeImage, typeScreenshot:
		b.image(&o)
	case typeFile:
		b.file(&o)
	case typeAudio:
		err = b.sound(&o)
	default:
		e.Warn("has the unknown type %q: kept for export, not sent", wire.Clip(kind))
		*b = dataPart(e.Raw, partExtra{Type: kind})
		return nil
	}
	if err != nil {
		return err
	}
	if kind == wireType(b.Kind, texts) {
		o.Drop("type")
	}
	b.x.Fields = o.Object
	return o.Fits()
}

// wireType is the type that a part has on the wire where its fields name no other.
func wireType(kind session.PartKind, texts string) string {
	switch kind {
	case session.PartRefusal:
		return typeRefusal
	case session.PartImage:
		return typeImage
	case session.PartFile:
		return typeFile
	case session.PartAudio:
		return typeAudio
	}
	return texts
}

// image reads {image_url, file_id, detail}. Bytes of a data URL become the part's blob where
// that gives the URL back exactly; any other URL is kept as it is.
func (b *built) image(o *wire.Fields) {
	b.Kind = session.PartImage
	b.bytesOrURL(o, "image_url")
	b.x.FileID = o.TakeExact("file_id")
	b.x.Detail = o.TakeExact("detail")
}

// file reads {file_id}, {file_url} or {filename, file_data}: a data URL, or bare base64.
func (b *built) file(o *wire.Fields) {
	b.Kind = session.PartFile
	b.x.FileID = o.TakeExact("file_id")
	b.x.URL = o.TakeExact("file_url")
	b.x.Name = o.TakeExact("filename")
	text, exact := wire.TextOf(o.Get("file_data"))
	if !exact {
		return
	}
	if prefix, mediaType, data, ok := wire.DataURL(text); ok {
		b.x.Prefix, b.x.MediaType = prefix, mediaType
		wire.Attach(&b.Part, wire.Blob(mediaType, data))
		o.Drop("file_data")
	} else if data, ok := wire.Base64(text); ok {
		b.x.MediaType, _, _ = mime.ParseMediaType(mime.TypeByExtension(filepath.Ext(b.x.Name)))
		if filepath.Ext(b.x.Name) == ".pdf" || b.x.MediaType == "" {
			b.x.MediaType = "application/pdf" // what the API takes bare base64 for
		}
		wire.Attach(&b.Part, wire.Blob(b.x.MediaType, data))
		o.Drop("file_data")
	}
}

// sound reads {input_audio: {data, format}}, or the {audio_url} that Codex writes.
func (b *built) sound(o *wire.Fields) error {
	b.Kind = session.PartAudio
	if wire.KindOf(o.Get(typeAudio)) != '{' {
		b.x.Field = "audio_url"
		b.bytesOrURL(o, b.x.Field)
		return nil
	}
	inner, err := o.Inner(typeAudio)
	if err != nil {
		return err
	}
	text, exact := wire.TextOf(inner.Get("data"))
	if data, ok := wire.Base64(text); ok && exact {
		b.x.MediaType = "application/octet-stream"
		if format, _ := wire.TextOf(inner.Get("format")); format != "" {
			b.x.MediaType = soundType(format)
		}
		wire.Attach(&b.Part, wire.Blob(b.x.MediaType, data))
		inner.Drop("data")
		o.Set(typeAudio, inner.JSON())
	}
	return nil
}

// soundType gives the media type of a format of input_audio.
func soundType(format string) string {
	if format == "mp3" {
		return "audio/mpeg"
	}
	return "audio/" + format
}

// bytesOrURL takes a field that is a URL.
func (b *built) bytesOrURL(o *wire.Fields, field string) {
	url, exact := wire.TextOf(o.Get(field))
	if !exact || url == "" {
		return
	}
	if prefix, mediaType, data, ok := wire.DataURL(url); ok {
		b.x.Prefix, b.x.MediaType = prefix, mediaType
		wire.Attach(&b.Part, wire.Blob(mediaType, data))
	} else if len(url) > session.BlobThreshold {
		return // no address; it stays with the fields
	} else {
		b.x.URL = url
	}
	o.Drop(field)
}

// exportElement gives an element back.
func exportElement(p *session.Part, x *partExtra, texts string) (json.RawMessage, error) {
	var o wire.Object
	o.SetText("type", wireType(p.Kind, texts))
	switch p.Kind {
	case session.PartText, session.PartToolResult, session.PartReasoning:
		o.SetText("text", p.Content())
	case session.PartRefusal:
		o.SetText("refusal", p.Content())
	case session.PartImage:
		setMedia(&o, p, x, "image_url", "image_url")
	case session.PartFile:
		setMedia(&o, p, x, "file_data", "file_url")
	case session.PartAudio:
		if x.Field != "" {
			setMedia(&o, p, x, x.Field, x.Field)
			break
		}
		inner, err := wire.ParseObject(typeAudio, orEmpty(x.Fields.Get(typeAudio)))
		if err != nil {
			return nil, session.Errorf(session.Internal, "part %d of message %d: %w", p.Idx, p.MessageID, err)
		}
		if p.Blob != nil {
			inner.SetText("data", encode(p.Blob.Data))
		}
		x.Fields.Set(typeAudio, inner.JSON())
	default:
		return rawOf(p, x)
	}
	o.Overlay(x.Fields)
	return o.JSON(), nil
}

// setMedia writes what an image, a file or a sound holds; bytes and url name the fields.
func setMedia(o *wire.Object, p *session.Part, x *partExtra, bytes, url string) {
	if p.Blob != nil {
		o.SetText(bytes, x.Prefix+encode(p.Blob.Data))
	}
	for _, f := range [...][2]string{{url, x.URL}, {"file_id", x.FileID}, {"filename", x.Name}, {"detail", x.Detail}} {
		if f[1] != "" {
			o.SetText(f[0], f[1])
		}
	}
}

// rawOf gives a data part back.
func rawOf(p *session.Part, x *partExtra) (json.RawMessage, error) {
	if p.Blob != nil {
		return p.Blob.Data, nil
	}
	if len(x.Raw) == 0 {
		return nil, session.Errorf(session.Internal, "part %d of message %d of kind %s holds nothing to export", p.Idx, p.MessageID, p.Kind)
	}
	return x.Raw, nil
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

func encode(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
