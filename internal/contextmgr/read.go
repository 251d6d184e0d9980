package contextmgr

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"sessiond/internal/session"
)

// DefaultWindow is the window of a model that the catalogue does not list, in tokens.
const DefaultWindow = 128000

// snapshot is a session as read for one context. Material.Messages is its path since the overlay.
type snapshot struct {
	Material

	sess    session.Session
	basis   session.ContextBasis
	model   string
	info    session.ModelInfo
	numbers Numbers
	scales  *scales
	last    *session.Context          // the context before this one; nil: none
	details session.CompactionDetails // of the overlay

	ownSystem      string            // the caller's part of the system text
	leading        []session.Message // system messages at the beginning of the path
	tools          string
	overheadMethod string
	pins           []session.Message
	overlayIsNew   bool // the overlay took effect after the last context
	truncated      bool // the path is longer than what is read at once
	warnings       []string
}

func (s *snapshot) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// read reads everything that a context of the session is made of. Codes: NotFound, Invalid.
func (m *Manager) read(ctx context.Context, id session.ID, b Budget) (*snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // the driver starts goroutines for each query that can be cancelled
	sess, err := m.store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	if b.At != nil {
		sess.HeadID, sess.CompactionID = b.At.HeadID, b.At.CompactionID
	}
	s := &snapshot{sess: sess, Material: Material{CloseCalls: b.CloseCalls}}
	if s.basis, err = m.store.ContextBasis(ctx, sess); err != nil {
		return nil, err
	}
	s.last, s.Overlay = s.basis.Last, s.basis.Overlay
	if s.last != nil && s.last.HeadID != nil {
		s.Sent = *s.last.HeadID
	}
	if err := m.readModel(ctx, s, b); err != nil {
		return nil, err
	}
	if err := s.readBlocks(b, s.basis.Blocks); err != nil {
		return nil, err
	}
	if b.preferStaged {
		if err := m.preferStaged(ctx, s); err != nil {
			return nil, err
		}
	}
	s.readDetails()
	if err := m.readPictures(ctx, s); err != nil {
		return nil, err
	}
	s.readLimits()
	if err := m.readPath(ctx, s); err != nil {
		return nil, err
	}
	if s.numbers.Window < smallestLateStart {
		s.numbers.Soft = softThreshold(&s.numbers, s.entries())
	}
	if s.leading, err = m.readLeadingSystem(ctx, s); err != nil {
		return nil, err
	}
	s.buildSystem()
	if err := m.readFrozen(ctx, s); err != nil {
		return nil, err
	}
	return s, m.readPins(ctx, s)
}

// readModel sets the model, its window, numbers and counter.
func (m *Manager) readModel(ctx context.Context, s *snapshot, b Budget) error {
	s.model, s.Dialect = cmp.Or(b.Model, s.sess.Model), b.Dialect
	if s.last != nil {
		s.model, s.Dialect = cmp.Or(s.model, s.last.Model), cmp.Or(s.Dialect, s.last.Dialect)
	}
	info, known := m.cfg.Models(s.model)
	if known { // an unknown model is sent everything
		s.Modalities = info.Modalities
	} else {
		info.Modalities = nil
	}
	s.info = info
	provider := info.Provider
	if provider == "" && s.model == s.sess.Model {
		provider = s.sess.Provider
	}
	s.Dialects, s.Provider, s.Model, s.Shrink = m.cfg.Dialects, provider, s.model, m.shrinkImage
	window := b.Window
	if window == 0 && s.sess.Window != nil {
		window = *s.sess.Window
	}
	if window == 0 {
		window = cmp.Or(info.Window, DefaultWindow)
		switch {
		case s.model == "":
			s.warn("neither the request nor the session names a model; assuming a window of %d tokens: set model or window",
				window)
		case !known && info.Like != "":
			s.warn("model %q is not in the catalogue; assuming the window of %s, %d tokens: set window, "+
				"or read a newer list with `sessiond models update`", s.model, info.Like, window)
		case !known:
			s.warn("model %q is not in the catalogue; assuming a window of %d tokens: set window, "+
				"or read a newer list with `sessiond models update`", s.model, window)
		}
	}
	own, err := StoredSettings(s.sess.Settings)
	if err != nil {
		return fmt.Errorf("session %s: %w", s.sess.ID, err)
	}
	layers := []Layer{{"request", b.Settings}, {"session", own}, {"file", m.cfg.File}}
	layers = append(layers, Layer{"model", modelSettings(nearestPreset(layers), info.MaxOutput)})
	if s.numbers, err = Resolve(layers, window, b.MaxOutput); err != nil {
		return err
	}
	family := cmp.Or(info.Family, m.cfg.Reference)
	s.scales = &scales{
		family: family, counter: m.cfg.Counter(family), reference: family == m.cfg.Reference, scale: 1,
		doubt: Doubt, weights: m.weights,
	}
	s.Weigh = s.scales
	if m.cfg.Scale != nil {
		if s.scales.scale, s.scales.doubt, err = m.cfg.Scale(ctx, s.model); err != nil {
			return fmt.Errorf("scale of %s: %w", s.model, err)
		}
	}
	return nil
}

// readBlocks takes the caller's system text, blocks and tools from the request, else from the
// last context.
func (s *snapshot) readBlocks(b Budget, saved map[string]string) error {
	s.ownSystem, s.tools = saved[session.BlockSystem], saved[session.BlockTools]
	if b.System != nil {
		s.ownSystem = *b.System
	}
	switch {
	case b.Initial != nil:
		s.Initial = *b.Initial
	case saved[session.BlockInitial] != "":
		var err error
		if s.Initial, err = decodeParts(saved[session.BlockInitial]); err != nil {
			return fmt.Errorf("initial blocks of %s: %w", s.sess.ID, err)
		}
	}
	if b.Tools != nil {
		s.tools = string(b.Tools)
	}
	s.overheadMethod = OverheadNone
	switch {
	case b.OverheadTokens != nil:
		s.overheadMethod = OverheadGiven
		if s.Overhead = *b.OverheadTokens; s.Overhead < 0 {
			return session.Errorf(session.Invalid, "overhead_tokens is %d: it must not be negative",
				s.Overhead).At("overhead_tokens", "must not be negative")
		}
	case b.Tools == nil && s.last != nil:
		if s.Overhead = s.last.OverheadTokens; s.Overhead > 0 || s.tools != "" {
			s.overheadMethod = OverheadKept
		}
	case s.tools != "":
		s.Overhead, s.overheadMethod = s.scales.Text(s.tools), OverheadCounted
	}
	return nil
}

// storedPart is a part of the initial blocks as stored: with its bytes, which a message's part
// has in the store's blobs.
type storedPart struct {
	session.Part
	MediaType string `json:"media_type,omitempty"`
	Data      []byte `json:"data,omitempty"`
}

// encodeParts encodes initial blocks for the next context, "" for none.
func encodeParts(parts []session.Part) string {
	if len(parts) == 0 {
		return ""
	}
	stored := make([]storedPart, len(parts))
	for i, p := range parts {
		stored[i].Part = p
		if p.Blob != nil {
			stored[i].MediaType, stored[i].Data = p.Blob.MediaType, p.Blob.Data
		}
	}
	return string(session.JSONOf(stored))
}

// decodeParts decodes what encodeParts wrote.
func decodeParts(content string) ([]session.Part, error) {
	var stored []storedPart
	if err := json.Unmarshal([]byte(content), &stored); err != nil {
		return nil, err
	}
	parts := make([]session.Part, len(stored))
	for i := range stored {
		parts[i] = stored[i].Part
		if len(stored[i].Data) > 0 {
			parts[i].Blob = &session.Blob{MediaType: stored[i].MediaType, Data: stored[i].Data}
		}
	}
	return parts, nil
}

// preferStaged puts a staged overlay in force if the context is certainly above the threshold, where a
// read uses it in any case: what it hides need not be read then. An imported session of 100,000
// messages is read like a short one.
func (m *Manager) preferStaged(ctx context.Context, s *snapshot) error {
	n := &s.numbers
	if n.Off || n.Strategy != session.StrategySummarize || s.sess.HeadID == nil || s.sess.ContextTokens <= 2*n.Limit {
		return nil
	}
	all, err := m.store.Compactions(ctx, s.sess.ID)
	if err != nil {
		return err
	}
	var failed error
	best := BestStaged(all, s.Overlay, func(through int64) bool {
		on, err := m.store.OnPath(ctx, *s.sess.HeadID, through)
		failed = cmp.Or(failed, err)
		return on
	})
	if best >= 0 && failed == nil {
		s.Overlay, s.overlayIsNew = &all[best], true // no report counts what it hides
	}
	return failed
}

// readDetails decodes the overlay's details.
func (s *snapshot) readDetails() {
	s.details = session.CompactionDetails{ReadFiles: []string{}, ModifiedFiles: []string{}}
	s.Pruned, s.Words, s.MidTurn = nil, false, false
	if s.Overlay == nil {
		return
	}
	decode(s.Overlay.Details, &s.details)
	s.details.Replaced = slices.DeleteFunc(s.details.Replaced, func(r session.Replaced) bool {
		return len(r.Messages) == 0
	})
	if len(s.details.Pruned) > 0 {
		s.Pruned = setOf(s.details.Pruned)
	}
	imported := s.Overlay.Trigger == session.TriggerImport && len(s.Overlay.Replacement) > 0
	s.Words, s.MidTurn = s.details.Words || imported && s.numbers.Preset == presetCodex, s.details.MidTurn
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// maxRead returns how many tokens of a path without an overlay are read: what a compaction can
// take in.
func (n *Numbers) maxRead() int64 { return max(4*n.Window, 400000) }

// readPath reads the messages since the overlay.
func (m *Manager) readPath(ctx context.Context, s *snapshot) error {
	if s.sess.HeadID == nil {
		return nil
	}
	var sum int64
	if cached, ok := m.paths.get(s.sess.ID); ok {
		s.Messages = make([]session.Message, 0, len(cached)+8)
	}
	err := m.walk(ctx, s.sess.ID, *s.sess.HeadID, s.lowestRow(), func(msg session.Message) bool {
		s.Messages = append(s.Messages, msg)
		if msg.InContext {
			sum += msg.Tokens
		}
		if s.Overlay != nil && s.Overlay.FirstKeptID != nil && msg.RowID == *s.Overlay.FirstKeptID {
			return false
		}
		s.truncated = sum > s.numbers.maxRead() && msg.ParentID != nil
		return !s.truncated
	})
	if err != nil {
		return err
	}
	slices.Reverse(s.Messages)
	m.cachePath(s.sess.ID, s.Messages) // before the edits below
	m.applyRendered(s)
	m.applyEdits(s)
	m.applyReplacements(s)
	return m.readShownAgain(ctx, s)
}

// lowestRow returns the row down to which the path is read: rows fall towards the root.
func (s *snapshot) lowestRow() int64 {
	c := s.Overlay
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

const (
	maxCachedPath = 8 << 20 // bytes of one path
	messageBytes  = 700     // of a message's fields, about
)

// cachePath keeps a copy of a session's path. Messages never change, and neither does what lies
// before them, so the next context reads only the new ones.
func (m *Manager) cachePath(id session.ID, path []session.Message) {
	cached, _ := m.paths.get(id)
	n := len(path)
	if n == 0 || n == len(cached) && path[0].RowID == cached[0].RowID && path[n-1].RowID == cached[n-1].RowID {
		return
	}
	if size := pathBytes(path); size <= maxCachedPath {
		m.paths.put(id, slices.Clone(path), size)
	}
}

func pathBytes(path []session.Message) int {
	n := len(path) * messageBytes
	for i := range path {
		n += len(path[i].Extra) + len(path[i].Metadata)
		for k := range path[i].Parts {
			p := &path[i].Parts[k]
			n += messageBytes/4 + len(p.Text) + len(p.Arguments) + len(p.Extra)
			if p.Blob != nil {
				n += len(p.Blob.Data)
			}
		}
	}
	return n
}

// walk yields the path from head towards the root, newest first, until yield returns false or
// rows are below lowest. What is not cached comes from the store.
func (m *Manager) walk(ctx context.Context, id session.ID, head, lowest int64, yield func(session.Message) bool) error {
	cached, _ := m.paths.get(id)
	if len(cached) == 0 {
		return m.store.WalkDownTo(ctx, head, lowest, yield)
	}
	next, stopped := &head, false
	if err := m.store.WalkDownTo(ctx, head, max(lowest, cached[len(cached)-1].RowID+1), func(msg session.Message) bool {
		next, stopped = msg.ParentID, !yield(msg)
		return !stopped
	}); err != nil || stopped {
		return err
	}
	if next == nil || *next < lowest {
		return nil
	}
	from, found := indexOfRow(cached, *next)
	if !found { // a branch that leaves before the cached messages
		return m.store.WalkDownTo(ctx, *next, lowest, yield)
	}
	for _, msg := range slices.Backward(cached[:from+1]) {
		if msg.RowID < lowest || !yield(msg) {
			return nil
		}
	}
	if parent := cached[0].ParentID; parent != nil && *parent >= lowest {
		return m.store.WalkDownTo(ctx, *parent, lowest, yield)
	}
	return nil
}

// indexOfRow finds a message in a path by its row.
func indexOfRow(path []session.Message, rowID int64) (int, bool) {
	return slices.BinarySearchFunc(path, rowID, func(m session.Message, id int64) int { return cmp.Compare(m.RowID, id) })
}

// contains reports whether a message is among those since the overlay.
func (s *snapshot) contains(rowID int64) bool {
	_, found := indexOfRow(s.Messages, rowID)
	return found
}

// readShownAgain reads the hidden messages that the overlay shows again. If its first kept message
// is not on this path, everything after its end is kept, and the person's newest message before
// that is shown again.
func (m *Manager) readShownAgain(ctx context.Context, s *snapshot) (err error) {
	c := s.Overlay
	if c == nil {
		return nil
	}
	if c.FirstKeptID != nil && (len(s.Messages) == 0 || s.Messages[0].RowID != *c.FirstKeptID) && !s.truncated &&
		c.ThroughID != nil {
		s.Messages = slices.DeleteFunc(s.Messages, func(msg session.Message) bool { return msg.RowID <= *c.ThroughID })
		if c.Strategy != session.StrategyClear {
			s.Person, err = m.findBack(ctx, *c.ThroughID, func(msg *session.Message) bool {
				return msg.InContext && fromPerson(msg)
			})
		}
		return err
	}
	if len(s.Messages) == 0 {
		return nil
	}
	for _, name := range []string{s.details.TurnStart, s.details.LastPerson} {
		if name == "" {
			continue
		}
		ref, err := session.ParseRef(name)
		if err != nil {
			return fmt.Errorf("message shown by %s: %w", session.CompactionName(c.RowID), err)
		}
		msg, err := m.store.Message(ctx, ref)
		if err != nil {
			return fmt.Errorf("message shown by %s: %w", session.CompactionName(c.RowID), err)
		}
		s.showAgain(&msg)
	}
	if s.details.TurnStart == "" && !s.details.Afresh {
		return m.findTurnStart(ctx, s)
	}
	return nil
}

// showAgain keeps a hidden message if the overlay's details name it.
func (s *snapshot) showAgain(m *session.Message) {
	switch id := m.ID.String(); {
	case s.TurnStart == nil && id == s.details.TurnStart:
		s.TurnStart = m
	case s.Person == nil && id == s.details.LastPerson:
		s.Person = m
	}
}

// shownAgain returns the hidden messages that are shown again.
func (s *snapshot) shownAgain() []*session.Message {
	var shown []*session.Message
	for _, m := range []*session.Message{s.TurnStart, s.Person} {
		if m != nil {
			shown = append(shown, m)
		}
	}
	return shown
}

// findTurnStart finds the message that began the turn which an imported overlay splits: other
// programs do not record it. Claude Code names all that it kept, and keeps no more.
func (m *Manager) findTurnStart(ctx context.Context, s *snapshot) (err error) {
	first := slices.IndexFunc(s.Messages, func(msg session.Message) bool { return msg.InContext })
	if s.Overlay.Trigger != session.TriggerImport || s.Overlay.FirstKeptID == nil || first < 0 ||
		s.Messages[first].ParentID == nil {
		return nil
	}
	if startsTurn(&s.Messages[first]) {
		return nil
	}
	of, err := m.store.Session(ctx, s.Overlay.SessionID)
	if err != nil || of.Source == session.SourceClaudeCode {
		return err
	}
	s.TurnStart, err = m.findBack(ctx, *s.Messages[first].ParentID, startsTurn)
	return err
}

func startsTurn(m *session.Message) bool {
	e := Entry{Kind: m.Kind, Role: m.Role, InContext: m.InContext}
	return e.startsTurn()
}

// maxTurnLength is how far back findBack searches, in messages.
const maxTurnLength = 500

// findBack returns the newest message that matches, from a row back towards the root; nil for none.
func (m *Manager) findBack(ctx context.Context, rowID int64,
	matches func(*session.Message) bool,
) (found *session.Message, err error) {
	searched := 0
	err = m.store.Walk(ctx, rowID, func(msg session.Message) bool {
		if matches(&msg) {
			found = &msg
		}
		searched++
		return found == nil && searched < maxTurnLength
	})
	return found, err
}

// readFrozen reads the frozen content, without the recalls of overlays that are undone.
func (m *Manager) readFrozen(ctx context.Context, s *snapshot) error {
	frozen := s.basis.Frozen
	ofOther := func(f session.Frozen) bool {
		return f.CompactionID != nil && (s.Overlay == nil || *f.CompactionID != s.Overlay.RowID)
	}
	if s.Frozen = frozen; !slices.ContainsFunc(frozen, ofOther) {
		return nil
	}
	all, err := m.store.Compactions(ctx, s.sess.ID)
	if err != nil {
		return err
	}
	undone := map[int64]bool{}
	for i := range all {
		undone[all[i].RowID] = all[i].Undone
	}
	s.Frozen = slices.DeleteFunc(frozen, func(f session.Frozen) bool { return ofOther(f) && undone[*f.CompactionID] })
	return nil
}

// readPins reads the pinned messages of the path.
func (m *Manager) readPins(ctx context.Context, s *snapshot) error {
	if s.sess.HeadID == nil {
		return nil
	}
	for _, id := range s.basis.Pins {
		on, err := m.store.OnPath(ctx, *s.sess.HeadID, id)
		if err != nil {
			return err
		}
		if !on {
			continue
		}
		msg, err := m.store.MessageByID(ctx, id)
		if err != nil {
			return fmt.Errorf("pinned message: %w", err)
		}
		if msg.InContext {
			s.pins = append(s.pins, msg)
		}
	}
	return nil
}

// CheckPin returns an error if a message may not be pinned: the content that no compaction can hide
// (system, tools, initial blocks, pins) must stay within a quarter of the threshold. Codes:
// NotFound, DoesNotFit.
func (m *Manager) CheckPin(ctx context.Context, id session.ID, ref session.MessageRef) error {
	msg, err := m.store.Message(ctx, ref)
	if err != nil {
		return err
	}
	s, err := m.read(ctx, id, m.fillBudget(id, Budget{}))
	if err != nil {
		return err
	}
	sum := s.Weigh.Message(&msg, false) + s.Overhead + s.Weigh.Text(s.System)
	for i := range s.pins {
		if s.pins[i].RowID != msg.RowID {
			sum += s.Weigh.Message(&s.pins[i], false)
		}
	}
	if limit := s.numbers.Threshold / 4; sum > limit {
		return session.Errorf(session.DoesNotFit,
			"message %s cannot be pinned: system text, tools and pins would have %d tokens, and a quarter of the threshold, "+
				"%d, is the limit", ref, sum, limit)
	}
	return nil
}

// wasSent reports whether a message is part of a context that this one still extends: adding to
// it would break the prefix.
func (s *snapshot) wasSent(m *session.Message) bool {
	return !s.overlayIsNew && s.last != nil && s.last.Epoch == s.sess.Epoch && s.last.HeadID != nil &&
		m.RowID <= *s.last.HeadID
}

func (s *snapshot) hasFrozen(m *session.Message, kind string) bool {
	return slices.ContainsFunc(s.Frozen, func(f session.Frozen) bool { return f.MessageID == m.RowID && f.Kind == kind })
}

// newest returns the newest message of the path that matches, nil for none.
func (s *snapshot) newest(matches func(*session.Message) bool) *session.Message {
	for i := range slices.Backward(s.Messages) {
		if m := &s.Messages[i]; m.InContext && matches(m) {
			return m
		}
	}
	return nil
}

func fromUser(m *session.Message) bool { return m.Role == session.User }

func fromPerson(m *session.Message) bool {
	return m.Role == session.User && m.Origin == session.Person
}

// withOverlay returns the snapshot as it is once an overlay of this path is in force.
func (s *snapshot) withOverlay(c *session.Compaction) *snapshot {
	next := *s
	next.Overlay, next.overlayIsNew, next.TurnStart, next.Person = c, true, nil, nil
	next.readDetails()
	next.Limits.Cuts, next.Limits.Shown = nil, cmp.Or(next.details.Shown, s.numbers.ShownMax)
	next.warnings, next.Frozen = slices.Clip(s.warnings), slices.Clip(s.Frozen)
	if c.RowID != 0 {
		next.sess.CompactionID = &c.RowID
	}
	next.Messages = nil
	for i := range s.Messages {
		if s.Messages[i].RowID >= next.lowestRow() {
			next.Messages = s.Messages[i:]
			break
		}
		next.showAgain(&s.Messages[i])
	}
	for _, m := range s.shownAgain() {
		next.showAgain(m)
	}
	next.buildSystem()
	return &next
}

func decode(raw session.JSON, v any) bool { return json.Unmarshal(raw, v) == nil }
