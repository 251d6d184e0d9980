package contextmgr

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// Assemble returns the context of a session as it would be sent now. It writes nothing: an overlay
// that is needed and does not exist is made in memory. Codes: NotFound, Invalid,
// CompactionRequired, DoesNotFit.
func (m *Manager) Assemble(ctx context.Context, id session.ID, b Budget) (View, error) {
	b.preferStaged = b.At == nil
	s, err := m.read(ctx, id, b)
	if err != nil {
		return View{}, err
	}
	if s.last == nil && b.System == nil && b.Initial == nil && b.Tools == nil && b.Dialect == "" {
		if s.sess.Source == session.SourceSessiond {
			s.warn("no turn yet: the agent's system prompt and tools are not included")
		} else {
			s.warn("imported session: the program's own system prompt and tools are not included")
		}
	}
	t := turn{m: m, s: s, pinned: b.At != nil}
	t.compacted = s.Overlay != nil && s.Overlay.Status == session.StatusStaged
	if err := t.run(ctx, nil); err != nil {
		return View{}, err
	}
	return t.view(nil, b.Explain), nil
}

// Turn returns the context for the next call of the model and commits what it needs: an overlay
// above the threshold, recalled and volatile text, and the record of the context. It never waits
// for a model. Codes as Assemble.
func (m *Manager) Turn(ctx context.Context, id session.ID, in TurnInput) (View, error) {
	defer m.lock(id)()
	m.rememberRequest(id, in.Budget, in.Flush.cannotSave())
	v, err := m.turn(ctx, id, in)
	for retries := 0; session.CodeOf(err) == session.Conflict && retries < 3; retries++ {
		v, err = m.turn(ctx, id, in) // another process changed the overlays
	}
	return v, err
}

func (m *Manager) turn(ctx context.Context, id session.ID, in TurnInput) (View, error) {
	s, err := m.read(ctx, id, in.Budget)
	if err != nil {
		return View{}, err
	}
	t := turn{m: m, s: s, commit: true, pinned: in.At != nil}
	t.freezeVolatile(in.Volatile)
	if err := t.run(ctx, &in.Flush); err != nil {
		return View{}, err
	}
	if len(t.draft.Pending) > 0 {
		return t.view(nil, in.Explain), nil
	}
	saved, err := t.save(ctx)
	if err != nil {
		return View{}, err
	}
	return t.view(&saved, in.Explain), nil
}

// turn is one context in the making.
type turn struct {
	m      *Manager
	s      *snapshot
	commit bool
	pinned bool // at a point of the past: nothing is decided anew

	draft      Draft
	tokens     Tokens
	generation int64 // row of the overlay before, 0: none
	compacted  bool  // an overlay took effect for this context
	freeze     []session.Frozen
	directives []Directive
}

func (t *turn) run(ctx context.Context, flush *FlushCaller) error {
	if t.s.Overlay != nil {
		t.generation = t.s.Overlay.RowID
	}
	if err := t.assemble(ctx); err != nil {
		return err
	}
	if !t.pinned {
		if err := t.compactIfNeeded(ctx); err != nil {
			return err
		}
	}
	if err := t.recall(ctx); err != nil {
		return err
	}
	if err := t.fit(); err != nil {
		return err
	}
	t.addNotices()
	if flush == nil || t.pinned {
		return nil
	}
	return t.askFlush(ctx, *flush)
}

// assemble builds the context and counts it.
func (t *turn) assemble(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // as in read
	last, err := t.m.lastReport(ctx, t.s)
	if err != nil {
		return err
	}
	if last == nil {
		if err := t.m.learnOverhead(ctx, t.s); err != nil {
			return err
		}
	}
	t.draft = t.s.assemble()
	t.tokens = t.s.count(&t.draft, last)
	return nil
}

func (s *snapshot) assemble() Draft {
	in := s.Material
	if len(s.Pruned) > 0 { // only lines of pruned outputs name the tool
		in.RecallTool = recallTool(s.tools)
	}
	for i := range s.pins {
		pin := &s.pins[i]
		shown := pin.Role == session.System || slices.ContainsFunc(s.shownAgain(), func(m *session.Message) bool {
			return m.RowID == pin.RowID
		})
		if s.Overlay != nil && (len(s.Messages) == 0 || pin.RowID < s.Messages[0].RowID) && !shown {
			in.Pinned = append(in.Pinned, *pin)
		}
	}
	return Assemble(in)
}

// Need is what a context's size requires.
type Need string

// The needs.
const (
	NeedNothing  Need = ""
	NeedStage    Need = "stage"    // above the soft threshold: stage a summary
	NeedCompact  Need = "compact"  // above the threshold
	NeedChoice   Need = "choice"   // above the threshold, and the caller chooses a strategy
	NeedRequired Need = "required" // above the limit without automatic compaction
)

// Decide compares a context's size with the numbers. grown is how many tokens the path has grown
// since the last compaction or undo: below 5 % of the window nothing compacts automatically, unless
// the context passes the limit.
func Decide(t Tokens, n Numbers, grown int64) Need {
	over := t.Total > n.Limit
	above := t.Upper() > n.Threshold || over
	switch {
	case over && (n.Off || n.Strategy == StrategyAsk):
		return NeedRequired
	case n.Off:
		return NeedNothing
	case above && n.Strategy == StrategyAsk:
		return NeedChoice
	case above && (over || grown >= n.Window/20):
		return NeedCompact
	case t.Upper() > n.Soft:
		return NeedStage
	}
	return NeedNothing
}

func (t *turn) compactIfNeeded(ctx context.Context) error {
	grown, err := t.grown(ctx)
	if err != nil {
		return err
	}
	switch Decide(t.tokens, t.s.numbers, grown) {
	case NeedRequired:
		return session.Errorf(session.CompactionRequired,
			"the context of session %s has %d tokens, its limit is %d, and automatic compaction is off: compact the session, "+
				"or turn automatic compaction on",
			t.s.sess.ID, t.tokens.Total, t.s.numbers.Limit)
	case NeedChoice:
		t.directives = append(t.directives, Directive{Type: "compaction_choice", Choices: []session.Strategy{
			session.StrategySummarize, session.StrategyTruncate, session.StrategyClear,
		}})
	case NeedCompact:
		return t.compact(ctx)
	case NeedStage:
		if t.commit {
			t.m.cfg.OnSoft(t.s.sess.ID)
		}
	}
	return nil
}

// grown returns how much the path has grown since the effective overlay, or since an overlay on it
// was undone. Below the threshold it is not exact.
func (t *turn) grown(ctx context.Context) (int64, error) {
	grown := t.tokens.Estimate
	if t.tokens.Upper() <= t.s.numbers.Threshold {
		return grown, nil
	}
	if c := t.s.Overlay; c != nil {
		grown -= c.TokensAfter
	}
	all, err := t.m.store.Compactions(ctx, t.s.sess.ID)
	if err != nil {
		return 0, err
	}
	for i := range all {
		c := &all[i]
		if !c.Undone || c.Status != session.StatusDone || !follows(c, t.s.Overlay) {
			continue
		}
		since := t.tokens.Estimate - c.TokensBefore
		if c.UndoneAt != nil {
			since = t.s.tokensSince(*c.UndoneAt)
		}
		grown = min(grown, since)
	}
	return grown, nil
}

// tokensSince returns the weight of the messages after a time.
func (s *snapshot) tokensSince(at session.Time) int64 {
	var sum int64
	for i := range slices.Backward(s.Messages) {
		if !s.Messages[i].CreatedAt.After(at.Time) {
			break
		}
		if s.Messages[i].InContext {
			sum += s.Weigh.Message(&s.Messages[i], false)
		}
	}
	return sum
}

// compact brings the context under the threshold: by the best staged overlay, else, or if that is
// not enough, by pruning or a digest made now.
func (t *turn) compact(ctx context.Context) error {
	all, err := t.m.store.Compactions(ctx, t.s.sess.ID)
	if err != nil {
		return err
	}
	if i := BestStaged(all, t.s.Overlay, t.s.contains); i >= 0 {
		if err := t.activate(ctx, all[i]); err != nil {
			return err
		}
		if t.tokens.Upper() <= t.s.numbers.Threshold {
			return nil
		}
	}
	n := &t.s.numbers
	in := overlayInput{
		strategy: n.Strategy, trigger: session.TriggerThreshold, summarizer: t.m.cfg.Digest, mustSucceed: true,
		forced: t.tokens.Total > n.Limit, fixed: t.draft.Fixed, before: t.tokens.Total,
	}
	if n.Strategy == session.StrategySummarize {
		if made, enough := t.s.planPrune(in); enough {
			return t.commitOverlay(ctx, made.record)
		}
	}
	if in.forced {
		in.excess = t.tokens.providerRatio()
	}
	made, err := t.m.makeOverlay(ctx, t.s, in)
	if err != nil {
		return err
	}
	if made.plan.NoGain != "" {
		t.s.warn("the context exceeds its threshold of %d tokens; %s", n.Threshold, made.plan.NoGain)
		return nil
	}
	return t.commitOverlay(ctx, made.record)
}

// activate puts a staged overlay in force, unless the path changed meanwhile.
func (t *turn) activate(ctx context.Context, c session.Compaction) error {
	if t.commit {
		active, err := t.m.store.Activate(ctx, t.s.sess.ID, c.RowID)
		if session.CodeOf(err) == session.Conflict {
			return nil
		}
		if err != nil {
			return fmt.Errorf("activate %s: %w", c.ID, err)
		}
		c = active
	}
	return t.continueWith(ctx, &c)
}

// commitOverlay stores an overlay, if the turn commits, and puts it in force.
func (t *turn) commitOverlay(ctx context.Context, c session.Compaction) (err error) {
	if t.commit {
		c.Status = session.StatusDone
		if c, err = t.m.store.AddCompaction(ctx, c); err != nil {
			return fmt.Errorf("record the compaction: %w", err)
		}
	}
	return t.continueWith(ctx, &c)
}

// continueWith assembles the context with an overlay in force.
func (t *turn) continueWith(ctx context.Context, c *session.Compaction) error {
	t.s, t.compacted = t.s.withOverlay(c), true
	if t.commit {
		sess, err := t.m.store.Session(ctx, t.s.sess.ID)
		if err != nil {
			return err
		}
		t.s.sess.Epoch, t.s.sess.CompactionCount = sess.Epoch, sess.CompactionCount
	}
	return t.assemble(ctx)
}

// fit brings the context under its limit: if compaction was not enough, parts are cut smaller; if
// that is not enough, the error names the largest items.
func (t *turn) fit() error {
	limit := t.s.numbers.Limit
	ratio := t.tokens.providerRatio() // holds for cut parts, too
	for _, tighter := range t.s.tighterLimits() {
		if t.tokens.Total <= limit {
			break
		}
		t.s.Limits = tighter
		t.draft = t.s.assemble()
		t.tokens = t.s.count(&t.draft, nil)
		t.tokens.Total, t.tokens.excess = int64(math.Ceil(float64(t.tokens.Estimate)*ratio)), ratio
		t.tokens.Error = t.s.scales.errorOf(t.tokens.Total)
	}
	if t.tokens.Total <= limit || t.pinned || len(t.draft.Pending) > 0 {
		return nil // pending calls: nothing is sent yet, and their results may let a compaction hide more
	}
	return doesNotFit(t.s.sess.ID, &t.draft, t.tokens.Total, limit, ratio)
}

// suspiciousRatio is the provider's count per own count from which on the provider was probably
// sent something unknown to sessiond.
const suspiciousRatio = 2

// doesNotFit names the largest items of a context. ratio is the provider's count per own count.
func doesNotFit(id session.ID, d *Draft, total, limit int64, ratio float64) error {
	items := d.Provenance()
	slices.SortStableFunc(items, func(a, b Provenance) int { return int(b.Tokens - a.Tokens) })
	var names []string
	for _, p := range items[:min(3, len(items))] {
		name := p.Kind
		if len(p.Sources) > 0 {
			name += " " + p.Sources[0].String()
		}
		names = append(names, fmt.Sprintf("%s (%d tokens)", name, p.Tokens))
	}
	err := fmt.Sprintf("no context of session %s fits: it would have %d tokens and the limit is %d; "+
		"the largest items are %s",
		id, total, limit, strings.Join(names, ", "))
	if ratio >= suspiciousRatio {
		err += fmt.Sprintf("; the provider counted %.1f times as much as sessiond, "+
			"so tools or other text beside the messages may be too large: set tools, overhead_tokens or a larger window", ratio)
	}
	return session.Errorf(session.DoesNotFit, "%s", err)
}

// manyCompactions is the number of compactions from which on a warning mentions lost details.
const manyCompactions = 5

// addNotices adds warnings and directives for the agent.
func (t *turn) addNotices() {
	s := t.s
	if len(t.draft.Items) == 0 && len(t.draft.Pending) == 0 {
		s.warn("the context holds no message, and providers reject an empty conversation: append a message")
	}
	if t.compacted && t.commit && len(s.Messages) > 0 && s.Messages[len(s.Messages)-1].Role == session.Tool {
		t.directives = append(t.directives, Directive{
			Type:   "continue",
			Prompt: "The conversation was compacted in the middle of your task. Continue with it.",
		})
	}
	if t.compacted && s.sess.CompactionCount >= manyCompactions {
		s.warn("this session was compacted %d times: its summary may lack details; search finds the originals",
			s.sess.CompactionCount)
	}
}

// freezeVolatile adds the caller's text of the moment to the newest message of the user's role, for
// good.
func (t *turn) freezeVolatile(text string) {
	m := t.s.newest(fromUser)
	if text == "" || m == nil {
		return
	}
	for _, f := range t.s.Frozen {
		var content frozenText
		if f.MessageID == m.RowID && f.Kind == session.FrozenVolatile && decode(f.Content, &content) && content.Text == text {
			return
		}
	}
	if t.s.hasFrozen(m, session.FrozenVolatile) || t.s.wasSent(m) {
		t.s.warn("volatile text was left out: its message was sent already; it goes with the user's next message")
		return
	}
	t.freezeContent(m, session.FrozenVolatile, nil, frozenText{Text: text})
}

// freezeContent adds content to a message in this context and, once saved, in later ones.
func (t *turn) freezeContent(m *session.Message, kind string, compaction *int64, content any) {
	f := session.Frozen{
		SessionID: t.s.sess.ID, MessageID: m.RowID, Kind: kind, CompactionID: compaction,
		Content: session.JSONOf(content),
	}
	t.s.Frozen = append(t.s.Frozen, f)
	t.freeze = append(t.freeze, f)
}

// contextRecord returns the record of this context.
func (s *snapshot) contextRecord(tokens int64) session.Context {
	return session.Context{
		SessionID: s.sess.ID, HeadID: s.sess.HeadID, CompactionID: s.sess.CompactionID, Epoch: s.sess.Epoch, Model: s.model,
		Dialect:    s.Dialect,
		SystemHash: hashOf(s.ownSystem), InitialHash: hashOf(encodeParts(s.Initial)), ToolsHash: hashOf(s.tools),
		OverheadTokens: s.knownOverhead(), Tokens: tokens, Limits: session.JSONOf(s.Limits),
	}
}

// save stores the record of the context, and its frozen content.
func (t *turn) save(ctx context.Context) (session.Context, error) {
	s := t.s
	for i := range s.Messages {
		if calls := t.draft.ClosedIn[s.Messages[i].RowID]; len(calls) > 0 &&
			!s.hasFrozen(&s.Messages[i], session.FrozenClosedCall) {
			t.freezeContent(&s.Messages[i], session.FrozenClosedCall, nil, frozenCalls{calls})
		}
	}
	blocks := map[string]string{}
	for kind, content := range map[string]string{
		session.BlockSystem: s.ownSystem, session.BlockInitial: encodeParts(s.Initial), session.BlockTools: s.tools,
	} {
		if content != "" {
			blocks[kind] = content
		}
	}
	saved, err := t.m.store.SaveContext(ctx, s.contextRecord(t.tokens.Estimate-s.Overhead+s.knownOverhead()), blocks,
		t.freeze)
	if err != nil {
		return saved, fmt.Errorf("record the context: %w", err)
	}
	return saved, nil
}
