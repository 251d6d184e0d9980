package contextmgr

import (
	"context"
	"fmt"
	"slices"

	"sessiond/internal/session"
)

// DefaultWindow counts for a model that no catalogue knows, in tokens.
const DefaultWindow = 128000

// reading is what a context is made from, read once.
type reading struct {
	sess    session.Session
	model   string
	dialect string
	info    session.ModelInfo
	policy  Policy
	shrink  Shrink
	numbers Numbers
	weigh   *scales

	last     *session.Context // the one handed out before
	system   string
	own      string               // the caller's part of it
	leading  []session.Message    // system messages that the path begins with
	told     session.HiddenSystem // what the overlay hides of those that came later
	initial  []session.Part
	tools    string
	overhead int64
	// overheadBy is how that is known
	overheadBy string
	close      bool
	fresh      bool // the overlay came into force after the last context
	limits     limits
	before     *limits // of the last context; nil: it is not known

	overlay   *session.Compaction
	pruned    map[string]bool                // outputs that it hides
	replaced  []session.Replaced             // pieces of the path that its texts stand for
	words     bool                           // its replacement and summary stand as Codex has them
	midTurn   bool                           // and a turn went on when it was made
	path      []session.Message              // since the overlay, oldest first, all kinds
	cutOff    bool                           // the path was longer than what is read at once
	turnStart *session.Message               // hidden and shown again: what began the turn that the overlay splits
	person    *session.Message               // hidden and shown again: the person's newest message
	stands    map[int64][]session.MessageRef // what such a text stands for, by the row that holds it now
	edited    map[int64]bool                 // messages of the path whose content a later entry replaces
	frozen    []session.Frozen
	pins      []session.Message
	warnings  []string
}

// read gathers what a context of the session is made from. Codes: NotFound, Invalid.
func (m *Manager) read(ctx context.Context, id session.ID, b Budget) (*reading, error) {
	sess, err := m.store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	r := &reading{sess: sess, close: b.CloseCalls}
	var blocks map[string]string
	if r.last, blocks, err = m.store.LastContext(ctx, id); err != nil {
		return nil, err
	}
	if err := m.readModel(ctx, r, b); err != nil {
		return nil, err
	}
	if err := r.readBlocks(b, blocks); err != nil {
		return nil, err
	}
	if err := m.readOverlay(ctx, r, b.At); err != nil {
		return nil, err
	}
	r.readDetails()
	r.settleLimits()
	if err := m.readPath(ctx, r); err != nil {
		return nil, err
	}
	return r, m.readBeside(ctx, r)
}

// readModel settles model, window, numbers and counter.
func (m *Manager) readModel(ctx context.Context, r *reading, b Budget) error {
	r.model, r.dialect = b.Model, b.Dialect
	if r.model == "" {
		r.model = r.sess.Model
	}
	if r.last != nil {
		if r.model == "" {
			r.model = r.last.Model
		}
		if r.dialect == "" {
			r.dialect = r.last.Dialect
		}
	}
	info, known := m.cfg.Models(r.model)
	if !known { // what it takes is not known either: everything is sent, and the provider says
		info.Modalities = nil
	}
	r.info = info
	provider := info.Provider
	if provider == "" && r.model == r.sess.Model {
		provider = r.sess.Provider
	}
	r.policy, r.shrink = PolicyOf(provider, r.dialect, r.model), m.images.shrink
	window := b.Window
	if window == 0 && r.sess.Window != nil {
		window = *r.sess.Window
	}
	if window == 0 {
		if window = info.Window; window == 0 {
			window = DefaultWindow
		}
		switch {
		case r.model == "":
			r.warn("neither the request nor the session names a model: a window of %d tokens is assumed; give model, or window", window)
		case !known:
			r.warn("model %q is not in the catalogue: a window of %d tokens is assumed; give window, or add it to the catalogue", r.model, window)
		}
	}
	own, err := ParseSettings(r.sess.Settings)
	if err != nil {
		return fmt.Errorf("session %s: %w", r.sess.ID, err)
	}
	layers := []Layer{{"request", b.Settings}, {"session", own}, {"file", m.cfg.File}}
	layers = append(layers, Layer{"model", ofModel(presetOf(layers), info.MaxOutput)})
	r.numbers, err = Resolve(layers, window, b.MaxOutput)
	if err != nil {
		return err
	}
	r.weigh = &scales{family: info.Family, scale: 1, doubt: Doubt, memory: &m.weights}
	if r.weigh.family == "" {
		r.weigh.family = m.cfg.Reference
	}
	r.weigh.reference = r.weigh.family == m.cfg.Reference
	r.weigh.counter = m.cfg.Counter(r.weigh.family)
	if m.cfg.Scale != nil {
		if r.weigh.scale, r.weigh.doubt, err = m.cfg.Scale(ctx, r.model); err != nil {
			return fmt.Errorf("scale of %s: %w", r.model, err)
		}
	}
	return nil
}

func (r *reading) warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// readBlocks takes the caller's own text from the request, else from the last context.
func (r *reading) readBlocks(b Budget, kept map[string]string) error {
	r.own, r.tools = kept[session.BlockSystem], kept[session.BlockTools]
	if b.System != nil {
		r.own = *b.System
	}
	switch {
	case b.Initial != nil:
		r.initial = *b.Initial
	case kept[session.BlockInitial] != "":
		var err error
		if r.initial, err = restoreParts(kept[session.BlockInitial]); err != nil {
			return fmt.Errorf("initial blocks of %s: %w", r.sess.ID, err)
		}
	}
	if b.Tools != nil {
		r.tools = string(b.Tools)
	}
	r.overheadBy = OverheadNone
	switch {
	case b.OverheadTokens != nil:
		r.overheadBy = OverheadGiven
		if r.overhead = *b.OverheadTokens; r.overhead < 0 {
			return session.Errorf(session.Invalid, "overhead_tokens is %d: it cannot be negative", r.overhead).At("overhead_tokens", "must not be negative")
		}
	case b.Tools == nil && r.last != nil:
		if r.overhead = r.last.OverheadTokens; r.overhead > 0 || r.tools != "" {
			r.overheadBy = OverheadKept
		}
	case r.tools != "":
		r.overhead, r.overheadBy = r.weigh.Text(r.tools), OverheadCounted
	}
	return nil
}

// readDetails takes from the overlay's details what shapes the context.
func (r *reading) readDetails() {
	r.pruned, r.replaced, r.words, r.midTurn, r.told = nil, nil, false, false, session.HiddenSystem{}
	var details session.CompactionDetails
	if r.overlay == nil {
		return
	}
	decode(r.overlay.Details, &details)
	r.pruned, r.midTurn = prunedOf(&details), details.MidTurn
	r.replaced = slices.DeleteFunc(details.Replaced, func(piece session.Replaced) bool { return len(piece.Messages) == 0 })
	if details.System != nil {
		r.told = *details.System
	}
	imported := r.overlay.Trigger == session.TriggerImport && len(r.overlay.Replacement) > 0
	r.words = details.Words || imported && r.numbers.Preset == presetCodex
}

func (m *Manager) readOverlay(ctx context.Context, r *reading, at *Position) error {
	if at != nil {
		r.sess.HeadID, r.sess.CompactionID = at.HeadID, at.CompactionID
		if at.CompactionID == nil {
			return nil
		}
		c, err := m.store.Compaction(ctx, r.sess.ID, *at.CompactionID)
		r.overlay = &c
		return err
	}
	var err error
	r.overlay, err = m.store.Effective(ctx, r.sess)
	return err
}

// readPath reads the messages since the overlay, and of a path without one as much as a
// compaction can take in.
func (m *Manager) readPath(ctx context.Context, r *reading) error {
	if r.sess.HeadID == nil {
		return nil
	}
	most := max(4*r.numbers.Window, 400000)
	var sum int64
	if n := len(m.paths.of(r.sess.ID)); n > 0 {
		r.path = make([]session.Message, 0, n+8)
	}
	err := m.walk(ctx, r.sess.ID, *r.sess.HeadID, r.lowest(), func(msg session.Message) bool {
		r.path = append(r.path, msg)
		if msg.InContext {
			sum += msg.Tokens
		}
		if r.overlay != nil && r.overlay.FirstKeptID != nil && msg.RowID == *r.overlay.FirstKeptID {
			return false
		}
		r.cutOff = sum > most && msg.ParentID != nil
		return !r.cutOff
	})
	if err != nil {
		return err
	}
	slices.Reverse(r.path)
	m.paths.keep(r.sess.ID, r.path) // before it is cut to what is in force: the memory keeps a copy
	m.edit(r)
	m.replace(r)
	return r.keptOnly(ctx, m)
}

// lowest gives the row that the path is read down to: what lies behind the overlay is below
// it, for parents are older than their children.
func (r *reading) lowest() int64 {
	c := r.overlay
	switch {
	case c == nil:
		return 0
	case c.FirstKeptID != nil:
		return *c.FirstKeptID
	case c.ThroughID != nil:
		return *c.ThroughID + 1
	}
	return 0
}

// keptOnly handles what an overlay says of its edge: a first kept message that is not on this
// path (then what came after the overlay's end is kept, and the person's newest message before
// it is shown again), and a turn that it splits.
func (r *reading) keptOnly(ctx context.Context, m *Manager) error {
	c := r.overlay
	if c == nil {
		return nil
	}
	if c.FirstKeptID != nil && (len(r.path) == 0 || r.path[0].RowID != *c.FirstKeptID) && !r.cutOff && c.ThroughID != nil {
		r.path = slices.DeleteFunc(r.path, func(msg session.Message) bool { return msg.RowID <= *c.ThroughID })
		return r.lookForPerson(ctx, m)
	}
	if len(r.path) == 0 {
		return nil
	}
	var details session.CompactionDetails
	decode(c.Details, &details)
	for _, name := range []string{details.TurnStart, details.LastPerson} {
		if name == "" {
			continue
		}
		ref, err := session.ParseRef(name)
		if err != nil {
			return fmt.Errorf("what %s shows again: %w", session.CompactionName(c.RowID), err)
		}
		msg, err := m.store.Message(ctx, ref)
		if err != nil {
			return fmt.Errorf("what %s shows again: %w", session.CompactionName(c.RowID), err)
		}
		r.showAgain(&msg, &details)
	}
	if details.TurnStart == "" && !details.Afresh {
		return r.lookForTurnStart(ctx, m)
	}
	return nil
}

// lookForPerson finds the person's newest message before the end of an overlay that another
// branch was made on: there something newer was kept. It depends on where the branches part
// alone, so it stays the same.
func (r *reading) lookForPerson(ctx context.Context, m *Manager) error {
	if r.overlay.Strategy == session.StrategyClear {
		return nil
	}
	looked := 0
	return m.store.Walk(ctx, *r.overlay.ThroughID, func(msg session.Message) bool {
		if msg.InContext && fromPerson(&msg) {
			r.person = &msg
		}
		looked++
		return r.person == nil && looked < mostOfATurn
	})
}

// mostOfATurn is how far back the beginning of a turn is looked for, in messages.
const mostOfATurn = 500

// lookForTurnStart finds what began the turn that an imported overlay splits: other programs
// do not record it. It depends on the overlay's edge alone, so it stays the same.
func (r *reading) lookForTurnStart(ctx context.Context, m *Manager) error {
	first := slices.IndexFunc(r.path, func(msg session.Message) bool { return msg.InContext })
	if r.overlay.Trigger != session.TriggerImport || r.overlay.FirstKeptID == nil || first < 0 || r.path[first].ParentID == nil {
		return nil
	}
	edge := Entry{Kind: r.path[first].Kind, Role: r.path[first].Role, InContext: true}
	if edge.startsTurn() {
		return nil
	}
	looked := 0
	return m.store.Walk(ctx, *r.path[first].ParentID, func(msg session.Message) bool {
		e := Entry{Kind: msg.Kind, Role: msg.Role, InContext: msg.InContext}
		if e.startsTurn() {
			r.turnStart = &msg
		}
		looked++
		return r.turnStart == nil && looked < mostOfATurn
	})
}

// readBeside reads the system messages at the path's beginning, what was frozen and pinned.
func (m *Manager) readBeside(ctx context.Context, r *reading) error {
	var err error
	if r.leading, err = m.leadingSystem(ctx, r); err != nil {
		return err
	}
	r.settleSystem()
	frozen, err := m.store.Frozen(ctx, r.sess)
	if err != nil {
		return err
	}
	if r.frozen, err = m.inForce(ctx, r, frozen); err != nil {
		return err
	}
	return m.readPins(ctx, r)
}

// inForce leaves out what was recalled for an overlay that is undone.
func (m *Manager) inForce(ctx context.Context, r *reading, frozen []session.Frozen) ([]session.Frozen, error) {
	elsewhere := func(f session.Frozen) bool {
		return f.CompactionID != nil && (r.overlay == nil || *f.CompactionID != r.overlay.RowID)
	}
	if !slices.ContainsFunc(frozen, elsewhere) {
		return frozen, nil
	}
	all, err := m.store.Compactions(ctx, r.sess.ID)
	if err != nil {
		return nil, err
	}
	undone := map[int64]bool{}
	for i := range all {
		undone[all[i].RowID] = all[i].Undone
	}
	return slices.DeleteFunc(frozen, func(f session.Frozen) bool {
		return elsewhere(f) && undone[*f.CompactionID]
	}), nil
}

func (m *Manager) readPins(ctx context.Context, r *reading) error {
	pins, err := m.store.Pins(ctx, r.sess.ID)
	if err != nil || len(pins) == 0 || r.sess.HeadID == nil {
		return err
	}
	slices.Sort(pins)
	for _, id := range pins {
		if on, err := m.store.OnPath(ctx, *r.sess.HeadID, id); err != nil || !on {
			if err != nil {
				return err
			}
			continue
		}
		msg, err := m.store.MessageByID(ctx, id)
		if err != nil {
			return fmt.Errorf("pinned message: %w", err)
		}
		if msg.InContext {
			r.pins = append(r.pins, msg)
		}
	}
	return nil
}
