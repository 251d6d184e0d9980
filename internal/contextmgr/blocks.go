package contextmgr

import (
	"encoding/json"

	"sessiond/internal/session"
)

// keptPart is a part of the caller's initial blocks as it is kept: with its bytes, which a
// message's part would have in the store's blobs.
type keptPart struct {
	session.Part
	MediaType string `json:"media_type,omitempty"`
	Data      []byte `json:"data,omitempty"`
}

// keepParts writes initial blocks so that the next context has them as they came, "" for none.
func keepParts(parts []session.Part) string {
	if len(parts) == 0 {
		return ""
	}
	kept := make([]keptPart, len(parts))
	for i, p := range parts {
		kept[i].Part = p
		if p.Blob != nil {
			kept[i].MediaType, kept[i].Data = p.Blob.MediaType, p.Blob.Data
		}
	}
	return string(session.JSONOf(kept))
}

// restoreParts reads what keepParts wrote.
func restoreParts(content string) ([]session.Part, error) {
	var kept []keptPart
	if err := json.Unmarshal([]byte(content), &kept); err != nil {
		return nil, err
	}
	parts := make([]session.Part, len(kept))
	for i := range kept {
		parts[i] = kept[i].Part
		if len(kept[i].Data) > 0 {
			parts[i].Blob = &session.Blob{MediaType: kept[i].MediaType, Data: kept[i].Data}
		}
	}
	return parts, nil
}
