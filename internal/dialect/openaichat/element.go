package openaichat

import (
	"encoding/json"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// element reads one element of a content array. A type that is not known is kept whole as data.
func element(e wire.Value) (session.Part, error) {
	var p session.Part
	var x partExtra
	o, err := e.Fields()
	if err != nil {
		return p, err
	}
	kind, exact := wire.TextOf(o.Get("type"))
	if kind == "" {
		return p, o.Field("type").Errorf(session.Invalid, "must say what the element is, not be %s", wire.Describe(o.Get("type")))
	}
	switch kind {
	case typeText, typeRefusal:
		p.Kind = session.PartText
		if kind == typeRefusal {
			p.Kind = session.PartRefusal
		}
		p.Text, err = o.Take(kind) // the field is named like the type
	case typeImage:
		p.Kind = session.PartImage
		err = x.image(&o, &p)
	case typeAudio:
		p.Kind = session.PartAudio
		err = x.sound(&o, &p)
	case typeFile:
		p.Kind = session.PartFile
		err = x.file(&o, &p)
	default:
		e.Warn("has the unknown type %q: kept for export, not sent", wire.Clip(kind))
		return dataPart(e.Raw, partExtra{Type: kind}), nil
	}
	if err != nil {
		return p, err
	}
	if exact {
		o.Drop("type")
	}
	if err := o.Fits(); err != nil {
		return p, err
	}
	x.Fields = o.Object
	x.store(&p)
	return p, nil
}

// image reads {image_url: {url, detail}}. Bytes of a data URL become the part's blob where
// that gives the URL back exactly; any other URL is kept as it is.
func (x *partExtra) image(o *wire.Fields, p *session.Part) error {
	if url, exact := wire.TextOf(o.Get(typeImage)); exact {
		x.URL = url // some servers take the URL itself; the field stays in o
		return nil
	}
	inner, err := o.Inner(typeImage)
	if err != nil {
		return err
	}
	url, err := inner.Take("url")
	if err != nil {
		return err
	}
	if prefix, mediaType, data, ok := wire.DataURL(url); ok {
		x.Prefix, x.MediaType = prefix, mediaType
		wire.Attach(p, wire.Blob(mediaType, data))
	} else if x.URL = url; url == "" {
		inner.SetText("url", "") // no column tells it from none
	}
	x.Detail = inner.TakeExact("detail")
	return x.keepInner(typeImage, o, inner)
}

// sound reads {input_audio: {data, format}}.
func (x *partExtra) sound(o *wire.Fields, p *session.Part) error {
	inner, err := o.Inner(typeAudio)
	if err != nil {
		return err
	}
	x.MediaType = "application/octet-stream"
	if format, _ := wire.TextOf(inner.Get("format")); format != "" {
		x.MediaType = soundType(format)
	}
	text, exact := wire.TextOf(inner.Get("data"))
	if data, ok := wire.Base64(text); ok && exact {
		wire.Attach(p, wire.Blob(x.MediaType, data))
		inner.Drop("data")
	}
	return x.keepInner(typeAudio, o, inner)
}

// file reads {file: {file_id} } or {file: {filename, file_data}}.
func (x *partExtra) file(o *wire.Fields, p *session.Part) error {
	inner, err := o.Inner(typeFile)
	if err != nil {
		return err
	}
	x.Name = inner.TakeExact("filename")
	x.FileID = inner.TakeExact("file_id")
	text, exact := wire.TextOf(inner.Get("file_data"))
	if prefix, mediaType, data, ok := wire.DataURL(text); ok && exact {
		x.Prefix, x.MediaType = prefix, mediaType
		wire.Attach(p, wire.Blob(mediaType, data))
		inner.Drop("file_data")
	}
	return x.keepInner(typeFile, o, inner)
}

// keepInner moves the rest of the object in a field to extra.
func (x *partExtra) keepInner(field string, o *wire.Fields, inner wire.Fields) error {
	o.Drop(field)
	x.Inner = inner.Object
	return inner.Fits()
}

// exportElement gives an element of content back.
func exportElement(p *session.Part, x *partExtra) (json.RawMessage, error) {
	if err := wire.Loaded(p); err != nil {
		return nil, err
	}
	var o wire.Object
	switch p.Kind {
	case session.PartText, session.PartToolResult:
		o.SetText("type", typeText)
		o.SetText("text", p.Content())
	case session.PartRefusal:
		o.SetText("type", typeRefusal)
		o.SetText("refusal", p.Content())
	case session.PartImage:
		o.SetText("type", typeImage)
		o.Set(typeImage, x.exportInner(p, "url", "detail").JSON())
	case session.PartAudio:
		o.SetText("type", typeAudio)
		o.Set(typeAudio, x.exportInner(p, "data", "").JSON())
	case session.PartFile:
		o.SetText("type", typeFile)
		o.Set(typeFile, x.exportInner(p, "file_data", "").JSON())
	default:
		return rawOf(p, x)
	}
	o.Overlay(x.Fields)
	return o.JSON(), nil
}

// exportInner writes image_url, input_audio or file; data names the field that holds bytes.
func (x *partExtra) exportInner(p *session.Part, data, detail string) *wire.Object {
	var o wire.Object
	switch {
	case p.Blob != nil:
		o.SetText(data, x.Prefix+encode(p.Blob.Data))
	case x.URL != "":
		o.SetText(data, x.URL)
	}
	for _, f := range [][2]string{{detail, x.Detail}, {"filename", x.Name}, {"file_id", x.FileID}} {
		if f[1] != "" {
			o.SetText(f[0], f[1])
		}
	}
	o.Overlay(x.Inner)
	return &o
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

// soundType gives the media type of a format of input_audio.
func soundType(format string) string {
	if format == "mp3" {
		return "audio/mpeg"
	}
	return "audio/" + format
}

// soundFormat is the reverse, for the formats that the API takes; "" for any other.
func soundFormat(mediaType string) string {
	switch strings.ToLower(mediaType) {
	case "audio/wav", "audio/x-wav", "audio/wave":
		return "wav"
	case "audio/mpeg", "audio/mp3":
		return "mp3"
	}
	return ""
}
