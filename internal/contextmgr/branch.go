package contextmgr

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// branchDetails is what a branch summary's metadata says of it.
type branchDetails struct {
	From          session.MessageRef  `json:"from"`            // the head that was left
	After         *session.MessageRef `json:"after,omitempty"` // the last message that both branches have
	Messages      int                 `json:"messages"`        // that it tells of
	ReadFiles     []string            `json:"read_files"`
	ModifiedFiles []string            `json:"modified_files"`
	CutOff        bool                `json:"cut_off,omitempty"` // the branch was longer than what is read at once
}

// SummarizeBranch tells, where a session's head was moved to, what happened on the branch
// that was left: between from, the head before, and the last message that it shares with to
// (nil: before the first message). The configured model is asked if there is one, and where
// it fails the digest serves; nobody waits for this. The summary becomes the head if nothing
// was said at to since, else it stands beside the path: attached tells. m is nil where there
// is nothing to tell. Codes: NotFound.
func (m *Manager) SummarizeBranch(ctx context.Context, id session.ID, from session.MessageRef, to *session.MessageRef) (made *session.Message, attached bool, err error) {
	sess, err := m.store.Session(ctx, id)
	if err != nil {
		return nil, false, err
	}
	r := &reading{sess: sess}
	if r.last, _, err = m.store.LastContext(ctx, id); err != nil {
		return nil, false, err
	}
	if err := m.readModel(ctx, r, m.asked.like(id, Budget{})); err != nil {
		return nil, false, err
	}
	details, err := m.readBranch(ctx, r, from, to)
	if err != nil || len(r.path) == 0 {
		return nil, false, err
	}
	limit := r.weigh.unscaled(r.numbers.SummaryMax)
	sum, err := m.tellBranch(ctx, session.SummaryRequest{Messages: r.path, MaxTokens: limit, Purpose: session.PurposeBranchSummary})
	if err != nil {
		return nil, false, fmt.Errorf("summarise the branch to %s: %w", from, err)
	}
	text := m.clipSummary(sum.Text, limit)
	if strings.TrimSpace(text) == "" {
		text = fmt.Sprintf("%d messages; nothing in them could be summarised.", details.Messages)
	}
	stored, attached, err := m.store.AddBranchSummary(context.WithoutCancel(ctx), session.BranchSummary{
		Session: id, After: to, Calls: sum.Calls,
		Message: session.Message{
			Provider: sum.Provider, Model: sum.Model, Metadata: session.JSONOf(map[string]any{"branch_summary": details}),
			Parts: []session.Part{session.TextPart(session.FrameBranch(escape(text)))},
		},
	})
	if err != nil {
		return nil, false, fmt.Errorf("keep the summary of the branch to %s: %w", from, err)
	}
	return &stored, attached, nil
}

// tellBranch asks the model, else makes the digest. What a model was asked is in the calls
// either way; a daemon that stops makes the digest, so that nothing is lost.
func (m *Manager) tellBranch(ctx context.Context, req session.SummaryRequest) (session.Summary, error) {
	if m.cfg.Remote == nil {
		return m.cfg.Digest.Summarize(ctx, req)
	}
	sum, err := m.cfg.Remote.Summarize(ctx, req)
	if err == nil {
		return sum, nil
	}
	digest, err := m.cfg.Digest.Summarize(context.WithoutCancel(ctx), req)
	digest.Calls = sum.Calls
	return digest, err
}

// readBranch reads what was left, newest first until it is more than what a summary takes in.
func (m *Manager) readBranch(ctx context.Context, r *reading, from session.MessageRef, to *session.MessageRef) (branchDetails, error) {
	details := branchDetails{From: from, ReadFiles: []string{}, ModifiedFiles: []string{}}
	left, err := m.store.Message(ctx, from)
	if err != nil {
		return details, err
	}
	var target int64
	if to != nil {
		msg, err := m.store.Message(ctx, *to)
		if err != nil {
			return details, err
		}
		target = msg.RowID
	}
	most := max(4*r.numbers.Window, 400000)
	var sum, after int64
	var failed error
	err = m.store.Walk(ctx, left.RowID, func(msg session.Message) bool {
		if target > 0 && msg.RowID <= target { // newer ones cannot lie on the path to target
			shared, err := m.store.OnPath(ctx, target, msg.RowID)
			if shared || err != nil {
				details.After, after, failed = &msg.ID, msg.RowID, err
				return false
			}
		}
		if msg.InContext && msg.Role != session.System {
			r.path = append(r.path, msg)
			sum += msg.Tokens
		}
		details.CutOff = sum > most && msg.ParentID != nil
		return !details.CutOff
	})
	if err != nil || failed != nil || len(r.path) == 0 {
		return details, firstOf(err, failed)
	}
	slices.Reverse(r.path)
	details.Messages = len(r.path)
	if details.CutOff && r.path[0].ParentID != nil {
		after = *r.path[0].ParentID
	}
	files, err := m.store.TouchedFiles(ctx, after, left.RowID)
	if err != nil {
		return details, fmt.Errorf("files of the branch: %w", err)
	}
	details.ReadFiles, details.ModifiedFiles = sortFiles(files, nil, nil)
	return details, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
