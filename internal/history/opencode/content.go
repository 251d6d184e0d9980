package opencode

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// segment is a piece of a reply: what the model said in one step, and the results of the
// tools that it called.
type segment struct {
	says    []session.Part
	results []session.Part
	aside   []raw // parts that say nothing: steps, snapshots, patches
}

// segments divides a message at its steps, after each that called tools.
func segments(parts []part, role string) []segment {
	all := []segment{{}}
	for i := range parts {
		o := parts[i].Object
		if why := parts[i].why; why != "" {
			p := session.Part{Kind: session.PartData, Text: parts[i].plain()}
			p.Extra = session.JSONOf(map[string]string{"id": clean(parts[i].id), "note": why})
			all[len(all)-1].says = append(all[len(all)-1].says, p)
			continue
		}
		if o.Get("id") == nil && parts[i].id != "" {
			o = append(jsonx.Object{jsonx.MemberOf("id", clean(parts[i].id))}, o...)
		}
		o = o.Without("sessionID", "messageID")
		s := &all[len(all)-1]
		kind := o.String("type")
		if kind == "step-start" && len(s.results) > 0 {
			all = append(all, segment{})
			s = &all[len(all)-1]
		}
		if len(s.says)+len(s.results) >= session.MaxParts/2 {
			kind = "too many"
		}
		s.add(kind, o, role)
	}
	return all
}

// add adds a part of a kind. What a column does not hold exactly stays in extra.
func (s *segment) add(kind string, o jsonx.Object, role string) {
	rest := history.Taker{Object: o}
	var p session.Part
	switch kind {
	case "text":
		p = session.Part{Kind: session.PartText, Text: rest.Text("text")}
		if string(o.Get("ignored")) == "true" && role == "user" {
			p.Kind = session.PartData // the model does not see it
		}
		rest.Take("type")
	case "reasoning":
		p = session.Part{Kind: session.PartReasoning, Text: rest.Text("text")}
		rest.Take("type")
	case "file":
		p = filePart(&rest)
	case "tool":
		s.tool(&rest)
		return
	case "subtask": // as opencode tells it to the model
		p = session.Part{Kind: session.PartText, Text: "The following tool was executed by the user"}
	case "agent":
		p = session.Part{Kind: session.PartData, Text: "@" + clean(o.String("name"))}
	case "step-start", "step-finish", "snapshot", "patch", "retry", "compaction", "too many":
		s.aside = append(s.aside, raw(o.Column()))
		return
	default:
		p = session.Part{Kind: session.PartData}
	}
	p.Extra = rest.Column()
	s.says = append(s.says, p)
}

// filePart turns a file into a part with its bytes. Texts and folders are not in the context:
// what is in them stands in a text beside.
func filePart(rest *history.Taker) session.Part {
	mime := rest.String("mime")
	data, ok := dataURL(rest.String("url"))
	if !ok || mime == "text/plain" || mime == "application/x-directory" {
		name := rest.String("filename")
		if name == "" && !strings.HasPrefix(rest.String("url"), "data:") {
			name = rest.String("url")
		}
		return session.Part{Kind: session.PartData, Text: clean(name)}
	}
	p := session.Part{
		Kind: history.MediaKind(mime),
		Blob: &session.Blob{MediaType: clean(mime), Data: data, Size: int64(len(data))},
	}
	rest.Take("url")
	rest.Take("type")
	return p
}

// dataURL reads the bytes of a data: URL, where they encode to the same text again.
func dataURL(text string) ([]byte, bool) {
	head, body, ok := strings.Cut(text, ",")
	if !ok || !strings.HasPrefix(head, "data:") {
		return nil, false
	}
	if strings.HasSuffix(head, ";base64") {
		return wire.Base64(body)
	}
	plain, err := url.PathUnescape(body)
	return []byte(plain), err == nil && plain != ""
}

// tool turns a call and its result into parts. A call that never ended has no result.
func (s *segment) tool(rest *history.Taker) {
	state := history.Taker{Object: rest.Inner("state")}
	call := session.Part{
		Kind: session.PartToolCall, CallID: rest.Text("callID"), ToolName: rest.Text("tool"),
		Arguments: string(state.Take("input")),
	}
	result := session.Part{Kind: session.PartToolResult, CallID: call.CallID, ToolName: call.ToolName}
	failed, ended := false, true
	var attached []session.Part
	switch status := state.String("status"); status {
	case "completed":
		result.Text = state.Text("output")
		attached = attachments(&state)
		state.Take("status")
	case "error":
		failed = true
		result.Text = state.Text("error")
		metadata := state.Inner("metadata")
		if output := metadata.String("output"); output != "" && string(metadata.Get("interrupted")) == "true" {
			result.Text = output // what there was until then
		}
		state.Take("status")
	default:
		ended = false
	}
	result.IsError = &failed
	times := state.Inner("time")
	begun, end := history.Count(times.Get("start")), history.Count(times.Get("end"))
	if took := end - begun; begun > 0 && took >= 0 {
		result.DurationMS = &took
	}
	if len(state.Object) > 0 {
		rest.Object = rest.With("state", state.Column())
	} else {
		rest.Take("state")
	}
	rest.Take("type")
	call.Extra = rest.Column()
	s.says = append(s.says, call)
	if !ended {
		return
	}
	for i := range attached {
		attached[i].CallID = call.CallID
	}
	if string(rest.Inner("metadata").Get("providerExecuted")) == "true" {
		s.says = append(append(s.says, result), attached...)
		return
	}
	s.results = append(append(s.results, result), attached...)
}

// attachments returns the files of a result.
func attachments(state *history.Taker) []session.Part {
	list, ok := jsonx.ReadArray(state.Get("attachments"))
	if !ok || len(list) > session.MaxParts/8 {
		return nil
	}
	var parts []session.Part
	for _, element := range list {
		o, ok := jsonx.ReadFields(element)
		if !ok {
			return nil // the state keeps them all
		}
		rest := history.Taker{Object: o}
		p := filePart(&rest)
		p.Extra = rest.Column()
		parts = append(parts, p)
	}
	state.Take("attachments")
	return parts
}

// textOf returns the texts of parts, one under the other.
func textOf(parts []part) string {
	var texts []string
	for _, o := range parts {
		if text := o.String("text"); o.String("type") == "text" && text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// withoutHeaders drops the headers of an error but for ids of requests: others may hold cookies.
func withoutHeaders(failure []byte) []byte {
	o, ok := jsonx.ReadFields(failure)
	if !ok {
		return failure
	}
	data, ok := jsonx.ReadFields(o.Get("data"))
	if !ok || data.Get("responseHeaders") == nil {
		return failure
	}
	headers := data.Inner("responseHeaders")
	var kept jsonx.Object
	for _, h := range headers {
		if name := strings.ToLower(h.Key); strings.Contains(name, "request") && strings.HasSuffix(name, "id") {
			kept = append(kept, h)
		}
	}
	data = data.Without("responseHeaders")
	if len(kept) > 0 {
		data = data.With("responseHeaders", kept.Column())
	}
	return o.With("data", data.Value()).Column()
}

// errorText returns in a line why a reply failed.
func errorText(failure []byte) string {
	o, _ := jsonx.ReadFields(failure)
	if text := o.Inner("data").String("message"); text != "" {
		return fmt.Sprintf("%s: %s", o.String("name"), text)
	}
	if text := o.String("message"); text != "" { // of version 2
		return fmt.Sprintf("%s: %s", o.String("type"), text)
	}
	return clean(cmp.Or(o.String("name"), o.String("type")))
}
