package goose

import (
	"encoding/base64"
	"unicode/utf8"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// decode returns the message of a row.
func decode(r *record, in *row, how shown) session.Message {
	m := session.Message{
		Kind: session.KindMessage, Dialect: "goose", ExternalID: r.key, CreatedAt: r.at, Display: r.user,
	}
	if r.why != "" {
		verbatim(&m, r, in)
		return m
	}
	blocks, _ := blocksOf(in)
	extra := history.Object{field("hash", r.print)}
	note := func(key, value string) {
		if value != "" {
			extra = append(extra, field(key, value))
		}
	}
	if how.marker {
		m.Kind, m.Origin = session.KindMarker, session.Program
		p := history.RawPart("blocks", history.Array(blocks))
		p.Text = "Goose's summary, as above"
		if r.role == "assistant" {
			p.Text = "Goose told its model to go on"
		}
		m.Parts = []session.Part{p}
	} else {
		m.Parts = partsOf(blocks)
		if speaks(&m, r, how); !r.says.model { // a notice, a question about a permission
			m.Kind, m.Role = session.KindMarker, ""
		}
		m.InContext = r.says.model && (r.agent || how.hidden || how.paired) && !how.between
	}
	metadata, isObject := history.ParseObject(in.metadata)
	told(&m, metadata)
	switch {
	case isObject && len(metadata) > 0:
		extra = append(extra, history.Field{Key: "metadata", Raw: raw(metadata.JSON())})
	case !isObject && len(in.metadata) > 0:
		note("metadata_text", history.Plain(in.metadata))
	}
	note("repeats", how.again)
	note("note", how.note)
	if r.derived {
		note("time", "derived")
	}
	if !utf8.Valid(in.content) {
		note("bytes", base64.StdEncoding.EncodeToString(in.content))
	}
	m.Extra = extra.JSON()
	return m
}

// speaks sets who made a message, in which role. A notice in the assistant's role is the program's.
func speaks(m *session.Message, r *record, how shown) {
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
		m.Role, m.Origin = session.User, how.author
		if !r.user {
			m.Origin = session.Program
		}
		if how.between || !r.user && r.agent {
			m.Kind = session.KindCustomMessage
		}
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind == session.PartData && m.Role == session.Assistant && m.Finish == "" {
			block, _ := history.Fields(p.Extra)
			if inner, _ := history.Fields(block.Get("block")); inner.String("type") == blockError {
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

// told sets the model that answered, as Goose names it.
func told(m *session.Message, metadata history.Object) {
	if m.Role != session.Assistant {
		return
	}
	inference, _ := history.Fields(metadata.Get("inference"))
	m.Provider = inference.String("provider")
	if m.Model = inference.String("resolvedModel"); m.Model == "" {
		m.Model = inference.String("requestedModel")
	}
	if string(metadata.Get("outputTokenLimitReached")) == "true" {
		m.Finish = session.FinishLength
	}
}

// verbatim keeps a row as text, out of the context and beside the path.
func verbatim(m *session.Message, r *record, in *row) {
	m.Kind, m.Origin, m.InContext = session.KindUnknown, session.Program, false
	m.Parts = []session.Part{{Kind: session.PartData, Text: history.Plain(in.content)}}
	extra := history.Object{field("hash", r.print), field("note", r.why), field("role", history.Plain([]byte(in.role)))}
	if len(in.metadata) > 0 {
		extra = append(extra, field("metadata_text", history.Plain(in.metadata)))
	}
	if m.Parts[0].Text != string(in.content) {
		extra = append(extra, field("bytes", base64.StdEncoding.EncodeToString(in.content)))
	}
	m.Extra = extra.JSON()
}
