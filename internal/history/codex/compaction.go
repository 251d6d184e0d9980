package codex

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect/responses"
	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/words"
)

// How much of what a person said Codex keeps where a compaction does not say it. Source: codex, compact.rs.
const (
	keptTokens = 20_000
	keptBytes  = keptTokens * words.BytesPerToken
)

// window has what a compaction without a replacement keeps: what was told at the beginning,
// and the newest of what the person said.
type window struct {
	told []string
	said []string
	size int
}

func (w *window) wrap(text string) {
	if len(w.said) == 0 && len(w.told) < 16 && len(text) <= keptBytes {
		w.told = append(w.told, text)
	}
}

func (w *window) say(text string) {
	text = plainText(text)
	w.said = append(w.said, text)
	// The oldest that does not fit whole stays: it will be cut.
	for w.size += len(text); w.size-len(w.said[0]) >= keptBytes; w.said = w.said[1:] {
		w.size -= len(w.said[0])
	}
}

// compacted turns the record into a marker that holds it as it is, and an overlay that ends
// with it.
func (r *reader) compacted(rec *record) {
	text := rec.payload.String("message")
	list := rec.payload.Get("replacement_history")
	var c history.Compaction
	c.Summary, c.CreatedAt = plainText(text), rec.at
	c.Provider, c.Model = r.state.Provider, r.state.Model
	kept := r.kept // as it is now
	r.state.Summary = digestOf(text)
	key := r.state.advance(rec)
	c.Key, c.ThroughKey = key, key
	r.put(key, rec, 1, func() history.Decoded {
		var media []session.Part
		if len(list) > 0 && list[0] == '[' {
			c.Replacement, media = replacement(list, text)
		} else {
			c.Replacement = kept.replacement()
		}
		m := session.Message{
			Kind: session.KindMarker, Origin: session.Program,
			Parts: []session.Part{session.TextPart("context compacted")},
		}
		line := rec.line.Without("timestamp")
		if len(rec.raw) > session.BlobThreshold {
			line = line.Without("payload")
			payload := payloadBlob(rec)
			payload.Blob.Data = withoutMedia(payload.Blob.Data, media)
			m.Parts = append(m.Parts, payload)
		}
		m.Parts = append(m.Parts, media...)
		m.Extra = keepLine(line)
		d := history.Alone(m)
		d.Compactions = []history.Compaction{c}
		return d
	})
}

// replacement holds the context that Codex made of the conversation, in sessiond's own form.
// The summary is left out: the overlay has it. media are the pictures of it, each once: the
// replacement names them, and the record's message keeps them.
func replacement(list []byte, summary string) (context session.JSON, media []session.Part) {
	elements, _ := jsonx.ReadArray(list)
	var kept []session.Message
	for _, element := range elements {
		decoded, err := responses.Decode([]jsontext.Value{element})
		if err != nil {
			continue // what the dialect does not hold is in the marker
		}
		for _, m := range decoded.Messages {
			if m.Kind == session.KindUnknown || summary != "" && strings.TrimSpace(m.Text()) == strings.TrimSpace(summary) {
				continue
			}
			if m.Role == session.User {
				m.Origin = session.Program
			}
			media = nameMedia(m.Parts, media)
			kept = append(kept, session.Message{
				Kind: m.Kind, Role: m.Role, Origin: m.Origin, Dialect: m.Dialect,
				Parts: m.Parts,
			})
		}
	}
	return history.Replacement(kept), media
}

// mostMedia bounds the pictures that one record's message keeps, which holds other parts, too.
const mostMedia = session.MaxParts - 8

// nameMedia lets parts name their bytes, which no JSON holds, and adds the bytes to media, once.
// A note stands for those that are too many.
func nameMedia(parts, media []session.Part) []session.Part {
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Blob == nil:
			continue
		case !p.Kind.HasBytes():
			p.Text, p.Blob, p.BlobSHA = string(p.Blob.Data), nil, nil
			continue
		}
		known := slices.ContainsFunc(media, func(of session.Part) bool { return of.Blob.SHA256 == p.Blob.SHA256 })
		if !known && len(media) >= mostMedia {
			item := p.Extra
			*p = session.TextPart("[" + string(p.Kind) + "]")
			if o, ok := jsonx.ReadObject(item); ok && o.Get("item") != nil {
				p.Extra = jsonx.Object{{Key: "item", Value: o.Get("item")}}.Column()
			}
			continue
		}
		if !known {
			media = append(media, session.Part{Kind: session.PartData, Blob: p.Blob, BlobSHA: p.BlobSHA})
		}
	}
	return media
}

// withoutMedia puts blob:HASH into a payload in the place of bytes that parts beside it keep.
func withoutMedia(payload []byte, media []session.Part) []byte {
	for i := range media {
		b := media[i].Blob
		encoded := base64.StdEncoding.AppendEncode(nil, b.Data)
		payload = bytes.ReplaceAll(payload, encoded, []byte("blob:"+b.SHA256))
	}
	return payload
}

// replacement is what Codex goes on with after a compaction that says only its summary.
func (w *window) replacement() session.JSON {
	var kept []session.Message
	for _, text := range append(append([]string(nil), w.told...), words.Recent(w.said, keptTokens)...) {
		if strings.TrimSpace(text) != "" {
			kept = append(kept, session.Message{
				Kind: session.KindMessage, Role: session.User, Origin: session.Program,
				Parts: []session.Part{session.TextPart(plainText(text))},
			})
		}
	}
	return history.Replacement(kept)
}
