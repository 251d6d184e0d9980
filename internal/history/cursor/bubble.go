package cursor

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// bubble is one piece of a conversation in the editor: a prompt, a text, a thought, or a call with its result.
type bubble struct {
	jsonx.Object

	id    string
	tool  jsonx.Object // toolFormerData; of the oldest conversations it lies elsewhere
	model string       // of the conversation
}

const (
	bubbleOfPerson = 1
	capabilityTool = 15
)

func (b *bubble) number(key string) float64 {
	n, _ := history.Number(b.Get(key))
	return n
}

// at returns when the bubble was made; zero: the bubble does not say. clientStartTime may count from the start of
// the program, so it is no date below a trillion.
func (b *bubble) at() session.Time {
	if at := history.TimeOf(b.Get("createdAt")); !at.IsZero() {
		return at
	}
	timing := b.Inner("timingInfo")
	for _, key := range []string{"clientRpcSendTime", "clientSettleTime", "clientEndTime", "clientStartTime"} {
		if ms, ok := history.Number(timing.Get(key)); ok && ms >= 1e12 {
			return history.TimeOf(timing.Get(key))
		}
	}
	return session.Time{}
}

// thoughts returns what the model thought before it said what the bubble holds.
func (b *bubble) thoughts() (parts []session.Part) {
	add := func(o jsonx.Object) {
		if text := cmp.Or(o.String("text"), o.String("thinking")); text != "" {
			p := session.Part{Kind: session.PartReasoning, Text: text, Extra: o.Only("signature").Column()}
			parts = append(parts, p)
		}
	}
	if add(b.Inner("thinking")); len(parts) > 0 {
		return parts
	}
	blocks, _ := jsonx.ReadArray(b.Get("allThinkingBlocks"))
	for _, block := range blocks {
		o, _ := jsonx.ReadFields(block)
		add(o)
	}
	return parts
}

// items makes the messages of a bubble: what it says, and the result of its call. There are none of one that says
// nothing.
func (b *bubble) items() []history.Item {
	item := history.Item{Key: b.id, Extra: b.Only("requestId", "serverBubbleId", "checkpointId", "errorDetails")}
	if images, _ := jsonx.ReadArray(b.Get("images")); len(images) > 0 {
		item.Extra = item.Extra.With("images", b.Get("images"))
	}
	var parts []session.Part
	if text := b.String("text"); text != "" {
		parts = append(parts, session.TextPart(text))
	}
	if b.number("type") == bubbleOfPerson {
		if len(parts) == 0 && len(b.Get("images")) < 3 {
			return nil
		}
		item.Message = history.Say(session.User, b.at(), parts...)
		return []history.Item{item}
	}
	parts = append(b.thoughts(), parts...)
	var result *session.Part
	if name, id := b.tool.String("name"), b.tool.String("toolCallId"); name != "" || id != "" {
		arguments := b.tool.Get("rawArgs")
		if text, _ := jsonx.Text(arguments); jsonx.IsNull(arguments) || jsonx.KindOf(arguments) == '"' && text == "" {
			arguments = b.tool.Get("params")
		}
		parts, result = append(parts, history.CallPart(id, name, arguments)), b.result(id, name)
	}
	if len(parts) == 0 {
		return nil
	}
	item.Message = history.Say(session.Assistant, b.at(), parts...)
	if model := b.Inner("modelInfo").String("modelName"); model != "" {
		item.Message.Model = modelOf(model)
	} else {
		item.Message.Model = modelOf(cmp.Or(b.String("modelType"), b.model))
	}
	item.Calls = b.usage(item.Message.Model)
	item.Open = b.isOpen()
	if result == nil {
		return []history.Item{item}
	}
	answer := history.Item{Key: b.id + "#result", NoRecords: true, Message: history.Say(session.Tool, b.at(), *result)}
	answer.Extra = b.tool.Only("status", "userDecision")
	return []history.Item{item, answer}
}

// isOpen reports whether a call has not ended.
func (b *bubble) isOpen() bool {
	switch b.tool.String("status") {
	case "loading", "pending", "streaming":
		return true
	}
	return false
}

// result makes the result of the bubble's call; nil: it has none, since the call never ended.
func (b *bubble) result(id, name string) *session.Part {
	text := resultText(b.tool.Get("result"))
	failed := false
	switch status := b.tool.String("status"); {
	case b.tool.String("userDecision") == "rejected":
		text, failed = cmp.Or(text, "rejected by the user"), true
	case status == "error", !jsonx.IsNull(b.tool.Get("error")):
		text, failed = cmp.Or(resultText(b.tool.Get("error")), text), true
	case status == "cancelled":
		text, failed = cmp.Or(text, "cancelled"), true
	case status == "completed" || text != "":
	default:
		return nil
	}
	p := history.ResultPart(id, name, text, &failed)
	return &p
}

// resultText returns what a result says: its text, where it has one, else the JSON that Cursor keeps.
func resultText(raw jsontext.Value) string {
	text, isText := jsonx.Text(raw)
	if !isText {
		text = string(raw)
	}
	o, ok := jsonx.ReadObject([]byte(text))
	if !ok {
		if text == "null" {
			return ""
		}
		return text
	}
	if string(o.Get("rejected")) == "true" {
		return strings.TrimSpace("rejected by the user\n" + o.String("output"))
	}
	for _, key := range []string{"contents", "output", "modelVisibleErrorMessage", "clientVisibleErrorMessage"} {
		if said := o.String(key); said != "" {
			return said
		}
	}
	return text
}

// usage returns the row of the ledger of a bubble that counts tokens: at most the last one of a turn does.
func (b *bubble) usage(model string) []history.Call {
	count := b.Inner("tokenCount")
	c := call(b.id, b.at())
	c.InputTokens, c.OutputTokens = history.Count(count.Get("inputTokens")), history.Count(count.Get("outputTokens"))
	if c.InputTokens+c.OutputTokens == 0 {
		return nil
	}
	c.Model, c.Sum = model, true // whether the input is that of all requests of the turn is not known
	c.Metadata = session.JSONOf(map[string]string{"reported": "by Cursor, without the part that came from a cache"})
	return []history.Call{c}
}

// costs returns the rows of what Cursor says that a conversation cost, a model each, without tokens.
func costs(composer string, data jsonx.Object, at session.Time) (calls []history.Call) {
	for _, m := range data.Inner("usageData") {
		usage, _ := jsonx.ReadFields(m.Value)
		cents, ok := history.Number(usage.Get("costInCents"))
		amount := history.Count(usage.Get("amount"))
		if !ok || cents <= 0 && amount == 0 {
			continue
		}
		nano, ok := history.NanoUSD([]byte(strconv.FormatFloat(cents/100, 'f', -1, 64)))
		if !ok {
			continue
		}
		c := call(composer+":"+m.Key, at)
		c.Model, c.CostNanoUSD, c.Requests, c.Sum = modelOf(m.Key), &nano, amount, true
		calls = append(calls, c)
	}
	return calls
}
