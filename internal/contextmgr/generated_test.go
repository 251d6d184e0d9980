package contextmgr_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/testkit/dialecttest"

	"pgregory.net/rapid"
)

// talker generates a conversation with the faults that agents produce.
type talker struct {
	*desk
	t    *rapid.T
	id   session.ID
	open []string // calls that wait for a result
	log  []session.Message
	n    int

	sent  []string // the last context on the wire
	epoch int64
}

// grows checks the prefix rule on the wire: within an epoch a context only grows at its end, or the
// answer says what broke the prefix.
func (k *talker) grows(at string, v contextmgr.View) {
	if len(v.Pending) > 0 {
		return
	}
	if last := len(v.Messages) - 1; last >= 0 && v.Messages[last].Role == session.Assistant {
		return // a reply to continue: Anthropic rejects spaces at its end, and only there
	}
	sent := dialecttest.Flat(k, v.Dialect, k.request(v))
	same := len(sent) >= len(k.sent) && slices.Equal(sent[:min(len(sent), len(k.sent))], k.sent)
	if k.sent != nil && !same && v.Prefix.Epoch == k.epoch && v.Prefix.BrokenBy == "" {
		k.t.Fatalf("%s: in epoch %d the context sent before is no prefix of this one:\n%.3000s\n%.3000s", at, k.epoch, k.sent, sent)
	}
	k.sent, k.epoch = sent, v.Prefix.Epoch
}

func (k *talker) say(m session.Message) {
	m.InContext, m.Display = true, true
	if m.Kind == "" {
		m.Kind = session.KindMessage
	}
	k.log = append(k.log, k.follow(k.id, m)...)
}

// words returns a numbered text of a kind that histories hold.
func (k *talker) words(most int) string {
	k.n++
	pieces := []string{"Please look at the parser and tell me what fails. ", "internal/store/append.go:42: undefined: foo\n", "価格は129ドルです。確認してください。", "{\"id\":\"a3f9-22\",\"n\":[1,2,3]}", "\t\tif err != nil { return err }\n", "🦓🎷 "}
	piece := rapid.SampledFrom(pieces).Draw(k.t, "piece")
	size := rapid.SampledFrom([]int{0, 1, 10, 200, most}).Draw(k.t, "size")
	return fmt.Sprintf("#%d %s", k.n, strings.Repeat(piece, 1+size/len(piece)))
}

func (k *talker) person() {
	m := session.Message{Role: session.User, Origin: session.Person, Parts: []session.Part{session.TextPart(k.words(20000))}}
	if rapid.IntRange(0, 4).Draw(k.t, "image") == 0 {
		png, _ := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")
		m.Parts = append(m.Parts, session.Part{Kind: session.PartImage, Blob: &session.Blob{MediaType: "image/png", Data: png}})
	}
	k.say(m)
}

// program adds a program's message in the user's role, like a heartbeat or a hook.
func (k *talker) program() {
	kind := rapid.SampledFrom([]session.Kind{session.KindMessage, session.KindCustomMessage, session.KindBash, session.KindBranchSummary}).Draw(k.t, "kind")
	k.say(session.Message{Kind: kind, Role: session.User, Origin: session.Program, Parts: []session.Part{session.TextPart(k.words(5000))}})
}

func (k *talker) reply() {
	m := session.Message{Role: session.Assistant, Origin: session.Model, Finish: session.FinishStop}
	if rapid.IntRange(0, 3).Draw(k.t, "thinks") == 0 {
		m.Parts = append(m.Parts, session.Part{Kind: session.PartReasoning, Text: k.words(500)})
	}
	if rapid.Bool().Draw(k.t, "text") {
		m.Parts = append(m.Parts, session.TextPart(k.words(8000)))
	}
	for range rapid.IntRange(0, 3).Draw(k.t, "calls") {
		k.n++
		id := fmt.Sprintf("call_%d", k.n)
		m.Parts = append(m.Parts, session.Part{Kind: session.PartToolCall, CallID: id, ToolName: "write", Arguments: string(session.JSONOf(map[string]string{"text": k.words(40000)}))})
		m.Finish = session.FinishToolCalls
		k.open = append(k.open, id)
	}
	if rapid.IntRange(0, 7).Draw(k.t, "fails") == 0 {
		m.Finish = rapid.SampledFrom([]session.Finish{session.FinishError, session.FinishAborted}).Draw(k.t, "how")
		k.open = nil
	}
	k.say(m)
}

// result answers a pending call, sometimes twice, or a call that was never made.
func (k *talker) result() {
	id := "nobody"
	if len(k.open) > 0 {
		i := rapid.IntRange(0, len(k.open)-1).Draw(k.t, "which")
		if id = k.open[i]; rapid.IntRange(0, 5).Draw(k.t, "twice") > 0 {
			k.open = slices.Delete(k.open, i, i+1)
		}
	}
	m := session.Message{Role: session.Tool, Origin: session.ByTool, Parts: []session.Part{{Kind: session.PartToolResult, CallID: id, ToolName: "write", Text: k.words(60000)}}}
	if rapid.IntRange(0, 5).Draw(k.t, "empty") == 0 {
		m.Parts[0].Text = ""
	}
	k.say(m)
}

// Whatever agents, tools and programs leave in a history, the provider accepts its context, it fits,
// and it holds everything required.
func TestContextsOfGeneratedHistories(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	longest := 18
	if testing.Short() {
		longest = 4
	}
	rapid.Check(t, func(rt *rapid.T) {
		k := &talker{desk: d, t: rt, id: d.begin()}
		window := rapid.SampledFrom([]int64{4000, 8000, 32000}).Draw(rt, "window")
		preset := rapid.SampledFrom(contextmgr.PresetNames()).Draw(rt, "preset")
		form := rapid.SampledFrom(dialecttest.Forms()).Draw(rt, "form")
		budget := contextmgr.Budget{Dialect: form, Window: window, CloseCalls: true, Settings: contextmgr.Settings{Preset: &preset}}
		k.person()
		for step := range rapid.IntRange(3, longest).Draw(rt, "steps") {
			rapid.SampledFrom([]func(){k.person, k.program, k.program, k.reply, k.reply, k.reply, k.result, k.result, k.result}).Draw(rt, "step")()
			at := fmt.Sprintf("step %d, %s, window %d, preset %s", step, form, window, preset)
			v, err := d.mgr.Assemble(d.Context(), k.id, budget)
			if err != nil {
				rt.Fatalf("%s: %v", at, err)
			}
			w := wanted(k.log)
			w.made = true
			d.check(at, v, w)
			if rapid.IntRange(0, 2).Draw(rt, "turn") > 0 {
				continue
			}
			in := contextmgr.TurnInput{Budget: budget, Volatile: rapid.SampledFrom([]string{"", "", "It is Monday.", "It is Tuesday."}).Draw(rt, "volatile")}
			in.CloseCalls = rapid.Bool().Draw(rt, "close")
			if v, err = d.mgr.Turn(d.Context(), k.id, in); err != nil {
				rt.Fatalf("%s: %v", at, err)
			}
			d.check(at+", handed out", v, w)
			k.grows(at, v)
		}
	})
}
