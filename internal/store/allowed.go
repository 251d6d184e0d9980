package store

import (
	"slices"

	"sessiond/internal/session"
)

// The values that the schema allows.
func messageKinds() []session.Kind {
	return []session.Kind{
		session.KindMessage, session.KindBash, session.KindCustomMessage, session.KindCustom, session.KindBranchSummary, session.KindMarker, session.KindUnknown,
	}
}

func roles() []session.Role {
	return []session.Role{session.Assistant, session.Tool, session.User, "", session.System}
}

func origins() []session.Origin {
	return []session.Origin{session.Model, session.ByTool, session.Person, session.Program}
}

func finishes() []session.Finish {
	return []session.Finish{
		"", session.FinishStop, session.FinishToolCalls, session.FinishLength, session.FinishError, session.FinishAborted, session.FinishRefusal, session.FinishPaused,
	}
}

func partKinds() []session.PartKind {
	return []session.PartKind{
		session.PartText, session.PartToolCall, session.PartToolResult, session.PartReasoning, session.PartData, session.PartImage, session.PartAudio, session.PartFile, session.PartRefusal,
	}
}

func purposes() []session.Purpose {
	return []session.Purpose{
		session.PurposeChat, session.PurposeSummary, session.PurposeTitle, session.PurposeBranchSummary, session.PurposeTool, session.PurposeOther,
	}
}

func callStatuses() []string { return []string{session.CallOK, session.CallFailed} }

func priceSources() []string { return []string{"", "reported", "catalogue", "override"} }

func fileOps() []session.FileOp {
	return []session.FileOp{session.OpRead, session.OpWrite, session.OpEdit, session.OpDelete}
}

// allowedCall is allowed for the row of a call. What is empty the store fills in.
func (s *Store) allowedCall(c *session.Call) error {
	wrong := ""
	switch {
	case c.Purpose != "" && !slices.Contains(purposes(), c.Purpose):
		wrong = "purpose"
	case c.Status != "" && !slices.Contains(callStatuses(), c.Status):
		wrong = "status"
	case !slices.Contains(priceSources(), c.PriceSource):
		wrong = "price_source"
	case len(c.Metadata) > 0 && !s.opt.Storable(c.Metadata):
		wrong = "metadata"
	}
	return refused(wrong)
}

// allowed refuses what the CHECKs of messages and parts refuse, for rows that are inserted past
// them: there each row would be checked while everybody waits, and slower. What the store
// itself fills in is as it must be.
func (s *Store) allowed(m *session.Message) error {
	wrong := ""
	switch {
	case !slices.Contains(messageKinds(), m.Kind):
		wrong = "kind"
	case !slices.Contains(roles(), m.Role):
		wrong = "role"
	case !slices.Contains(origins(), m.Origin):
		wrong = "origin"
	case !slices.Contains(finishes(), m.Finish):
		wrong = "finish"
	case len(m.Metadata) > 0 && !s.opt.Storable(m.Metadata):
		wrong = "metadata"
	case len(m.Extra) > 0 && !s.opt.Storable(m.Extra):
		wrong = "extra"
	}
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case !slices.Contains(partKinds(), p.Kind):
			wrong = "parts.kind"
		case len(p.Extra) > 0 && !s.opt.Storable(p.Extra):
			wrong = "parts.extra"
		}
	}
	return refused(wrong)
}

func refused(wrong string) error {
	if wrong == "" {
		return nil
	}
	return session.Errorf(session.Invalid, "%s is none of what docs/schema.md allows", wrong).At(wrong, "not allowed")
}
