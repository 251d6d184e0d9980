package mcp

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

const (
	aroundText = `Read a found message and its neighbours: what came of it. For a passage ` +
		`of {search} that is cut or needs its context.`
	readText = `Read a session. Without messages: its prompts by number. messages "12-30": that range; "27": that ` +
		`message whole, with all arguments and output of its tool calls.`
)

type aroundArgs struct {
	common
	Message string `json:"message" jsonschema:"id, like 20260112_001.27"`
	N       int    `json:"n,omitempty" jsonschema:"on each side, default 3"`
}

func (c *call) around(ctx context.Context, in aroundArgs) error {
	ref, err := session.ParseRef(strings.TrimSpace(in.Message))
	if err != nil {
		return err
	}
	sess, err := c.session(ctx, ref.Session)
	if session.CodeOf(err) == session.NotFound { // a fork may keep messages of a purged session
		if heir, none := c.Store.Heir(ctx, ref); none == nil {
			sess, err = c.session(ctx, heir.ID)
		}
	}
	if err != nil {
		return err
	}
	n := clamp(in.N, 3, 20)
	msgs, err := c.Store.MessagesAround(ctx, ref, n, n)
	if err != nil {
		return err
	}
	if len(msgs) == 0 {
		return session.Errorf(session.NotFound, "session %s has no message %d: its last is %d", ref.Session, ref.Seq,
			sess.LastSeq)
	}
	items, err := itemsOf(sess, msgs)
	if err != nil {
		return err
	}
	at := max(0, slices.IndexFunc(items, func(i *transcript.Item) bool {
		return i.Ref.Seq >= ref.Seq || hasResult(i, ref)
	}))
	c.body.WriteString(c.describe(&sess))
	c.left -= c.count.Text(c.body.String())
	// The message first, then its neighbours, the nearest first.
	room, from, to := c.left, at, at
	quotes := make([]string, len(items))
	fits := func(i int, most int64) bool {
		if i < 0 || i >= len(items) {
			return false
		}
		quotes[i] = c.item(items[i], most)
		tokens := c.count.Text(quotes[i])
		if tokens > room {
			return false
		}
		room -= tokens
		return true
	}
	fits(at, c.left*2/3)
	share := max(80, room/int64(max(1, len(items)-1)))
	for before, after := true, true; before || after; {
		if before = before && fits(from-1, share); before {
			from--
		}
		if after = after && fits(to+1, share); after {
			to++
		}
	}
	for _, q := range quotes[from : to+1] {
		c.add(q)
	}
	first, last := items[from].Ref.Seq, items[to].Ref.Seq
	c.say("Message %s and its neighbours:", ref)
	if left := len(items) - (to + 1 - from); left > 0 {
		c.note("Left out for want of room: %d of the messages around; a larger max_tokens shows them.", left)
	}
	c.note("Before: {read_session}(session: %q, messages: \"%d-%d\"%s). After: messages: \"%d-%d\".", sess.ID,
		max(1, first-10), max(1, first-1), c.alike(), last+1, last+10)
	return nil
}

func clamp(n, otherwise, most int) int {
	if n <= 0 {
		return otherwise
	}
	return min(n, most)
}

func hasResult(item *transcript.Item, ref session.MessageRef) bool {
	return slices.ContainsFunc(item.Blocks, func(b transcript.Block) bool {
		return b.Tool != nil && b.Tool.ResultRef == ref
	})
}

// itemsOf returns messages as items, with results in their calls and secrets masked, without rows of the program.
func itemsOf(sess session.Session, msgs []session.Message) (items []*transcript.Item, err error) {
	stream := transcript.NewStream(sess, nil, func(item *transcript.Item) error {
		if item.Kind == transcript.ItemMessage && item.Talk != session.OfProgram && len(item.Blocks) > 0 {
			items = append(items, item)
		}
		return nil
	})
	var masker redact.Masker
	for i := range msgs {
		masker.Message(&msgs[i])
		if err := stream.Message(&msgs[i]); err != nil {
			return nil, err
		}
	}
	return items, stream.Close()
}

// textOf returns the text of an item. Above 0, output limits the tokens of a tool's output, and arguments are short.
func (c *call) textOf(item *transcript.Item, output int64) string {
	var parts []string
	for i := range item.Blocks {
		switch b := &item.Blocks[i]; b.Kind {
		case transcript.BlockText, transcript.BlockRefusal:
			parts = append(parts, b.Text)
		case transcript.BlockAttachment:
			parts = append(parts, "("+b.Attachment.String()+")")
		case transcript.BlockTool:
			arguments, result, word := transcript.LongArguments(b.Tool.Arguments), b.Tool.Result, "result"
			if b.Tool.IsError {
				word = "error"
			}
			if output > 0 {
				arguments = transcript.ShortArguments(b.Tool.Arguments, 160)
				if kept, whole := c.cut(result, output); !whole {
					result = kept + " …"
				}
			}
			if !b.Tool.Orphan {
				parts = append(parts, "→ "+b.Tool.Name+" "+arguments)
			}
			if result != "" {
				parts = append(parts, "← "+word+": "+result)
			}
		}
	}
	return clean(strings.Join(parts, "\n"))
}

// item quotes an item in at most so many tokens.
func (c *call) item(item *transcript.Item, most int64) string {
	return c.quoteWithin(most, item.Ref, item.Label, item.At, c.textOf(item, max(60, most/3)),
		fmt.Sprintf(c.named(" (cut; message %d whole: {read_session})"), item.Ref.Seq))
}

type readArgs struct {
	common
	Session  string `json:"session" jsonschema:"id, like 20260112_001"`
	Messages string `json:"messages,omitempty" jsonschema:"12-30, or 27"`
	From     int    `json:"from,omitempty" jsonschema:"first prompt to list"`
	Offset   int    `json:"offset,omitempty" jsonschema:"characters to skip"`
}

func (c *call) readSession(ctx context.Context, in readArgs) error {
	name := strings.TrimSpace(strings.TrimPrefix(in.Session, uriPrefix))
	if ref, err := session.ParseRef(name); err == nil { // of a message of it
		name = string(ref.Session)
	}
	id, err := c.Store.Resolve(ctx, name, "")
	if err != nil {
		return session.Errorf(session.NotFound,
			c.named("there is no session %.60q; {search} and {recent} give ids, like 20260112_001"), name)
	}
	sess, err := c.session(ctx, id)
	if err != nil {
		return err
	}
	c.add(c.describe(&sess))
	if err := c.addMarks(ctx, sess.ID); err != nil {
		return err
	}
	if in.Messages == "" {
		return c.outline(ctx, &sess, max(1, in.From))
	}
	from, to, err := parseRange(in.Messages)
	if err != nil {
		return err
	}
	if from == to {
		return c.oneMessage(ctx, &sess, from, max(0, in.Offset))
	}
	return c.messages(ctx, &sess, from, to)
}

// addMarks adds what the user put on a session and its messages: tags and notes, as far as a quarter of the room holds.
func (c *call) addMarks(ctx context.Context, id session.ID) error {
	all, err := c.Store.Marks(ctx, id)
	if err != nil {
		return err
	}
	least := c.left * 3 / 4
	for _, m := range all {
		line := ""
		switch {
		case m.Kind == store.MarkNote:
			line = "note: " + m.Text
		case m.Kind == store.MarkTag && m.Message != nil: // describe has the session's
			line = "#" + m.Text
		default:
			continue
		}
		if m.Message != nil {
			line = m.Message.String() + " " + line
		}
		line, _ = c.cut(session.EscapeBlocks(clean("The user's "+line)), c.left-least)
		if c.left <= least || !c.add(line+"\n") {
			break
		}
	}
	return nil
}

// parseRange parses "12-30" or "27". Codes: Invalid.
func parseRange(text string) (from, to int64, err error) {
	first, last, ranged := strings.Cut(strings.ReplaceAll(text, "–", "-"), "-")
	from, err = strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	to = from
	if ranged && err == nil {
		to, err = strconv.ParseInt(strings.TrimSpace(last), 10, 64)
	}
	if err != nil || from < 1 || to < from {
		return 0, 0, session.Errorf(session.Invalid, "messages %.60q is no range: write numbers like 12-30 or 27", text)
	}
	return from, to, nil
}

// outline quotes the beginnings of the session's prompts, from the nth.
func (c *call) outline(ctx context.Context, sess *session.Session, nth int) error {
	const promptTokens, leastQuote = 90, 20 // a quote with its id, speaker and time has at least so many
	if sess.HeadID == nil {
		c.say("The session has no messages.")
		return nil
	}
	prompts, total, err := c.Store.Prompts(ctx, *sess.HeadID, nth, int(c.left/leastQuote))
	if err != nil {
		return err
	}
	hidden := len(prompts)
	if prompts, err = c.withoutPrivate(ctx, prompts); err != nil {
		return err
	}
	hidden -= len(prompts)
	nth += hidden
	items, err := itemsOf(*sess, prompts)
	if err != nil {
		return err
	}
	shown, next := 0, ""
	for _, item := range items {
		if !c.add(c.quoteWithin(promptTokens+frameOfQuote, item.Ref, item.Label, item.At, c.textOf(item, promptTokens), "")) {
			break
		}
		shown++
	}
	if left := total - nth + 1 - shown; left > 0 {
		next = fmt.Sprintf(c.named(" Left out: %d later prompts: {read_session}(session: %q, from: %d%s)."), left, sess.ID,
			nth+shown, c.alike())
	}
	c.say("Outline: %d of the %d prompts of the user, of messages 1 to %d.", shown, total, sess.LastSeq)
	c.note("Read on: {read_session}(session: %q, messages: \"12-30\"%s) with numbers of messages.%s", sess.ID, c.alike(),
		next)
	return nil
}

// messages quotes a range of messages of the current branch, or of all if that has none of them.
func (c *call) messages(ctx context.Context, sess *session.Session, from, to int64) error {
	page := store.MessagePage{After: from - 1, Before: to + 1, Limit: 100}
	msgs, _, err := c.Store.Messages(ctx, sess.ID, page)
	if page.All = true; err == nil && len(msgs) == 0 {
		msgs, _, err = c.Store.Messages(ctx, sess.ID, page)
	}
	if err != nil {
		return err
	}
	// The shared path of a fork stands before its own messages.
	msgs = slices.DeleteFunc(msgs, func(m session.Message) bool { return m.ID.Session != sess.ID })
	if len(msgs) == 0 {
		return session.Errorf(session.NotFound, "session %s has no messages %d-%d: its last is %d", sess.ID, from, to,
			sess.LastSeq)
	}
	last := msgs[len(msgs)-1].Seq
	items, err := itemsOf(*sess, msgs)
	if err != nil {
		return err
	}
	share, end := min(c.left, max(200, c.left/int64(max(1, len(items))))), from-1
	next := min(to, sess.LastSeq)
	for _, item := range items {
		if !c.add(c.item(item, share)) {
			last = item.Ref.Seq - 1
			break
		}
		end = item.Ref.Seq
	}
	c.say("Messages %d to %d of the session's %d.", from, max(end, last), sess.LastSeq)
	if last < next {
		c.note("Left out: messages %d to %d: {read_session}(session: %q, messages: \"%d-%d\"%s).", last+1, next, sess.ID,
			last+1, next, c.alike())
	}
	return nil
}

// oneMessage quotes one message whole, or as much of it as there is room for.
func (c *call) oneMessage(ctx context.Context, sess *session.Session, seq int64, offset int) error {
	m, err := c.Store.Message(ctx, session.MessageRef{Session: sess.ID, Seq: seq})
	if session.CodeOf(err) == session.NotFound {
		return session.Errorf(session.NotFound, "session %s has no message %d: its last is %d", sess.ID, seq, sess.LastSeq)
	}
	if err != nil {
		return err
	}
	items, err := itemsOf(*sess, []session.Message{m})
	if err != nil {
		return err
	}
	if len(items) == 0 {
		c.say("Message %s has no text: it is a mark of the program.", m.ID)
		return nil
	}
	text := []rune(c.textOf(items[0], 0))
	if offset > 0 && offset >= len(text) {
		return session.Errorf(session.Invalid, "offset %d is beyond the %d characters of message %s", offset, len(text), m.ID)
	}
	c.say("Message %s, %d characters:", m.ID, len(text))
	most := c.left - frameOfQuote
	kept, whole := c.cut(string(text[offset:]), most)
	for most > 0 && !c.add(c.quote(m.ID, items[0].Label, m.CreatedAt, kept)) { // the indentation counts, too
		most = most * 9 / 10
		kept, whole = c.cut(string(text[offset:]), most)
	}
	if !whole {
		c.note("Left out: the rest: {read_session}(session: %q, messages: \"%d\", offset: %d%s).", sess.ID, seq,
			offset+len([]rune(kept)), c.alike())
	}
	return nil
}
