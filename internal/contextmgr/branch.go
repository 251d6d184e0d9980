package contextmgr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// branchDetails is the metadata of a branch summary.
type branchDetails struct {
	From          session.MessageRef  `json:"from"`            // the head of the abandoned branch
	After         *session.MessageRef `json:"after,omitempty"` // the last message that both branches share
	Messages      int                 `json:"messages"`        // summarised
	ReadFiles     []string            `json:"read_files"`
	ModifiedFiles []string            `json:"modified_files"`
	CutOff        bool                `json:"cut_off,omitempty"` // the branch is longer than what is read at once
}

// SummarizeBranch adds a summary of an abandoned branch after the session's head moved: of the
// messages between from, the head before, and the last one that it shares with to (nil: before the
// first message). The configured model writes it, or the digest if the model fails, in the
// background. The summary becomes the head if nothing followed to, else it stands beside the path:
// attached tells which. The message is nil if there is nothing to summarise. Codes: NotFound.
func (m *Manager) SummarizeBranch(ctx context.Context, id session.ID, from session.MessageRef,
	to *session.MessageRef,
) (made *session.Message, attached bool, err error) {
	sess, err := m.store.Session(ctx, id)
	if err != nil {
		return nil, false, err
	}
	s := &snapshot{sess: sess}
	if s.last, _, err = m.store.LastContext(ctx, id); err != nil {
		return nil, false, err
	}
	if err := m.readModel(ctx, s, m.fillBudget(id, Budget{})); err != nil {
		return nil, false, err
	}
	details, err := m.readBranch(ctx, s, from, to)
	if err != nil || len(s.Messages) == 0 {
		return nil, false, err
	}
	limit := s.scales.unscaled(s.numbers.SummaryMax)
	req := session.SummaryRequest{Messages: s.Messages, MaxTokens: limit, Purpose: session.PurposeBranchSummary}
	m.addGivers(ctx, &sess, &req)
	sum, err := m.askForBranch(ctx, m.remote(&s.numbers), req)
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
			Parts: []session.Part{session.TextPart(session.FrameBranch(escapeTags(text)))},
		},
	})
	if err != nil {
		return nil, false, fmt.Errorf("store the summary of the branch to %s: %w", from, err)
	}
	return &stored, attached, nil
}

// askForBranch asks the remote model, and makes the digest if that fails or the daemon stops. The result
// holds the model's calls either way.
func (m *Manager) askForBranch(ctx context.Context, remote Remote,
	req session.SummaryRequest,
) (session.Summary, error) {
	if remote.Summarizer == nil {
		return m.cfg.Digest.Summarize(ctx, req)
	}
	sum, err := remote.Summarize(ctx, req)
	if err == nil {
		return sum, nil
	}
	digest, err := m.cfg.Digest.Summarize(context.WithoutCancel(ctx), req)
	digest.Calls = sum.Calls
	return digest, err
}

// readBranch reads the abandoned messages into the snapshot, at most what a summary takes in.
func (m *Manager) readBranch(ctx context.Context, s *snapshot, from session.MessageRef,
	to *session.MessageRef,
) (branchDetails, error) {
	details := branchDetails{From: from, ReadFiles: []string{}, ModifiedFiles: []string{}}
	head, err := m.store.Message(ctx, from)
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
	var sum, after int64
	var failed error
	err = m.store.Walk(ctx, head.RowID, func(msg session.Message) bool {
		if target > 0 && msg.RowID <= target { // newer messages are not on the path to target
			shared, err := m.store.OnPath(ctx, target, msg.RowID)
			if shared || err != nil {
				details.After, after, failed = &msg.ID, msg.RowID, err
				return false
			}
		}
		if msg.InContext && msg.Role != session.System {
			s.Messages = append(s.Messages, msg)
			sum += msg.Tokens
		}
		details.CutOff = sum > s.numbers.maxRead() && msg.ParentID != nil
		return !details.CutOff
	})
	if err = errors.Join(err, failed); err != nil || len(s.Messages) == 0 {
		return details, err
	}
	slices.Reverse(s.Messages)
	details.Messages = len(s.Messages)
	if details.CutOff && s.Messages[0].ParentID != nil {
		after = *s.Messages[0].ParentID
	}
	files, err := m.store.TouchedFiles(ctx, after, head.RowID)
	if err != nil {
		return details, fmt.Errorf("files of the branch: %w", err)
	}
	details.ReadFiles, details.ModifiedFiles = addFiles(files, nil, nil)
	return details, nil
}
