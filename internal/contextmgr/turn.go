package contextmgr

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// Assemble gives the context of a session as it would be sent now. It writes nothing: an
// overlay that is needed and does not exist is made in memory. Codes: NotFound, Invalid,
// CompactionRequired, DoesNotFit.
func (m *Manager) Assemble(ctx context.Context, id session.ID, b Budget) (View, error) {
	r, err := m.read(ctx, id, b)
	if err != nil {
		return View{}, err
	}
	if r.last == nil && b.System == nil && b.Initial == nil && b.Tools == nil && b.Dialect == "" {
		r.warn("no turn was taken in this session yet: the context has no system text, initial blocks or tools of the caller")
	}
	t := turn{m: m, r: r, pinned: b.At != nil}
	if err := t.run(ctx, nil); err != nil {
		return View{}, err
	}
	return t.view(nil, b.Explain), nil
}

// Turn gives the context for the next call of the model and commits what that needs: above
// the threshold an overlay, what was recalled or volatile in it, and the record of the
// context. It waits for no model. Codes as Assemble.
func (m *Manager) Turn(ctx context.Context, id session.ID, in TurnInput) (View, error) {
	release := m.turns.lock(id)
	defer release()
	m.asked.note(id, in.Budget, in.Flush.barred())
	v, err := m.turn(ctx, id, in)
	for again := 0; session.CodeOf(err) == session.Conflict && again < 3; again++ {
		v, err = m.turn(ctx, id, in) // another process changed the overlays meanwhile
	}
	return v, err
}

func (m *Manager) turn(ctx context.Context, id session.ID, in TurnInput) (View, error) {
	r, err := m.read(ctx, id, in.Budget)
	if err != nil {
		return View{}, err
	}
	t := turn{m: m, r: r, commit: true, pinned: in.At != nil}
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
	r      *reading
	commit bool
	pinned bool // at a point of the past: nothing is decided anew

	draft      Draft
	tokens     Tokens
	generation int64 // row of the overlay that was in force before, 0: none
	made       bool  // an overlay came into force for this context
	freeze     []session.Frozen
	directives []Directive
}

func (t *turn) run(ctx context.Context, flush *FlushCaller) error {
	if t.r.overlay != nil {
		t.generation = t.r.overlay.RowID
	}
	if err := t.assemble(ctx); err != nil {
		return err
	}
	n := t.r.numbers
	if !t.pinned {
		grown, err := t.grown(ctx)
		if err != nil {
			return err
		}
		switch Decide(t.tokens, n, grown) {
		case NeedRequired:
			return session.Errorf(session.CompactionRequired,
				"the context of session %s has %d tokens and its limit is %d: automatic compaction is off; compact it, or turn that on", t.r.sess.ID, t.tokens.Total, n.Limit)
		case NeedChoice:
			t.directives = append(t.directives, Directive{Type: "compaction_choice", Choices: []session.Strategy{
				session.StrategySummarize, session.StrategyTruncate, session.StrategyClear,
			}})
		case NeedCompact:
			if err := t.makeRoom(ctx); err != nil {
				return err
			}
		case NeedStage:
			if t.commit {
				t.m.cfg.OnSoft(t.r.sess.ID)
			}
		}
	}
	if err := t.recall(ctx); err != nil {
		return err
	}
	if err := t.fit(); err != nil {
		return err
	}
	t.direct()
	if flush == nil || t.pinned {
		return nil
	}
	return t.askFlush(ctx, *flush)
}

// assemble puts the context together anew and sizes it.
func (t *turn) assemble(ctx context.Context) error {
	last, err := t.m.report(ctx, t.r)
	if err != nil {
		return err
	}
	if last == nil {
		if err := t.m.learnOverhead(ctx, t.r); err != nil {
			return err
		}
	}
	t.draft = t.r.assemble()
	t.tokens = t.r.size(&t.draft, last)
	return nil
}

func (r *reading) assemble() Draft {
	in := Material{
		System: r.system, Overhead: r.overhead, Initial: r.initial, Overlay: r.overlay, TurnStart: r.turnStart, Person: r.person,
		Messages: r.path, Frozen: r.frozen, CloseCalls: r.close, Weigh: r.weigh, Modalities: r.info.Modalities, Limits: r.limits, Before: r.before,
		Pruned: r.pruned, Words: r.words, MidTurn: r.midTurn, Edited: r.edited, Stands: r.stands, Dialect: r.dialect, Policy: r.policy, Shrink: r.shrink,
	}
	if len(r.pruned) > 0 { // only its lines name the tool
		in.RecallTool = recallTool(r.tools)
	}
	if r.last != nil && r.last.HeadID != nil {
		in.Sent = *r.last.HeadID
	}
	for i := range r.pins {
		if r.overlay != nil && (len(r.path) == 0 || r.pins[i].RowID < r.path[0].RowID) && !r.showsAtStart(&r.pins[i]) {
			in.Pinned = append(in.Pinned, r.pins[i])
		}
	}
	return Assemble(in)
}

// showsAtStart tells whether a hidden message is in the context anyway.
func (r *reading) showsAtStart(m *session.Message) bool {
	return r.turnStart != nil && r.turnStart.RowID == m.RowID || r.person != nil && r.person.RowID == m.RowID || m.Role == session.System
}

// anchor is a provider's report, with sessiond's own count of the context that it is about
// (0: not known).
type anchor struct {
	*session.Call
	estimate int64
}

// report gives the provider's last count if it counts for this context, nil for none.
func (m *Manager) report(ctx context.Context, r *reading) (*anchor, error) {
	if r.fresh {
		return nil, nil
	}
	call, err := m.store.LastReport(ctx, r.sess)
	if err != nil || call == nil || call.MessageID == nil || call.Model != "" && call.Model != r.model {
		return nil, err
	}
	if call.ContextID == nil {
		if overtaken, err := m.overtaken(ctx, r, call); overtaken || err != nil {
			return nil, err
		}
		last := &anchor{Call: call}
		if r.last != nil && call.CreatedAt.After(r.last.CreatedAt.Time) {
			last.estimate = r.last.Tokens
		}
		return last, nil
	}
	made, err := m.store.Context(ctx, r.sess.ID, *call.ContextID)
	if err != nil {
		return nil, fmt.Errorf("the context of the last report: %w", err)
	}
	now := r.context(0)
	if made.SystemHash != now.SystemHash || made.ToolsHash != now.ToolsHash || made.InitialHash != now.InitialHash {
		return nil, nil
	}
	return &anchor{Call: call, estimate: made.Tokens}, nil
}

// overtaken tells whether a report that names no context is older than what changed the
// context's beginning: then it speaks of another.
func (m *Manager) overtaken(ctx context.Context, r *reading, call *session.Call) (bool, error) {
	if r.sess.Epoch == 0 {
		return false, nil
	}
	if r.last != nil && r.last.Epoch != r.sess.Epoch {
		return true, nil
	}
	all, err := m.store.Compactions(ctx, r.sess.ID)
	return slices.ContainsFunc(all, func(c session.Compaction) bool {
		return c.UndoneAt != nil && !call.CreatedAt.After(c.UndoneAt.Time)
	}), err
}

// size counts a draft: by the last report where there is one, and an estimate of the rest. A
// report of a context whose parts had been cut to fit says nothing of the whole parts.
func (r *reading) size(d *Draft, report *anchor) Tokens {
	n := r.numbers
	t := Tokens{Total: d.Total, Estimate: d.Total, Window: n.Window, Threshold: n.Threshold, Reserve: n.Reserve, Method: MethodEstimate, Error: r.weigh.errorOf(d.Total)}
	if report == nil {
		return t
	}
	items := make([]Weighed, len(d.Items))
	for i := range d.Items {
		items[i].Tokens = d.Weights[i]
		if m := &d.Items[i].Message; d.Items[i].Kind == ItemMessage && m.RowID == *report.MessageID && !m.Finish.Failed() {
			items[i].Report = report.ContextTokens()
		}
	}
	total, _, trailing, last := Hybrid(items)
	if last >= 0 && !report.isOfLess(d.Total-trailing-d.Weights[last]) {
		t.Total, t.Method, t.Error = total, MethodAnchor, r.weigh.errorOf(trailing)
		t.anchor = d.anchorOf(report, last, trailing)
	}
	return t
}

// isOfLess tells whether the reported context was a good deal smaller than what stands before
// the report's reply now. What a scale learned meanwhile changes is less than that.
func (a *anchor) isOfLess(now int64) bool {
	return a.estimate > 0 && now > a.estimate+a.estimate/4+256
}

// grown is how much the path has grown since the effective overlay, or since an overlay on
// it was undone: the loop guard's measure.
func (t *turn) grown(ctx context.Context) (int64, error) {
	grown := t.tokens.Estimate
	if t.tokens.Upper() <= t.r.numbers.Threshold {
		return grown, nil
	}
	if c := t.r.overlay; c != nil {
		grown -= c.TokensAfter
	}
	all, err := t.m.store.Compactions(ctx, t.r.sess.ID)
	if err != nil {
		return 0, err
	}
	for i := range all {
		c := &all[i]
		if !c.Undone || c.Status != session.StatusDone || !follows(c, t.r.overlay) {
			continue
		}
		since := t.tokens.Estimate - c.TokensBefore
		if c.UndoneAt != nil {
			since = t.r.since(*c.UndoneAt)
		}
		grown = min(grown, since)
	}
	return grown, nil
}

// since weighs the messages that came after a moment.
func (r *reading) since(at session.Time) int64 {
	var sum int64
	for i := range slices.Backward(r.path) {
		if !r.path[i].CreatedAt.After(at.Time) {
			break
		}
		if r.path[i].InContext {
			sum += r.weigh.Message(&r.path[i], false)
		}
	}
	return sum
}

// makeRoom brings the context under the threshold: by the best overlay that is staged, else,
// or where that is not enough, by a digest made on the spot.
func (t *turn) makeRoom(ctx context.Context) error {
	all, err := t.m.store.Compactions(ctx, t.r.sess.ID)
	if err != nil {
		return err
	}
	if i := BestStaged(all, t.r.overlay, t.r.holds); i >= 0 {
		if err := t.activate(ctx, all[i]); err != nil {
			return err
		}
		if t.tokens.Upper() <= t.r.numbers.Threshold {
			return nil
		}
	}
	if pruned, err := t.prune(ctx); pruned || err != nil {
		return err
	}
	return t.digest(ctx)
}

// prune hides old outputs of tools, if that is enough. It tells whether it did.
func (t *turn) prune(ctx context.Context) (bool, error) {
	if t.r.numbers.Strategy != session.StrategySummarize {
		return false, nil
	}
	made, enough := t.m.prune(t.r, overlayInput{trigger: session.TriggerThreshold, before: t.tokens.Total})
	if !enough {
		return false, nil
	}
	c := made.record
	if t.commit {
		c.Status = session.StatusDone
		var err error
		if c, err = t.m.store.AddCompaction(ctx, c); err != nil {
			return false, fmt.Errorf("record the pruning: %w", err)
		}
	}
	return true, t.enforce(ctx, &c)
}

// holds tells whether a message is among those since the overlay.
func (r *reading) holds(rowID int64) bool {
	_, found := slices.BinarySearchFunc(r.path, rowID, func(m session.Message, id int64) int { return int(m.RowID - id) })
	return found
}

func (t *turn) activate(ctx context.Context, c session.Compaction) error {
	if t.commit {
		active, err := t.m.store.Activate(ctx, t.r.sess.ID, c.RowID)
		if session.CodeOf(err) == session.Conflict {
			return nil // the path changed under it: the digest takes its place
		}
		if err != nil {
			return fmt.Errorf("activate %s: %w", c.ID, err)
		}
		c = active
	}
	return t.enforce(ctx, &c)
}

// enforce continues with an overlay in force.
func (t *turn) enforce(ctx context.Context, c *session.Compaction) error {
	t.r, t.made = t.r.under(c), true
	if t.commit {
		sess, err := t.m.store.Session(ctx, t.r.sess.ID)
		if err != nil {
			return err
		}
		t.r.sess.Epoch, t.r.sess.CompactionCount = sess.Epoch, sess.CompactionCount
	}
	return t.assemble(ctx)
}

func (t *turn) digest(ctx context.Context) error {
	n := t.r.numbers
	in := overlayInput{
		strategy: n.Strategy, trigger: session.TriggerThreshold, summarizer: t.m.cfg.Digest, serve: true,
		forced: t.tokens.Total > n.Limit, fixed: t.draft.Fixed, before: t.tokens.Total,
	}
	if in.forced {
		in.excess = t.tokens.more()
	}
	over, err := t.m.makeOverlay(ctx, t.r, in)
	if err != nil {
		return err
	}
	c := over.record
	if over.plan.NoGain != "" {
		t.r.warn("the context is above its threshold of %d tokens and was not compacted: %s", n.Threshold, over.plan.NoGain)
		return nil
	}
	if t.commit {
		c.Status = session.StatusDone
		if c, err = t.m.store.AddCompaction(ctx, c); err != nil {
			return fmt.Errorf("record the compaction: %w", err)
		}
	}
	return t.enforce(ctx, &c)
}

// leastPart is the size below which a part is not cut to make a context fit, in tokens.
const leastPart = 32

// fit guarantees that the context stays under its limit: where compaction alone cannot, the
// parts are cut smaller; where that cannot, the items that are too large are named.
func (t *turn) fit() error {
	limit := t.r.numbers.Limit
	// What a provider counted more than sessiond's estimate stays: it is in what is cut, too.
	more := t.tokens.more()
	for _, tighter := range t.r.tighter() {
		if t.tokens.Total <= limit {
			break
		}
		t.r.limits = tighter
		t.draft = t.r.assemble()
		t.tokens = t.r.size(&t.draft, nil)
		t.tokens.Total, t.tokens.excess = int64(math.Ceil(float64(t.tokens.Estimate)*more)), more
		t.tokens.Error = t.r.weigh.errorOf(t.tokens.Total)
	}
	if t.tokens.Total <= limit || t.pinned || len(t.draft.Pending) > 0 {
		return nil // while calls wait nothing is sent, and their results may let a compaction hide more
	}
	return doesNotFit(t.r.sess.ID, &t.draft, t.tokens.Total, limit, more)
}

// muchMore is from what factor on a provider's count makes it likely that something went out which
// sessiond does not know of.
const muchMore = 2

// doesNotFit names what is too large, the largest first. more is what the provider counted more
// than sessiond, as a factor.
func doesNotFit(id session.ID, d *Draft, total, limit int64, more float64) error {
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
	err := fmt.Sprintf("no context of session %s fits: %d tokens are left and the limit is %d; the largest items are %s",
		id, total, limit, strings.Join(names, ", "))
	if more >= muchMore {
		err += fmt.Sprintf("; the provider counted %.1f times as much as sessiond does, so what went out beside the messages may be what is too large: give tools or overhead_tokens, or a larger window", more)
	}
	return session.Errorf(session.DoesNotFit, "%s", err)
}

// direct adds what the agent is asked to do.
func (t *turn) direct() {
	sess := &t.r.sess
	if len(t.draft.Items) == 0 && len(t.draft.Pending) == 0 {
		t.r.warn("the context holds no message, and providers refuse a conversation without one: append what is to be answered")
	}
	if t.made && t.commit && len(t.r.path) > 0 && t.r.path[len(t.r.path)-1].Role == session.Tool {
		t.directives = append(t.directives, Directive{Type: "continue", Prompt: "The conversation was compacted in the middle of your task. Continue with it."})
	}
	if t.made && sess.CompactionCount >= manyCompactions {
		t.r.warn("this session was compacted %d times: details may have been lost from its summary; the originals are in the log, search finds them", sess.CompactionCount)
	}
}

// manyCompactions is from where on a loss of details is told of.
const manyCompactions = 5
