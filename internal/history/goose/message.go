package goose

import (
	"cmp"
	"encoding/base64"
	"unicode/utf8"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// decode returns the message of a row. author wrote the prompts.
func decode(r *record, in *row, author session.Origin) session.Message {
	m := session.Message{Kind: session.KindMessage}
	if r.why != "" {
		m = verbatim(r, in)
	} else {
		decodeInto(&m, r, in, author)
	}
	m.Dialect, m.ExternalID, m.CreatedAt, m.Display = "goose", r.key, r.at, r.user
	return m
}

func decodeInto(m *session.Message, r *record, in *row, author session.Origin) {
	blocks, _ := blocksOf(in)
	extra := jsonx.Object{jsonx.MemberOf("hash", r.print)}
	note := func(key, value string) { extra = append(extra, jsonx.MemberOf(key, value)) }
	if r.marker {
		m.Kind, m.Origin = session.KindMarker, session.Program
		p := history.RawPart("blocks", jsonx.Array(blocks))
		p.Text = "Goose's summary, as above"
		if r.role == "assistant" {
			p.Text = "Goose told its model to go on"
		}
		m.Parts = []session.Part{p}
	} else {
		m.Parts = partsOf(blocks)
		if setSpeaker(m, r, author); !r.says.model { // a notice, a question about a permission
			m.Kind, m.Role = session.KindMarker, ""
		}
		m.InContext = r.says.model && (r.agent || r.hidden || r.paired != nil) && !r.between
	}
	metadata, isObject := jsonx.ReadObject(in.Metadata)
	setModel(m, metadata)
	switch {
	case isObject && len(metadata) > 0:
		extra = append(extra, jsonx.Member{Key: "metadata", Value: raw(metadata.Column())})
	case !isObject && len(in.Metadata) > 0:
		note("metadata_text", history.Plain(in.Metadata))
	}
	if r.again != "" {
		note("repeats", r.again)
	}
	if r.between {
		note("note", "stands for calls that the model does not see any more")
	}
	if r.derived {
		note("time", "derived")
	}
	if !utf8.Valid(in.Content) {
		note("bytes", base64.StdEncoding.EncodeToString(in.Content))
	}
	m.Extra = extra.Column()
}

// setSpeaker sets who made a message, in which role. A notice in the assistant's role is the program's.
func setSpeaker(m *session.Message, r *record, author session.Origin) {
	switch {
	case r.role == "assistant":
		m.Role, m.Origin = session.Assistant, session.Model
		if !r.says.model {
			m.Origin = session.Program
		}
		if r.says.calls {
			m.Finish = session.FinishToolCalls
		}
	case r.says.results && !r.says.text && !r.says.calls && onlyResults(m.Parts):
		m.Role, m.Origin = session.Tool, session.ByTool
	default:
		m.Role, m.Origin = session.User, author
		if !r.user {
			m.Origin = session.Program
		}
		if r.between || !r.user && r.agent {
			m.Kind = session.KindCustomMessage
		}
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind == session.PartData && m.Role == session.Assistant && m.Finish == "" {
			block, _ := jsonx.ReadFields(p.Extra)
			if inner := block.Inner("block"); inner.String("type") == blockError {
				m.Finish = session.FinishError
			}
		}
	}
}

func onlyResults(parts []session.Part) bool {
	for i := range parts {
		if k := parts[i].Kind; k != session.PartToolResult && parts[i].CallID == "" {
			return false
		}
	}
	return true
}

// setModel sets the model that answered, as Goose names it.
func setModel(m *session.Message, metadata jsonx.Object) {
	if m.Role != session.Assistant {
		return
	}
	inference := metadata.Inner("inference")
	m.Provider, m.Model = inference.String("provider"),
		cmp.Or(inference.String("resolvedModel"), inference.String("requestedModel"))
	if string(metadata.Get("outputTokenLimitReached")) == "true" {
		m.Finish = session.FinishLength
	}
}

// verbatim returns a row as text, out of the context and beside the path.
func verbatim(r *record, in *row) session.Message {
	m := history.Verbatim(in.Content, r.why)
	extra, _ := jsonx.ReadFields(m.Extra)
	extra = append(extra, jsonx.MemberOf("hash", r.print), jsonx.MemberOf("role", history.Plain(in.Role)))
	if len(in.Metadata) > 0 {
		extra = append(extra, jsonx.MemberOf("metadata_text", history.Plain(in.Metadata)))
	}
	m.Extra = extra.Column()
	return m
}
