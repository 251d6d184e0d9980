package contextmgr

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// Output is the finished output of a tool as pruning sees it: no content.
type Output struct {
	Name   string // what the record calls it: MESSAGE/PART
	Tool   string
	Tokens int64
	Failed bool // its error is part of the story: it stays
	Pruned bool // already
}

// PruneRule says which outputs may be hidden. Rule: opencode, prune.
type PruneRule struct {
	Protect   int64    // tokens of the newest outputs that stay
	Minimum   int64    // hide only for more than this; 0: never
	Tools     []string // whose outputs stay
	Threshold int64    // a turn that alone passes it is pruned, too, up to its last two replies; 0: never
}

const (
	turnsKept   = 2 // newest turns whose outputs stay
	repliesKept = 2 // of a turn that is too large: its newest replies whose outputs stay
)

// Prune finds the outputs to hide, oldest first, and how many tokens that frees: back over the
// finished outputs before the last two turns, past the newest Protect tokens; a summary or an
// output that is hidden already ends the walk.
func Prune(path []Entry, rule PruneRule) (outputs []string, freed int64) {
	if rule.Minimum <= 0 {
		return nil, 0
	}
	var seen int64
walk:
	for i := prunable(path, rule.Threshold) - 1; i >= 0; i-- {
		if path[i].Kind == session.KindBranchSummary {
			break
		}
		for _, o := range slices.Backward(path[i].Outputs) {
			switch {
			case o.Pruned:
				break walk
			case o.Failed || slices.Contains(rule.Tools, o.Tool):
				continue
			}
			if seen += o.Tokens; seen > rule.Protect {
				outputs, freed = append(outputs, o.Name), freed+o.Tokens
			}
		}
	}
	if freed <= rule.Minimum {
		return nil, 0
	}
	slices.Reverse(outputs)
	return outputs, freed
}

// prunable gives the entry before which outputs may be hidden.
func prunable(path []Entry, threshold int64) int {
	turns, replies, lastReplies := 0, 0, -1
	var weight int64
	for i := len(path) - 1; i >= 0; i-- {
		e := &path[i]
		if !e.gives() {
			continue
		}
		weight += e.Tokens
		if e.Role == session.Assistant {
			if replies++; replies == repliesKept {
				lastReplies = i
			}
		}
		if !e.startsTurn() {
			continue
		}
		if threshold > 0 && weight > threshold && lastReplies >= 0 {
			return lastReplies
		}
		if turns++; turns == turnsKept {
			return i
		}
		weight, replies, lastReplies = 0, 0, -1
	}
	return 0
}

func outputName(m *session.Message, part int) string { return session.OutputName(m.ID, part) }

// prunedLine stands for an output that was hidden. It names the original, and the caller's
// tool that brings it back, if it has one.
func prunedLine(m *session.Message, p *session.Part, tokens int64, recallTool string) string {
	what := "output"
	if p.ToolName != "" {
		what = "output of " + p.ToolName
	}
	line := fmt.Sprintf("[%s hidden to make room, about %d tokens; the original is message %s", what, tokens, m.ID)
	if recallTool != "" {
		line += "; " + recallTool + " brings it back"
	}
	return line + "]"
}

// hidePruned replaces the outputs of an item that are pruned by their lines: each result with
// the pictures and files behind it.
func hidePruned(item *Item, pruned map[string]bool, recallTool string) {
	m := &item.Message
	if len(pruned) == 0 || m.Role != session.Tool {
		return
	}
	hides := func(i int) bool { return m.Parts[i].Kind == session.PartToolResult && pruned[outputName(m, i)] }
	left := make([]session.Part, 0, len(m.Parts))
	for i := 0; i < len(m.Parts); {
		if !hides(i) {
			left = append(left, m.Parts[i])
			i++
			continue
		}
		tokens, end := m.Output(i)
		p := m.Parts[i]
		p.Text = prunedLine(m, &p, tokens, recallTool)
		p.Blob, p.BlobSHA, p.Extra = nil, nil, nil
		p.Tokens = min(p.Tokens, session.PrunedTokens) // the line is not to be shortened for the size of what it stands for
		left, item.Changed = append(left, p), true
		i = end
	}
	if item.Changed {
		item.own()
		m.Parts = left
	}
}

// prunedOf gives the outputs that an overlay with these details keeps hidden.
func prunedOf(details *session.CompactionDetails) map[string]bool {
	if len(details.Pruned) == 0 {
		return nil
	}
	pruned := make(map[string]bool, len(details.Pruned))
	for _, name := range details.Pruned {
		pruned[name] = true
	}
	return pruned
}

// outputsOf gives the finished outputs of a message. tools are the tools of the calls before it.
func (r *reading) outputsOf(m *session.Message, tools map[string]string) []Output {
	if m.Role != session.Tool || !m.InContext {
		return nil
	}
	var outputs []Output
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != session.PartToolResult {
			continue
		}
		name, tool := outputName(m, i), p.ToolName
		tokens, _ := m.Output(i)
		if tool == "" {
			tool = tools[p.CallID]
		}
		outputs = append(outputs, Output{
			Name: name, Tool: tool, Tokens: r.weigh.scaled(tokens),
			Failed: p.IsError != nil && *p.IsError, Pruned: r.pruned[name],
		})
	}
	return outputs
}

// prunes tells whether a message, or outputs in it, are hidden.
func (r *reading) prunes(m *session.Message) bool {
	if r.replaces(m) {
		return true
	}
	for j := range m.Parts {
		if r.pruned[outputName(m, j)] {
			return true
		}
	}
	return false
}

// prunedMessages gives the rows of the kept messages of which something is hidden.
func (r *reading) prunedMessages() []int64 {
	if len(r.pruned)+len(r.replaced) == 0 {
		return nil
	}
	var rows []int64
	for i := range r.path {
		if r.prunes(&r.path[i]) {
			rows = append(rows, r.path[i].RowID)
		}
	}
	return rows
}

// stillPruned gives the outputs that stay hidden under an overlay that keeps the path from
// first on, and the tokens that this saves, by the reference counter.
func (r *reading) stillPruned(first int) (outputs []string, saved int64) {
	if len(r.pruned) == 0 {
		return nil, 0
	}
	for i := first; i < len(r.path); i++ {
		m := &r.path[i]
		for j := range m.Parts {
			if name := outputName(m, j); r.pruned[name] {
				tokens, _ := m.Output(j)
				outputs, saved = append(outputs, name), saved+session.PrunedSaves(tokens)
			}
		}
	}
	return outputs, saved
}

// pruneRule is the rule by the numbers in force.
func (n *Numbers) pruneRule() PruneRule {
	return PruneRule{Protect: n.PruneProtect, Minimum: n.PruneMinimum, Tools: n.ProtectedTools, Threshold: n.Threshold}
}

// prune plans an overlay that hides old outputs and nothing else. enough tells whether that
// brings the context far enough under its threshold that no summary is needed.
func (m *Manager) prune(r *reading, in overlayInput) (made madeOverlay, enough bool) {
	c := &made.record
	*c = session.Compaction{SessionID: r.sess.ID, Strategy: session.StrategyPrune, Trigger: in.trigger, TokensBefore: in.before, TokensAfter: in.before}
	if r.overlay != nil {
		c.PreviousID = &r.overlay.RowID
	}
	made.plan = Plan{Cut: Cut{0, -1}, Person: -1}
	var outputs []string
	if !r.cutOff && len(r.path) > 0 { // of a path that was not read whole nothing is known to be its beginning
		outputs, _ = Prune(r.entries(), r.numbers.pruneRule())
	}
	if len(outputs) == 0 {
		made.plan.NoGain = fmt.Sprintf("no old outputs of tools are worth hiding: the newest %d tokens of them stay, and it takes more than %d", r.numbers.PruneProtect, r.numbers.PruneMinimum)
		return made, false
	}
	r.represent(c, outputs)
	made.plan.Hidden = len(outputs)
	after := r.under(c)
	d := after.assemble()
	c.TokensAfter, c.MessageCount = d.Total, 0
	made.plan.HiddenTokens, made.plan.KeptTokens = max(0, in.before-d.Total), d.Total
	return made, d.Total < r.numbers.Threshold*3/4
}

// represent fills in a record that hides outputs: what the overlay before it hides, says and
// shows again stays as it is.
func (r *reading) represent(c *session.Compaction, outputs []string) {
	details := session.CompactionDetails{ReadFiles: []string{}, ModifiedFiles: []string{}}
	if o := r.overlay; o != nil {
		decode(o.Details, &details)
		c.Summary, c.PrefixSummary, c.Replacement, c.SummaryTokens = o.Summary, o.PrefixSummary, o.Replacement, o.SummaryTokens
		c.HiddenTokens, c.FirstKeptID, c.FirstKept = o.HiddenTokens, o.FirstKeptID, o.FirstKept
	}
	first := &r.path[0]
	if c.FirstKeptID == nil {
		c.FirstKeptID, c.FirstKept = &first.RowID, &first.ID
	}
	details.Pruned = append(slices.Clone(details.Pruned), outputs...)
	c.Details = session.JSONOf(details)
	hidden := map[string]bool{}
	for _, name := range outputs {
		hidden[name] = true
	}
	for i := range r.path {
		msg := &r.path[i]
		for j := range msg.Parts {
			if hidden[outputName(msg, j)] {
				c.ThroughID, c.Through = &msg.RowID, &msg.ID
				tokens, _ := msg.Output(j)
				c.HiddenTokens += session.PrunedSaves(tokens)
			}
		}
	}
}

// recallTool gives the name of the caller's tool that finds what was said, "" for none.
func recallTool(tools string) string {
	var list []struct {
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
		Declarations []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	}
	if json.Unmarshal([]byte(tools), &list) != nil {
		return ""
	}
	for _, t := range list {
		names := []string{t.Name, t.Function.Name}
		for _, d := range t.Declarations {
			names = append(names, d.Name)
		}
		for _, name := range names {
			if strings.Contains(strings.ToLower(name), "recall") {
				return name
			}
		}
	}
	return ""
}
