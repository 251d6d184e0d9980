package copilotcli

import (
	"cmp"
	"slices"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// said adds what the program, a person or the model says in one text.
func (r *reader) said(st *stream, e *event) {
	var d said
	if !e.decode(&d) {
		r.keepRaw(st, e)
		return
	}
	text := plain(d.Content)
	switch {
	case e.Type == "assistant.reasoning" && text != "" && text == st.reasoned:
		r.in.Skip(skipReasoning, 1)
	case e.Type == "assistant.reasoning":
		r.add(st, e, func() history.Decoded {
			m := e.message(session.KindCustom, "", session.Model, "content")
			m.Parts = []session.Part{{Kind: session.PartReasoning, Text: text}}
			return history.Alone(m)
		})
	case e.Type == "system.message" && st.prompts[text]:
		r.in.Skip(skipPrompt, 1)
	case e.Type == "system.message": // the model of another program must not get it
		st.prompts[text] = true
		r.add(st, e, func() history.Decoded {
			m := e.message(session.KindMessage, session.System, session.Program, "content")
			m.Parts, m.InContext, m.Display = []session.Part{session.TextPart(text)}, false, false
			return history.Alone(m)
		})
	default:
		r.say(st, e, func() session.Message {
			held := []string{"content"}
			pictures, all := d.pictures()
			if all {
				held = append(held, "attachments")
			}
			m := e.message(session.KindMessage, session.User, session.Person, held...)
			if text == "" && pictures == nil || d.Source != "" || st != r.main {
				m.Origin = session.Program
			}
			if said := cmp.Or(text, plain(d.Transformed)); text != "" || pictures == nil {
				m.Parts = []session.Part{session.TextPart(said)}
			}
			m.Parts = append(m.Parts, pictures...)
			return m
		})
	}
}

// reply is a reply, joined of its chunks. Most have one.
type reply struct {
	replied
	event *event  // of the last chunk
	lines []int64 // offsets of the chunks
}

// reply reads a reply, or a chunk of one.
func (r *reader) reply(st *stream, e *event) {
	o := &reply{event: e}
	ok := e.decode(&o.replied)
	if before := st.open; before != nil && (!ok || before.MessageID != o.MessageID || o.ChunkIndex <= before.ChunkIndex) {
		r.closeReply(st)
	}
	if !ok {
		r.keepRaw(st, e)
		return
	}
	r.ledger.output += o.Output
	if before := st.open; before != nil {
		o.Content, o.Reasoning = before.Content+o.Content, before.Reasoning+o.Reasoning
		o.Opaque, o.Encrypted = before.Opaque+o.Opaque, before.Encrypted+o.Encrypted
		o.Calls, o.lines = append(before.Calls, o.Calls...), before.lines
		r.ledger.output -= min(before.Output, o.Output) // each chunk tells that of the reply
	}
	o.lines = append(o.lines, e.Line.At)
	if st.open = o; o.ChunkIndex+1 < o.ChunkCount {
		return
	}
	r.closeReply(st)
}

// closeReply adds the open reply of a stream, with the usage record before it.
func (r *reader) closeReply(st *stream) {
	o := st.open
	if o == nil {
		return
	}
	st.open, st.reasoned = nil, plain(o.Reasoning)
	var charged *history.Call
	if st.api == o.APICall || st.api == "" || o.APICall == "" {
		charged, st.call = st.call, nil
	}
	r.settle(st)
	for i := range o.Calls {
		r.expect(st, o.event, &o.Calls[i])
	}
	entry := o.event.Entry(st.tip, func() history.Decoded { return o.decode(charged) })
	entry.Records = len(o.lines)
	st.Silent, st.spoken, st.tip = "", append(st.spoken, o.event.Key), o.event.Key
	st.Add(entry)
}

// decode makes the message of a reply. charged is its ledger row, if a usage record told it.
func (o *reply) decode(charged *history.Call) history.Decoded {
	m := o.event.message(session.KindMessage, session.Assistant, session.Model, "content", "model", "toolRequests",
		"reasoningText", "reasoningOpaque", "encryptedContent")
	m.Provider, m.Model, m.Finish = provider, plain(o.Model), session.FinishStop
	if o.Reasoning+o.Opaque+o.Encrypted != "" {
		p := session.Part{Kind: session.PartReasoning, Text: plain(o.Reasoning)}
		if o.Opaque+o.Encrypted != "" {
			p.Extra = session.JSONOf(map[string]string{"reasoningOpaque": o.Opaque, "encryptedContent": o.Encrypted})
		}
		m.Parts = append(m.Parts, p)
	}
	if o.Content != "" {
		m.Parts = append(m.Parts, session.TextPart(plain(o.Content)))
	}
	for i := range o.Calls {
		m.Parts, m.Finish = append(m.Parts, o.Calls[i].part()), session.FinishToolCalls
	}
	m.InContext = len(m.Parts) > 0
	if charged == nil {
		return history.Alone(m)
	}
	m.Provider, charged.MessageKey = charged.Provider, o.event.Key
	d := history.Alone(m)
	d.Calls = []history.Call{*charged}
	return d
}

// expect notes a call that an event holds.
func (r *reader) expect(st *stream, e *event, c *call) {
	c.by, c.key = st, e.Key
	st.calls[c.ID], r.calls[c.ID] = c, c
}

// part makes the part of a call.
func (c *call) part() session.Part {
	p := session.Part{
		Kind: session.PartToolCall, CallID: plain(c.ID), ToolName: plain(cmp.Or(c.Name, c.ToolName)),
		Arguments: string(c.Arguments),
	}
	extra := jsonx.Object{}.WithRest("rest", c.Rest)
	if text, ok := jsonx.Text(c.Arguments); ok {
		p.Arguments, extra = text, append(extra, jsonx.MemberOf("arguments", "text"))
	}
	p.Extra = extra.Column()
	return p
}

// prompt is what a call asks of a sub-agent.
func (c *call) prompt() string {
	arguments, _ := jsonx.ReadObject([]byte(c.part().Arguments))
	return arguments.String("prompt")
}

// callBegan reads the start of a call. That of a call which no reply asked for is the call itself.
func (r *reader) callBegan(st *stream, e *event) {
	var d call
	if !e.decode(&d) || d.ID == "" {
		r.keepRaw(st, e)
		return
	}
	if c := st.calls[d.ID]; c != nil && !c.answered {
		if c.start != nil {
			e.Note = "the call has begun before"
			r.aside(st, e)
			return
		}
		c.start, c.started = e, d.Rest
		r.in.Skip(skipStart, 1)
		return
	}
	d.start = e
	r.expect(st, e, &d)
	r.say(st, e, func() session.Message {
		m := e.message(session.KindMessage, session.Assistant, session.Program, "toolCallId", "toolName", "arguments")
		m.Parts, m.Finish = []session.Part{d.part()}, session.FinishToolCalls
		m.Parts[0].Extra = nil // the message has it
		return m
	})
}

// callEnded adds the result of a call. The first result counts: one of no open call is kept beside
// the conversation.
func (r *reader) callEnded(st *stream, e *event) {
	var d completed
	if !e.decode(&d) {
		r.keepRaw(st, e)
		return
	}
	c := st.calls[d.ID]
	if c == nil || c.answered {
		e.Note = "no call is open that it answers"
		r.aside(st, e)
		return
	}
	c.answered = true
	r.say(st, e, func() session.Message {
		m := e.message(session.KindMessage, session.Tool, session.ByTool, "toolCallId", "success", "result", "error")
		p := session.Part{Kind: session.PartToolResult, CallID: plain(d.ID), ToolName: plain(cmp.Or(c.Name, c.ToolName))}
		p.Extra = jsonx.Object{}.WithRest("result", d.Result.Rest).WithRest("error", d.Error.Rest).WithRest("start",
			c.started).Column()
		if d.Success != nil {
			p.IsError = new(!*d.Success)
		}
		switch d.Result.Content.Kind() {
		case '"':
			p.Text, _ = jsonx.Text(d.Result.Content)
		case '{', '[', '0', 't', 'f':
			p.Text = history.Plain(d.Result.Content)
		}
		if p.Text != "" && d.Error.Message != "" {
			p.Text += "\n"
		}
		p.Text += plain(d.Error.Message)
		if c.start != nil && c.start.Timed && e.Timed && !e.Time.Before(c.start.Time.Time) {
			p.DurationMS = new(e.Time.Sub(c.start.Time.Time).Milliseconds())
		}
		m.Parts = []session.Part{p}
		return m
	})
	c.start, c.started, c.Arguments = nil, nil, nil // a long session has many calls
}

// compaction makes an overlay of a compaction. It keeps what was said while it ran, and the newest
// messages that its numbers say were not removed.
func (r *reader) compaction(st *stream, e *event) {
	var d compacted
	if !e.decode(&d) {
		r.keepRaw(st, e)
		return
	}
	kept := 0
	if st.begun >= 0 {
		kept = len(st.spoken) - st.begun
	}
	if d.Removed > 0 {
		kept = max(kept, d.Messages-1-d.Removed)
	}
	first := max(0, len(st.spoken)-kept)
	add, used := history.Alone(session.Message{}), d.Used.call(r, e, session.PurposeSummary)
	if d.Success && d.Summary != "" && (kept == 0 || first > 0) {
		c := history.Compaction{Key: e.Key, ThroughKey: e.Key}
		c.CreatedAt, c.Summary, c.TokensBefore, c.TokensAfter = e.Time, plain(d.Summary), int64(d.Before), int64(d.After)
		c.Model, c.Provider, c.DurationMS, c.MessageCount = used.Model, used.Provider, int64(d.Used.Duration),
			int64(d.Removed)
		if kept > 0 {
			c.ThroughKey, c.FirstKeptKey = st.spoken[first-1], st.spoken[first]
		}
		add.Compactions = []history.Compaction{c}
		st.spoken = slices.Clone(st.spoken[first:])
	}
	st.begun = -1
	if used.MessageKey = e.Key; used.ContextTokens() > 0 {
		add.Calls = []history.Call{used}
	}
	r.add(st, e, func() history.Decoded {
		m := e.message(session.KindMarker, "", session.Program, "summaryContent")
		m.Parts = []session.Part{session.TextPart(plain(d.Summary))}
		add.Messages[0].Message = m
		return add
	})
}
