package responses

import (
	"strings"

	"sessiond/internal/dialect/wire"
)

// IsResponse tells a response object from an item: it says so, or has an output and neither
// type nor role.
func IsResponse(o *wire.Object) bool {
	if wire.KindOf(o.Get("output")) != '[' || o.Has("role") {
		return false
	}
	object, _ := wire.Text(o.Get("object"))
	return object == "response" || !o.Has("type") && !o.Has("call_id")
}

// IsItem reports whether an entry is an item of this form by what it says itself. The content of
// a message may tell where this does not: {role, content} alone is of any form, and a typed
// reply with a list may be Anthropic's.
func IsItem(o *wire.Object) bool {
	kind, _ := wire.Text(o.Get("type"))
	switch kind {
	case itemReasoning, itemReference, itemCompaction, itemMCPTools, itemMCPRequest, itemMCPResponse:
		return true
	case itemMessage:
		role, _ := wire.Text(o.Get("role"))
		return role != "assistant" || wire.KindOf(o.Get("content")) == '"' || o.Has("status") || o.Has("phase")
	}
	return strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_output")
}
