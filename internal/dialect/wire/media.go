package wire

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"

	"sessiond/internal/session"
)

// Media is what the extra of an image, audio or file part says beside its bytes. Every
// dialect writes these names, so that one can send what another decoded.
type Media struct {
	MediaType string `json:"media_type,omitempty"` // of the bytes in the part's blob; one blob may stand in parts that call it differently
	URL       string `json:"url,omitempty"`        // where the provider finds it, instead of bytes
	FileID    string `json:"file_id,omitempty"`    // a file that was uploaded to the provider
	Name      string `json:"name,omitempty"`       // of the file
	Detail    string `json:"detail,omitempty"`     // how closely to look at an image: auto, low, high
}

// MediaOf reads the media fields of a part. An extra of another shape says nothing.
func MediaOf(p *session.Part) Media {
	var m Media
	if len(p.Extra) == 0 || json.Unmarshal(p.Extra, &m) != nil {
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

// Attach gives a part its blob.
func Attach(p *session.Part, blob *session.Blob) { p.Blob, p.BlobSHA = blob, &blob.SHA256 }

// Base64 decodes text that encoding its bytes gives back exactly; nothing else, and nothing
// empty, is ok.
func Base64(text string) (data []byte, ok bool) {
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	return data, err == nil && len(data) > 0 && base64.StdEncoding.EncodedLen(len(data)) == len(text)
}

// DataURL takes a data: URL apart into what stands before its bytes, the media type and the
// bytes. It is ok only where prefix and bytes give the URL back exactly.
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
		return session.Errorf(session.Internal, "part %d of message %d came without its blob %s", p.Idx, p.MessageID, *p.BlobSHA)
	}
	return nil
}
