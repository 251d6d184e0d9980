package anthropic

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/dialect/wire"
	"sessiond/internal/session"
)

// putServerCall writes a call of a tool that the provider runs, if its id is one of the
// provider's.
func (s *sender) putServerCall(kind, id string, name, input json.RawMessage, fields wire.Object) {
	text, _ := wire.TextOf(name)
	server, _ := wire.TextOf(fields.Get("server_name"))
	rest, own := strings.CutPrefix(id, "srvtoolu_")
	known := kind == typeServerToolUse && own && rest != "" && !strings.Contains(rest, "-") || kind == typeMCPToolUse && server != ""
	if !known || !legal(id) || text == "" || s.ids.Taken(id) {
		s.lose("a call of the provider's own tool, " + wire.Clip(kind) + " " + strconv.Quote(wire.Clip(id)))
		return
	}
	s.ids.Own(id)
	b := sent{kind: kind, id: id}
	var o wire.Object
	o.SetText("type", kind)
	o.SetText("id", id)
	o.SetText("name", text)
	raw, _ := inputOf(string(input))
	o.Set("input", raw)
	if kind == typeMCPToolUse {
		o.SetText("server_name", server)
	} else {
		b.caller = setCaller(&o, fields)
	}
	b.raw = o.JSON()
	s.put(roleAssistant, b)
}

// serverResult writes the result of a tool that the provider ran, its content as it came.
func (s *sender) serverResult(p *session.Part) error {
	x, err := partExtraOf(p)
	if err != nil {
		return err
	}
	content := serverContent(x.Type, x.Fields.Get("content"))
	if content == nil {
		s.lose("a result of the provider's own tool, " + wire.Clip(x.Type))
		return nil
	}
	s.loseBlockFields(x.Type, x.Fields, "content", "caller", "is_error")
	b := sent{kind: x.Type, id: p.CallID}
	var o wire.Object
	o.SetText("type", x.Type)
	o.SetText("tool_use_id", p.CallID)
	o.Set("content", content)
	switch failed := x.Fields.Get("is_error"); x.Type {
	case typeMCPToolResult:
		if k := wire.KindOf(failed); k == 't' || k == 'f' {
			o.Set("is_error", failed)
		}
	case typeWebSearchResult, typeWebFetchResult:
		b.caller = setCaller(&o, x.Fields)
	}
	b.raw = o.JSON()
	s.put(roleAssistant, b)
	return nil
}

// setCaller copies who called a tool, if it was a program of the model's, and gives its id.
// That the model itself called is the default.
func setCaller(o *wire.Object, fields wire.Object) string {
	raw := fields.Get("caller")
	caller, err := wire.ParseObject("", raw)
	if err != nil {
		return ""
	}
	id, _ := wire.TextOf(caller.Get("tool_id"))
	kind, _ := wire.TextOf(caller.Get("type"))
	if id != "" && caller.Len() == 2 && strings.HasPrefix(kind, "code_execution_") {
		o.Set("caller", cleanJSON(raw))
		return id
	}
	return ""
}

// serverContent gives the content of a result of the provider's own tool as the API takes it
// back: hits of a search, an object of the tool's types, text of an MCP server. It is nil for
// any other.
func serverContent(kind string, raw json.RawMessage) json.RawMessage {
	o, err := wire.ParseObject("", raw)
	if err == nil {
		of, _ := wire.TextOf(o.Get("type"))
		if slices.Contains(serverContentTypes(kind), of) {
			return cleanJSON(raw)
		}
		return nil
	}
	switch {
	case kind == typeMCPToolResult && wire.KindOf(raw) == '"':
		return cleanJSON(raw)
	case kind == typeMCPToolResult && wire.KindOf(raw) == '[':
		return wire.AppendArray(nil, texts(raw))
	case kind == typeWebSearchResult && wire.KindOf(raw) == '[':
		return hits(raw)
	}
	return nil
}

// serverContentTypes lists the types that the content of a result may have.
func serverContentTypes(kind string) []string {
	switch kind {
	case typeWebSearchResult:
		return []string{"web_search_tool_result_error"}
	case typeWebFetchResult:
		return []string{"web_fetch_result", "web_fetch_tool_result_error"}
	case "code_execution_tool_result":
		return []string{"code_execution_result", "encrypted_code_execution_result", "code_execution_tool_result_error"}
	case "bash_code_execution_tool_result":
		return []string{"bash_code_execution_result", "bash_code_execution_tool_result_error"}
	case "text_editor_code_execution_tool_result":
		return []string{"text_editor_code_execution_view_result", "text_editor_code_execution_create_result", "text_editor_code_execution_str_replace_result", "text_editor_code_execution_tool_result_error"}
	case "tool_search_tool_result":
		return []string{"tool_search_tool_search_result", "tool_search_tool_result_error"}
	case "advisor_tool_result":
		return []string{"advisor_result", "advisor_redacted_result", "advisor_tool_result_error"}
	}
	return nil
}

// hits gives what a web search found, with the fields that a request may have; nil if one of
// them is none.
func hits(raw json.RawMessage) json.RawMessage {
	list, err := wire.ParseArray("", raw)
	if err != nil {
		return nil
	}
	out := make([]json.RawMessage, 0, len(list))
	for _, r := range list {
		hit, err := wire.ParseObject("", r)
		kind, _ := wire.TextOf(hit.Get("type"))
		if err != nil || kind != "web_search_result" {
			return nil
		}
		var o wire.Object
		o.SetText("type", kind)
		for _, f := range []string{"url", "title", "encrypted_content"} {
			text, _ := wire.TextOf(hit.Get(f))
			if wire.KindOf(hit.Get(f)) != '"' || text == "" && f != "title" {
				return nil
			}
			o.Set(f, cleanJSON(hit.Get(f)))
		}
		if age := hit.Get("page_age"); wire.KindOf(age) == '"' {
			o.Set("page_age", cleanJSON(age))
		}
		out = append(out, o.JSON())
	}
	return wire.AppendArray(nil, out)
}
