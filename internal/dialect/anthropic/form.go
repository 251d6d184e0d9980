// Package anthropic is the wire form of Anthropic's Messages API.
//
// An entry of `messages` is one session.Message and each of its blocks one part, in order;
// only an entry that mixes results with other blocks is two, a tool's and a user's, that
// share extra.wire.entry. A result's own content stands behind it, under its call id: the
// first text is the result's. The fields that no column holds are in extra.rest, and win over the
// columns on export.
package anthropic

import (
	"strings"

	"sessiond/internal/dialect/wire"
)

// Name is the dialect's name.
const Name = "anthropic"

// Form is the dialect.
func Form() wire.Form {
	return wire.Form{Name: Name, Decode: Decode, Export: Export, Send: Send}
}

// shapeText is the shape of a call's input that is a string, and of a document's source that is
// plain text.
const shapeText = "text"

// Types of a source.
const (
	sourceBase64  = "base64"
	sourceText    = "text"
	sourceContent = "content"
	sourceURL     = "url"
	sourceFile    = "file"
)

// Types of blocks. The tools that the provider runs itself have types of their own, which
// end alike: see isServerCall and isServerResult.
const (
	typeText            = "text"
	typeImage           = "image"
	typeDocument        = "document"
	typeSearchResult    = "search_result"
	typeContainerUpload = "container_upload"
	typeThinking        = "thinking"
	typeRedacted        = "redacted_thinking"
	typeToolUse         = "tool_use"
	typeToolResult      = "tool_result"
	typeToolReference   = "tool_reference"
	typeServerToolUse   = "server_tool_use"
	typeMCPToolUse      = "mcp_tool_use"
	typeMCPToolResult   = "mcp_tool_result"
	typeWebSearchResult = "web_search_tool_result"
	typeWebFetchResult  = "web_fetch_tool_result"
)

// isServerCall reports whether a block calls a tool that the provider runs.
func isServerCall(kind string) bool {
	return kind != typeToolUse && strings.HasSuffix(kind, "_tool_use")
}

// isServerResult reports whether a block is the result of a tool that the provider ran.
func isServerResult(kind string) bool {
	return kind != typeToolResult && strings.HasSuffix(kind, "_tool_result")
}
