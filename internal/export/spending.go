package export

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"sessiond/internal/session"
)

// spending is what a session's calls cost, by the replies that they made, in some thirty bytes
// for each: a long session has very many.
type spending struct {
	at     []spentAt // by row
	packed []byte
}

type spentAt struct {
	row    int64
	offset int // in packed
}

// spending reads the calls of the session.
func (r *reading) spending(ctx context.Context) (*spending, error) {
	s := &spending{}
	err := r.store.EachCall(ctx, r.ID, func(c *session.Call) error {
		if c.MessageID != nil && c.Purpose == session.PurposeChat {
			s.add(*c.MessageID, c)
		}
		return nil
	})
	slices.SortStableFunc(s.at, func(a, b spentAt) int { return cmp.Compare(a.row, b.row) })
	return s, err
}

func (s *spending) add(row int64, c *session.Call) {
	s.at = append(s.at, spentAt{row, len(s.packed)})
	cost := int64(-1) // nobody knows
	if c.CostNanoUSD != nil {
		cost = *c.CostNanoUSD
	}
	for _, n := range []int64{c.InputTokens, c.OutputTokens, c.CacheReadTokens, c.CacheWriteTokens, c.ReasoningTokens, cost} {
		s.packed = binary.AppendVarint(s.packed, n)
	}
}

// of gives what the newest call of a reply cost; nil: nothing is known of one.
func (s *spending) of(row int64) *session.Call {
	after, _ := slices.BinarySearchFunc(s.at, row+1, func(a spentAt, row int64) int { return cmp.Compare(a.row, row) })
	if after == 0 || s.at[after-1].row != row {
		return nil
	}
	rest := s.packed[s.at[after-1].offset:]
	next := func() int64 {
		n, size := binary.Varint(rest)
		rest = rest[size:]
		return n
	}
	c := &session.Call{InputTokens: next(), OutputTokens: next(), CacheReadTokens: next(), CacheWriteTokens: next(), ReasoningTokens: next()}
	if cost := next(); cost >= 0 {
		c.CostNanoUSD = &cost
	}
	return c
}
