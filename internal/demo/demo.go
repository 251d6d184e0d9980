// Package demo stores an invented history: what `sessiond demo`, the pictures and the examples of the docs show.
// It needs no file of any program, and is the same each time but for the dates, which end now.
package demo

import (
	"context"
	"crypto/sha256"
	_ "embed" // the history
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/usage"
)

// Home is the home folder of the history.
const Home = "/home/you"

// Project is where its newest conversation was.
const Project = Home + "/tideline"

//go:embed history.txt
var history string

// Fill stores the history in an empty database, and returns how many conversations it has beside sub-agents. The
// newest one begins two hours before now.
func Fill(ctx context.Context, s *store.Store, models *usage.Catalogue, now time.Time) (conversations int, err error) {
	talks, err := parse(history)
	if err != nil {
		return 0, err
	}
	w := writer{store: s, models: models, now: now, stored: map[string]session.ID{}}
	for i := range talks {
		if err := w.write(ctx, &talks[i]); err != nil {
			return 0, fmt.Errorf("store the invented conversation %q: %w", talks[i].name, err)
		}
		if talks[i].childOf.talk == "" {
			conversations++
		}
	}
	return conversations, nil
}

// writer stores conversations, each after the one that it began in.
type writer struct {
	store  *store.Store
	models *usage.Catalogue
	now    time.Time
	stored map[string]session.ID // by name
}

func (w *writer) write(ctx context.Context, t *talk) error {
	at, err := t.begin(w.now.In(w.store.Zone()))
	if err != nil {
		return err
	}
	model, _ := w.models.Model(t.model)
	created := session.At(at)
	b := store.ImportBatch{
		Session: store.NewSession{
			Source: session.Source(t.program), SourceID: t.sourceID(), CreatedAt: &created, Kind: session.KindChat,
			Directory: Home + "/" + t.project, GitBranch: t.branch, Provider: model.Provider, Model: t.model,
		},
	}
	if t.title != "" {
		b.Title = &t.title
	}
	c := conversation{talk: t, batch: &b, provider: model.Provider, clock: at, price: w.models.Price, context: ownContext}
	if err := w.link(ctx, t, &b.Session, &c); err != nil {
		return err
	}
	for i := range t.entries {
		c.add(&t.entries[i])
	}
	b.Head = &c.parent
	stored, err := w.store.Import(ctx, b)
	if err != nil {
		return err
	}
	w.stored[t.name] = stored.Session.ID
	if t.star {
		_, err = w.store.PatchSession(ctx, stored.Session.ID, store.SessionPatch{Starred: &t.star})
	}
	return err
}

// link says which conversation a sub-agent or a continuation belongs to, and where it begins there.
func (w *writer) link(ctx context.Context, t *talk, n *store.NewSession, c *conversation) error {
	from := t.childOf
	if t.continues.talk != "" {
		from = t.continues
	}
	if from.talk == "" {
		return nil
	}
	parent := w.stored[from.talk]
	key := messageKey(from.talk, from.message)
	ref, err := w.store.MessageByKey(ctx, parent, key)
	if err != nil {
		return err
	}
	if ref == nil {
		return session.Errorf(session.NotFound, "%s has no message #%s", from.talk, from.message)
	}
	n.ParentID = parent
	if t.continues.talk != "" {
		n.ParentKind, c.parent, c.parentIn = session.ParentFork, key, parent
		return nil
	}
	n.ParentKind, n.Kind, n.Started = session.ParentChild, session.KindSubagent, ref
	started, err := w.store.Message(ctx, *ref)
	if calls := started.Calls(); err == nil && len(calls) > 0 {
		n.StartedCall = calls[len(calls)-1].CallID
	}
	return err
}

// Sizes of what a program sends beside the conversation, and of what a byte of the conversation stands for: the
// messages are short, those of real work are not.
const (
	ownContext    = 17_000
	tokensPerByte = 12
)

// conversation makes the batch of a talk, message by message.
type conversation struct {
	*talk
	batch    *store.ImportBatch
	provider string
	clock    time.Time
	price    func(*session.Call)
	parent   string     // external id of the message before
	parentIn session.ID // if that lies in another session
	line     []string   // external ids up to it
	context  int64      // tokens that the program sent with its last call
	grown    int64      // tokens since
	open     bool       // the last message is a reply that further calls belong to
	waiting  []string   // ids of calls without a result
	names    []string   // of their tools
	n        int
}

func (c *conversation) add(e *entry) {
	switch e.kind {
	case prompt:
		c.pass(4*time.Minute + time.Duration(c.n*37%300)*time.Second)
		c.message(e, session.User, session.TextPart(e.text))
	case reply:
		c.pass(9*time.Second + time.Duration(len(e.text))*20*time.Millisecond)
		c.message(e, session.Assistant, session.TextPart(e.text))
		c.call()
	case toolCall:
		c.toolCall(e)
	case result, failure:
		c.pass(2 * time.Second)
		part := session.Part{Kind: session.PartToolResult, Text: e.text, CallID: c.waiting[0], ToolName: c.names[0]}
		if e.kind == failure {
			part.IsError = new(true)
		}
		c.waiting, c.names = c.waiting[1:], c.names[1:]
		c.message(e, session.Tool, part)
	case pin:
		c.batch.Marks = append(c.batch.Marks, store.ImportMark{MessageKey: c.parent, Kind: store.MarkPin})
	case goBack:
		c.goBack(messageKey(c.name, e.text))
	case compaction:
		c.compact(e)
	}
}

func (c *conversation) pass(d time.Duration) { c.clock = c.clock.Add(d) }

func (c *conversation) message(e *entry, role session.Role, parts ...session.Part) {
	c.n++
	key := e.name
	if key == "" {
		key = fmt.Sprint(c.n)
	}
	key = messageKey(c.name, key)
	m := store.ImportMessage{
		ParentKey: c.parent, ParentSession: c.parentIn,
		Message: session.Message{
			Kind: session.KindMessage, Role: role, Origin: role.DefaultOrigin(), ExternalID: key, InContext: true, Display: true,
			CreatedAt: session.At(c.clock), Parts: parts,
		},
	}
	if role == session.Assistant {
		m.Model, m.Provider = c.model, c.provider
	}
	c.batch.Messages = append(c.batch.Messages, m)
	c.parent, c.parentIn, c.open = key, "", role == session.Assistant
	c.line = append(c.line, key)
	c.grown += int64(len(e.text)) * tokensPerByte
}

// toolCall adds a call to the reply before it, or to a new reply.
func (c *conversation) toolCall(e *entry) {
	name, arguments, _ := strings.Cut(e.text, " ")
	part := session.Part{
		Kind: session.PartToolCall, CallID: fmt.Sprintf("call_%s_%d", c.name, c.n+len(c.waiting)), ToolName: name,
		Arguments: arguments,
	}
	c.waiting, c.names = append(c.waiting, part.CallID), append(c.names, name)
	if !c.open {
		c.pass(7 * time.Second)
		c.message(e, session.Assistant, part)
		c.call()
		return
	}
	last := &c.batch.Messages[len(c.batch.Messages)-1]
	last.Parts = append(last.Parts, part)
	c.grown += int64(len(e.text)) * tokensPerByte
	if e.name != "" { // the reply is called like its call
		last.ExternalID = messageKey(c.name, e.name)
		c.parent, c.line[len(c.line)-1] = last.ExternalID, last.ExternalID
		c.batch.Calls[len(c.batch.Calls)-1].MessageKey = last.ExternalID
	}
}

// call counts what the newest reply cost: the context before is cached, what came since is not.
func (c *conversation) call() {
	call := session.Call{
		Purpose: session.PurposeChat, Status: session.CallOK, Provider: c.provider, Model: c.model,
		Source: session.Source(c.program), ExternalID: c.parent, Directory: Home + "/" + c.project,
		CacheReadTokens: c.context, InputTokens: c.grown, OutputTokens: 180 + c.grown/3, CreatedAt: session.At(c.clock),
	}
	if c.context == ownContext { // the first one of a conversation
		call.CacheReadTokens, call.InputTokens = 0, c.context+c.grown
	}
	if c.provider == "anthropic" { // where only what is written to the cache is read from it
		call.InputTokens, call.CacheWriteTokens = 4, call.InputTokens
	}
	c.price(&call)
	c.batch.Calls = append(c.batch.Calls, store.ImportCall{Call: call, MessageKey: c.parent})
	c.context += c.grown
	c.grown = 0
}

func (c *conversation) goBack(to string) {
	for i, key := range c.line {
		if key == to {
			c.line = c.line[:i+1]
			c.parent, c.open = to, false
			return
		}
	}
}

// compact hides all but the last messages behind a summary, as the program did.
func (c *conversation) compact(e *entry) {
	c.pass(40 * time.Second)
	kept := len(c.line) - e.keep
	before := c.context + c.grown
	c.context, c.grown = ownContext+int64(len(e.text)), 0
	c.batch.Compactions = append(c.batch.Compactions, store.ImportCompaction{
		Compaction: session.Compaction{
			Strategy: session.StrategySummarize, Trigger: session.TriggerImport, Status: session.StatusDone,
			Summary: e.text, Provider: c.provider, Model: c.model, CreatedAt: session.At(c.clock),
			TokensBefore: before, TokensAfter: c.context,
		},
		Key: messageKey(c.name, "compaction"), ThroughKey: c.line[kept-1], FirstKeptKey: c.line[kept],
	})
}

func messageKey(talk, message string) string { return talk + "-" + message }

// sourceID is a name as programs give one: a UUID, made of the talk's name.
func (t *talk) sourceID() string {
	sum := sha256.Sum256([]byte(t.name))
	h := hex.EncodeToString(sum[:])
	return fmt.Sprintf("%s-%s-4%s-8%s-%s", h[:8], h[8:12], h[12:15], h[15:18], h[18:30])
}

// begin is when the talk began: some days ago at an hour, or some hours ago.
func (t *talk) begin(now time.Time) (time.Time, error) {
	age, clock, _ := strings.Cut(t.began, " ")
	if clock == "" {
		ago, err := time.ParseDuration(age)
		return now.Add(-ago).Truncate(time.Minute), err
	}
	var days, hour, minute int
	if _, err := fmt.Sscanf(t.began, "%dd %d:%d", &days, &hour, &minute); err != nil {
		return now, fmt.Errorf("%q is no time: %w", t.began, err)
	}
	return time.Date(now.Year(), now.Month(), now.Day()-days, hour, minute, 0, 0, now.Location()), nil
}

// tides are lines of a table of tides, so that a long output need not be written down.
func tides(lines int) string {
	const lunar = 12.4206
	b := strings.Builder{}
	for i := range lines {
		hours := 3.2 + float64(i)*lunar/2
		high := 1 - 2*(i%2)
		spring := math.Cos(2 * math.Pi * hours / (14.765 * 24))
		height := 3.12 + float64(high)*(1.55+0.5*spring)
		day, rest := int(hours)/24, hours-float64(int(hours)/24*24)
		fmt.Fprintf(&b, "day %2d  %02d:%02d  %-4s  %.2f m\n", day+1, int(rest), int(rest*60)%60,
			map[int]string{1: "high", -1: "low"}[high], height)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// tests are the lines of tests that pass.
func tests(packages int) string {
	names := []string{"harmonic", "turning", "station", "chart", "cmd/tideline", "moon", "zones"}
	b := strings.Builder{}
	for i := range min(packages, len(names)) {
		fmt.Fprintf(&b, "ok  \ttideline/%s\t0.%03ds\n", names[i], 4+i*13%9)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
