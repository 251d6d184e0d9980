package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sessiond/internal/analytics"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
)

// Bounds of a status line, which its program runs after each reply.
const (
	statusTime  = 400 * time.Millisecond
	statusInput = 1 << 20 // bytes
)

// status is what a program tells a command for its status line, in the form of Claude Code. Each field may be missing.
type status struct {
	Session string `json:"session_id"`
	Cost    struct {
		USD      float64 `json:"total_cost_usd"`
		Duration float64 `json:"total_duration_ms"`
	} `json:"cost"`
	Context struct {
		Used    int64    `json:"total_input_tokens"`
		Percent *float64 `json:"used_percentage"`
		Window  int64    `json:"context_window_size"`
	} `json:"context_window"`
	Limits map[string]struct {
		Used     float64 `json:"used_percentage"`
		ResetsAt int64   `json:"resets_at"` // seconds
	} `json:"rate_limits"`
}

func (a *app) statusLineCommand() *cobra.Command {
	return &cobra.Command{
		Use: "statusline [PROGRAM]", Short: "Print a line for an agent program's status line", Hidden: true,
		Args: cobra.ArbitraryArgs,
		Long: "Reads the JSON that Claude Code gives to the command of its status line, and prints one line: today's\n" +
			"cost, this session's, the context, and the limit. It only reads, starts nothing, and never fails: what is\n" +
			"not known is left out, at worst all of it. docs/hooks.md says how to enter it.",
		Example: "  sessiond statusline",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), statusTime)
			defer cancel()
			program := session.SourceClaudeCode
			if len(args) > 0 {
				program = session.Source(args[0])
			}
			a.err = io.Discard
			line, _ := await(ctx, func() (string, error) { return a.statusLine(ctx, program), nil })
			fmt.Fprintln(a.out, line)
			return nil
		},
	}
}

// statusLine returns the line; "" where the input says nothing.
func (a *app) statusLine(ctx context.Context, program session.Source) string {
	if a.inTTY {
		return ""
	}
	input, err := a.input(ctx, statusInput)
	if err != nil {
		return ""
	}
	var told status
	if err := unmarshalLoosely(input, &told); err != nil {
		return ""
	}
	budget := ""
	own, today := int64(min(max(told.Cost.USD, 0), 1e6)*1e9), int64(0)
	var limits []session.Limit
	now := a.now()
	if s, err := a.open(ctx, wiring{readOnly: true}); err == nil {
		defer s.Close() //nolint:errcheck // a reader
		now = now.In(s.Zone())
		own, today = storedCosts(ctx, s, now, program, &told, own)
		budget = a.statusBudget(ctx, s, now)
		limits, _ = s.Limits(ctx) // of an earlier version's database there are none
	}
	var parts []string
	if today > 0 {
		parts = append(parts, "today "+transcript.Dollars(today))
	}
	if budget != "" {
		parts = append(parts, budget)
	}
	if own > 0 {
		parts = append(parts, "session "+transcript.Dollars(own))
	}
	if c := told.Context; c.Percent != nil {
		size := session.ContextSize{Tokens: c.Used, Window: c.Window, Reported: true}
		parts = append(parts, transcript.Context(size))
	}
	if limit := statusLimit(now, program, &told, limits); limit != "" {
		parts = append(parts, limit)
	}
	return strings.Join(parts, " · ")
}

// statusBudget returns how much of a budget is used, of the one of which most is: "month 81 %"; "" without a budget.
func (a *app) statusBudget(ctx context.Context, s *store.Store, now time.Time) string {
	all, err := analytics.New(s.Reader(), s.Zone()).Spent(ctx, a.cfg.Budget.Limits(), now)
	if err != nil || len(all) == 0 {
		return ""
	}
	most := slices.MaxFunc(all, func(a, b analytics.Spent) int { return cmp.Compare(a.Percent(), b.Percent()) })
	return fmt.Sprintf("%s %d %%", cmp.Or(printable(most.Project), "month"), most.Percent())
}

// storedCosts returns what the session and all sessions of today cost, in nano-dollars. Where the program reports more
// than was imported, that counts: the newest replies may not be here yet.
func storedCosts(ctx context.Context, s *store.Store, now time.Time, program session.Source, told *status,
	reported int64,
) (own, today int64) {
	if sess, err := s.SessionBySource(ctx, program, told.Session); err == nil && told.Session != "" {
		if sess.CostNanoUSD != nil {
			own = *sess.CostNanoUSD
		}
		if all, err := s.Rollups(ctx, []session.ID{sess.ID}); err == nil && all[sess.ID].CostNanoUSD != nil {
			own = *all[sess.ID].CostNanoUSD // with its sub-agents
		}
	}
	day := now.Format(time.DateOnly)
	days, err := analytics.New(s.Reader(), s.Zone()).Usage(ctx, analytics.Filter{Since: day, Until: day}, analytics.ByDay)
	if err != nil {
		return max(own, reported), 0
	}
	for i := range days {
		if cost := days[i].NanoUSD(); cost != nil {
			today += *cost
		}
	}
	begun := now.Add(-time.Duration(told.Cost.Duration) * time.Millisecond)
	if begun.Format(time.DateOnly) == day {
		today += max(0, reported-own)
	}
	return max(own, reported), today
}

// statusLimit returns the limit of which most is used: as the program reports it, else as its history does.
func statusLimit(now time.Time, program session.Source, told *status, stored []session.Limit) string {
	var all []session.Limit
	for name, l := range told.Limits {
		all = append(all, session.Limit{
			Name: session.WindowName(name), Used: l.Used, ResetsAt: session.At(time.Unix(l.ResetsAt, 0)),
		})
	}
	for _, l := range stored {
		if len(told.Limits) == 0 && l.Source == program {
			all = append(all, l)
		}
	}
	all = slices.DeleteFunc(all, func(l session.Limit) bool { return !l.ResetsAt.After(now) })
	if len(all) == 0 {
		return ""
	}
	most := slices.MaxFunc(all, func(a, b session.Limit) int {
		return cmp.Or(cmp.Compare(a.Used, b.Used), cmp.Compare(b.Name, a.Name))
	})
	return fmt.Sprintf("limit %s %.0f %%, %s", printable(most.Name), most.Used, most.UntilWords(now))
}
