package contextmgr

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"sessiond/internal/session"
)

// Prefix says how much of a context is the same as in the one before it, so that a
// provider's cache hits.
type Prefix struct {
	Epoch        int64  `json:"epoch"`
	StableTokens int64  `json:"stable_tokens"`
	BrokenBy     string `json:"broken_by,omitempty"` // model, dialect, system, initial, tools, epoch, head, late_result, trimmed
}

// ComparePrefix compares a context with the last one that was handed out. now holds its
// hashes and epoch; stable is the weight of what both have in common if nothing broke it;
// headKept tells whether the last one's head is still among the messages.
func ComparePrefix(last *session.Context, now session.Context, headKept, late, trimmed bool, stable int64) Prefix {
	p := Prefix{Epoch: now.Epoch}
	if last == nil {
		return p
	}
	switch {
	case last.Model != now.Model:
		p.BrokenBy = "model"
	case last.Dialect != now.Dialect:
		p.BrokenBy = "dialect"
	case last.SystemHash != now.SystemHash:
		p.BrokenBy = ItemSystem
	case last.InitialHash != now.InitialHash:
		p.BrokenBy = ItemInitial
	case last.ToolsHash != now.ToolsHash:
		p.BrokenBy = ItemTools
	case late: // it began an epoch, too, and this says why
		p.BrokenBy = "late_result"
	case last.Epoch != now.Epoch:
		p.BrokenBy = "epoch"
	case !headKept:
		p.BrokenBy = "head"
	case trimmed:
		p.BrokenBy = "trimmed"
	default:
		p.StableTokens = stable
	}
	return p
}

// hashOf names a block's content: lower-case hex SHA-256, "" for none.
func hashOf(content string) string {
	if content == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func decode(raw session.JSON, v any) bool { return json.Unmarshal(raw, v) == nil }
