package wire

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Media describes an image, a sound or a file beside its bytes. Every dialect writes these keys
// to extra, so that each can send the media of all others.
type Media struct {
	// of the bytes in the part's blob; one blob may stand in parts that call it differently
	MediaType string `json:"media_type,omitzero"`
	URL       string `json:"url,omitzero"`     // where the provider finds it, instead of bytes
	FileID    string `json:"file_id,omitzero"` // a file that was uploaded to the provider
	Name      string `json:"name,omitzero"`    // of the file
	Detail    string `json:"detail,omitzero"`  // how closely to look at an image: auto, low, high
}

// MediaOf reads the media fields of a part. An extra of another shape says nothing.
func MediaOf(p *session.Part) Media {
	var m Media
	if len(p.Extra) == 0 || jsonx.Unmarshal(p.Extra, &m) != nil {
		m = Media{}
	}
	if m.MediaType == "" && p.Blob != nil && p.Blob.MediaType != session.TextBlob {
		m.MediaType = p.Blob.MediaType
	}
	return m
}

// Blob makes a blob of bytes.
func Blob(mediaType string, data []byte) *session.Blob {
	sum := sha256.Sum256(data)
	return &session.Blob{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data)), MediaType: mediaType, Data: data}
}

// Attach returns a part its blob.
func Attach(p *session.Part, blob *session.Blob) { p.Blob, p.BlobSHA = blob, &blob.SHA256 }

// Base64 decodes canonical base64: encoding the bytes returns the same text. Empty text is not ok.
func Base64(text string) (data []byte, ok bool) {
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	return data, err == nil && len(data) > 0 && base64.StdEncoding.EncodedLen(len(data)) == len(text)
}

// DataURL splits a data: URL into the prefix before its bytes, the media type and the bytes. It is
// ok only if prefix and bytes encode to the same URL.
func DataURL(url string) (prefix, mediaType string, data []byte, ok bool) {
	head, encoded, found := strings.Cut(url, ",")
	rest, isData := strings.CutPrefix(head, "data:")
	mediaType, _, _ = strings.Cut(rest, ";")
	if !found || !isData || mediaType == "" || !strings.HasSuffix(rest, ";base64") {
		return "", "", nil, false
	}
	data, ok = Base64(encoded)
	return head + ",", mediaType, data, ok
}

// Loaded refuses a part whose content lies in a blob that was not read with it: an export
// without it would lose it silently. Codes: Internal.
func Loaded(p *session.Part) error {
	if p.BlobSHA != nil && p.Blob == nil {
		return session.Errorf(session.Internal, "part %d of message %d came without its blob %s", p.Idx, p.MessageID,
			*p.BlobSHA)
	}
	return nil
}

// AttachBase64 decodes canonical base64 into the part's blob and reports whether it was one.
func AttachBase64(p *Part, raw []byte) bool {
	data, ok := Base64(jsonx.ExactText(raw))
	if ok {
		Attach(&p.Part, Blob(p.X.MediaType, data))
	}
	return ok
}

// AttachURL decodes a canonical data URL into the part's blob and reports whether it was one.
func AttachURL(p *Part, url string) bool {
	prefix, mediaType, data, ok := DataURL(url)
	if ok {
		p.X.Prefix, p.X.MediaType = prefix, mediaType
		Attach(&p.Part, Blob(mediaType, data))
	}
	return ok
}

// DataURLOf is the data URL, or the base64, that the part's blob came in; "" without one.
func DataURLOf(p *Part) string {
	if p.Blob == nil {
		return ""
	}
	return p.X.Prefix + base64.StdEncoding.EncodeToString(p.Blob.Data)
}

// SoundType returns the media type of a format of input_audio.
func SoundType(format string) string {
	switch format {
	case "":
		return "application/octet-stream"
	case "mp3":
		return "audio/mpeg"
	}
	return "audio/" + format
}
