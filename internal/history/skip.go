package history

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// The skip functions go over JSON that is known to be valid.

func trim(raw []byte) []byte { return bytes.Trim(raw, " \t\r\n") }

func skipSpace(raw []byte, at int) int {
	for raw[at] == ' ' || raw[at] == '\t' || raw[at] == '\n' || raw[at] == '\r' {
		at++
	}
	return at
}

// skipValue gives the end of the value that begins at at.
func skipValue(raw []byte, at int) int {
	switch raw[at] {
	case '"':
		return skipString(raw, at)
	case '{', '[':
		depth := 0
		for {
			switch raw[at] {
			case '"':
				at = skipString(raw, at)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			at++
			if depth == 0 {
				return at
			}
		}
	}
	for at < len(raw) && !endsScalar(raw[at]) {
		at++
	}
	return at
}

func endsScalar(b byte) bool {
	return b == ',' || b == ']' || b == '}' || b == ' ' || b == '\t' || b == '\r' || b == '\n'
}

// Of eight bytes at once: x^ones*c has a zero byte where c is, and (x-ones)&^x&tops marks zero
// bytes. The lowest mark is right; those above may err.
const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080

	// nearWords is how far a string is gone over by eight bytes at once. Texts have escapes every
	// few words; what has none for so long, like data, is gone over by more at once.
	nearWords = 12
)

// skipString gives the end of the string whose quote is at at.
func skipString(raw []byte, at int) int {
	end, _ := endOfString(raw, at)
	return end
}

// endOfString is skipString that tells whether there are escapes. It looks for each quote once
// from afar, however many escapes stand before it.
func endOfString(raw []byte, at int) (end int, escaped bool) {
	at++
	far := 0
	for words := 0; at+8 <= len(raw); {
		w := binary.LittleEndian.Uint64(raw[at:])
		quote, escape := w^ones*'"', w^ones*'\\'
		found := ((quote-ones)&^quote | (escape-ones)&^escape) & tops
		if found != 0 {
			at += bits.TrailingZeros64(found) / 8
			if raw[at] == '"' {
				return at + 1, escaped
			}
			at, words, escaped = at+2, 0, true
			continue
		}
		at += 8
		if words++; words < nearWords {
			continue
		}
		words = 0
		if far < at {
			far = at + bytes.IndexByte(raw[at:], '"')
		}
		next := bytes.IndexByte(raw[at:far], '\\')
		if next < 0 {
			return far + 1, escaped
		}
		at += next
	}
	for {
		switch raw[at] {
		case '"':
			return at + 1, escaped
		case '\\':
			at, escaped = at+1, true
		}
		at++
	}
}

// nameOf reads a field's name. The names of transcripts are at hand, and cost no memory.
func nameOf(raw []byte) string {
	inner := raw[1 : len(raw)-1]
	known := knownNames(len(inner))
	for i := 0; i < len(known); i += len(inner) {
		if name := known[i : i+len(inner)]; name == string(inner) {
			return name
		}
	}
	name, _ := Text(raw)
	return name
}

// knownNames gives the names of a length that transcripts are full of, one behind the other.
func knownNames(length int) string {
	switch length {
	case 2:
		return "id"
	case 3:
		return "api" + "cwd"
	case 4:
		return "type" + "role" + "text" + "uuid" + "name" + "slug" + "cost" + "path" + "info" + "mode" + "data" + "kind"
	case 5:
		return "input" + "model" + "usage" + "total" + "phase" + "limit"
	case 6:
		return "output" + "status" + "stdout" + "stderr" + "effort"
	case 7:
		return "content" + "message" + "version" + "payload" + "isError" + "command" + "call_id" + "summary" + "details"
	case 8:
		return "parentId" + "userType" + "provider" + "toolName" + "thinking" + "is_error" + "filePath"
	case 9:
		return "timestamp" + "sessionId" + "gitBranch" + "cacheRead" + "arguments" + "requestId" + "resets_at" + "signature"
	case 10:
		return "parentUuid" + "cacheWrite" + "stopReason" + "toolCallId"
	case 11:
		return "isSidechain" + "totalTokens" + "stop_reason" + "tool_use_id" + "rate_limits"
	case 12:
		return "input_tokens" + "total_tokens" + "service_tier" + "used_percent"
	case 13:
		return "output_tokens" + "stop_sequence" + "toolUseResult" + "textSignature"
	case 14:
		return "cache_creation" + "window_minutes"
	case 15:
		return "parentToolUseID"
	case 16:
		return "last_token_usage"
	case 17:
		return "total_token_usage" + "thinkingSignature"
	case 19:
		return "cached_input_tokens"
	case 20:
		return "model_context_window"
	case 23:
		return "cache_read_input_tokens" + "reasoning_output_tokens"
	case 25:
		return "ephemeral_5m_input_tokens" + "ephemeral_1h_input_tokens"
	case 27:
		return "cache_creation_input_tokens"
	}
	return ""
}
