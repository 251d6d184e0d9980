package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/dialect"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// item is an item of a conversation: one of those that a message is in the dialect.
type item struct {
	id      string
	message session.MessageRef
	parts   []int // of the message
	whole   bool  // the message is this item alone
	json    jsontext.Value
}

// itemPrefixes begin the ids of items that came without one. Of other types it is item.
var itemPrefixes = map[string]string{
	"message": "msg", "reasoning": "rs", "compaction": "cmp",
	"function_call": "fc", "function_call_output": "fco", "custom_tool_call": "ctc", "custom_tool_call_output": "ctco",
	"web_search_call": "ws", "file_search_call": "fs", "code_interpreter_call": "ci", "image_generation_call": "ig",
	"computer_call": "cu", "computer_call_output": "cuo", "local_shell_call": "lsh", "local_shell_call_output": "lsho",
	"shell_call": "sh", "shell_call_output": "sho", "apply_patch_call": "apc", "apply_patch_call_output": "apco",
	"mcp_call": "mcp", "mcp_list_tools": "mcpl", "mcp_approval_request": "mcpr", "mcp_approval_response": "mcpa",
	"tool_search_call": "tsc", "tool_search_output": "tso",
}

// madeID returns the id of the n-th item of a message, from 0.
func madeID(kind string, ref session.MessageRef, n int) string {
	prefix := itemPrefixes[kind]
	if prefix == "" {
		prefix = "item"
	}
	id := fmt.Sprintf("%s_%s_%d", prefix, ref.Session, ref.Seq)
	if n > 0 {
		id += "_" + strconv.Itoa(n+1)
	}
	return id
}

// parseMadeID returns the message that a made id names.
func parseMadeID(id string) (ref session.MessageRef, is bool) {
	const least, most = 4, 5 // msg_20260211_001_42 and msg_20260211_001_42_2
	words := strings.Split(id, "_")
	if len(words) < least || len(words) > most {
		return ref, false
	}
	ref, err := session.ParseRef(words[1] + "_" + words[2] + "." + words[3])
	return ref, err == nil
}

// itemsOf returns the items of a message. Codes: Invalid.
func itemsOf(m *session.Message) ([]item, error) {
	exported, err := dialect.Export(dialect.OpenAIResponses, []session.Message{*m})
	if err != nil {
		return nil, err
	}
	var all []item
	for _, raw := range exported {
		o, _ := jsonx.ReadObject(raw)
		if output, ok := jsonx.ReadArray(o.Get("output")); ok && o.String("object") == "response" {
			for _, inner := range output {
				all = append(all, newItem(m, inner, len(all)))
			}
			continue
		}
		all = append(all, newItem(m, raw, len(all)))
	}
	for i := range all {
		if all[i].whole = len(all) == 1; !all[i].whole {
			all[i].parts = partsOfItem(m, all, i)
		}
	}
	return all, nil
}

// newItem gives an item the fields that OpenAI's API answers beside those that a client must send.
func newItem(m *session.Message, raw jsontext.Value, n int) item {
	o, _ := jsonx.ReadObject(raw)
	kind := o.String("type")
	if kind == "" && o.Has("role") {
		kind = "message"
		o.SetText("type", kind)
	}
	id := o.String("id")
	if id == "" || isFakeID(id) {
		id = madeID(kind, m.ID, n)
		o.SetText("id", id)
	}
	switch kind {
	case "message":
		o.Set("content", contentOf(o.Get("content"), o.String("role")))
		setStatus(&o)
	case "function_call", "function_call_output":
		setStatus(&o)
	case "reasoning":
		if jsonx.KindOf(o.Get("summary")) != '[' {
			o.Set("summary", jsontext.Value(`[]`))
		}
	}
	return item{id: id, message: m.ID, json: o.Value()}
}

func setStatus(o *jsonx.Object) {
	if jsonx.KindOf(o.Get("status")) != '"' {
		o.SetText("status", "completed")
	}
}

// isFakeID knows the ids that OpenAI's Agents SDKs give the items of models without the Responses API.
func isFakeID(id string) bool { return id == "__fake_id__" || id == "FAKE_ID" }

// contentOf returns the content of a message as a list.
func contentOf(content jsontext.Value, role string) jsontext.Value {
	kind := "input_text"
	if role == "assistant" {
		kind = "output_text"
	}
	elements, isList := jsonx.ReadArray(content)
	switch {
	case isList:
	case jsonx.KindOf(content) == '"':
		text := jsonx.NewObject("type", kind)
		text.Set("text", content)
		elements = []jsontext.Value{text.Value()}
	}
	for i, raw := range elements {
		if o, ok := jsonx.ReadObject(raw); ok && o.String("type") == "output_text" && !o.Has("annotations") {
			o.Set("annotations", jsontext.Value(`[]`))
			elements[i] = o.Value()
		}
	}
	return jsonx.Array(elements)
}

// partsOfItem returns the parts that the i-th of several items of a message is made of, by their index.
func partsOfItem(m *session.Message, all []item, i int) (parts []int) {
	if m.Dialect == dialect.OpenAIResponses {
		n := -1
		for j := range m.Parts {
			if extra, _ := jsonx.ReadObject(m.Parts[j].Extra); extra.Has("item") {
				n++
			}
			if max(n, 0) == i {
				parts = append(parts, j)
			}
		}
		return parts
	}
	o, _ := jsonx.ReadObject(all[i].json)
	kind, call := o.String("type"), o.String("call_id")
	for j := range m.Parts {
		p, is := &m.Parts[j], false
		switch p.Kind {
		case session.PartToolCall:
			is = strings.HasSuffix(kind, "_call") && p.CallID == call
		case session.PartToolResult:
			is = strings.HasSuffix(kind, "_output") && p.CallID == call
		case session.PartReasoning:
			is = kind == "reasoning"
		default:
			is = kind == "message"
		}
		if is {
			parts = append(parts, j)
		}
	}
	return parts
}

// hides reports whether an item is left out.
func hides(h store.Hidden, it *item) bool {
	if h.Has(it.message, -1) { // all of the message
		return true
	}
	return len(it.parts) > 0 && !slices.ContainsFunc(it.parts, func(p int) bool { return !h.Has(it.message, p) })
}

// decodeItems decodes items, each to a message of its own. Codes: Malformed, Invalid, TooLarge.
func decodeItems(raw []jsontext.Value) ([]session.Message, error) {
	if len(raw) > mostItems {
		return nil, session.Errorf(session.Invalid,
			"Invalid 'items': array too long. Expected an array with maximum length %d, but got an array with length %d "+
				"instead.",
			mostItems, len(raw)).At("items", "too long")
	}
	msgs := make([]session.Message, 0, len(raw))
	ids := map[string]bool{}
	for i, r := range raw {
		path := jsonx.Index("items", i)
		decoded, err := dialect.Decode(dialect.OpenAIResponses, raw[i:i+1])
		if err != nil {
			return nil, atItem(path, err)
		}
		o, _ := jsonx.ReadObject(r)
		if kind := o.String("type"); kind == "item_reference" || kind == "" && !o.Has("role") || len(decoded.Messages) != 1 {
			return nil, session.Errorf(session.Invalid,
				"%s is no item of its own: send the item itself, not a reference or a response", path).At(path, "no item")
		}
		m := decoded.Messages[0]
		if id := o.String("id"); id != "" && !isFakeID(id) {
			if ids[id] {
				return nil, duplicateItem(id)
			}
			m.ExternalID, ids[id] = id, true
		}
		msgs = append(msgs, m)
	}
	return msgs, nil
}

// atItem names the item in an error about the messages of a request.
func atItem(path string, err error) error {
	const only = "messages[0]"
	known, is := err.(*session.Error) //nolint:errorlint // of the decoder
	if !is {
		return err
	}
	moved := session.Errorf(known.Code, "%s", strings.Replace(known.Message, only, path, 1))
	for _, f := range known.Fields {
		moved.Fields = append(moved.Fields,
			session.FieldError{Path: strings.Replace(f.Path, only, path, 1), Message: f.Message})
	}
	return moved
}

func duplicateItem(id string) error {
	return session.Errorf(session.Invalid,
		"Duplicate item found with id %s. Remove duplicate items from your input and try again.", jsonx.Clip(id)).
		At("items", "duplicate")
}
