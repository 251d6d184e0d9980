package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize"
	"sessiond/internal/tokens"
	"sessiond/internal/usage"
	"sessiond/internal/web/api"
)

// opened is a history that is being read, as a daemon has it open, and a bare connection to it.
type opened struct {
	history
	store *store.Store
	lean  *lean
	last  map[session.ID]int64 // last seqs
}

// open opens a copy of a history of some size.
func (b *bench) open(ctx context.Context, size int) (*opened, error) {
	h, err := b.copied(ctx, size)
	if err != nil {
		return nil, err
	}
	o := &opened{history: h, last: map[session.ID]int64{}}
	if o.store, err = store.Open(ctx, h.db, options()); err != nil {
		return nil, err
	}
	for _, id := range []session.ID{h.long, h.wide} {
		s, err := o.store.Session(ctx, id)
		if err != nil {
			return nil, errors.Join(err, o.store.Close())
		}
		o.last[id] = s.LastSeq
	}
	if o.lean, err = openLean(h.db); err != nil {
		return nil, errors.Join(err, o.store.Close())
	}
	return o, nil
}

func (o *opened) close() error { return errors.Join(o.lean.close(), o.store.Close()) }

// copied gives a history that this run may write to.
func (b *bench) copied(ctx context.Context, size int) (history, error) {
	h, err := b.history(ctx, size)
	if err != nil {
		return h, err
	}
	dir := filepath.Join(b.work, fmt.Sprintf("history-%d", size))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return h, err
	}
	from := filepath.Dir(h.db)
	h.db = filepath.Join(dir, "sessions.db")
	for _, name := range []string{"sessions.db", "search.db"} {
		if err := copyFile(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
			return h, err
		}
	}
	return h, nil
}

// copyFile copies a file that is not there yet.
func copyFile(from, to string) error {
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return errors.Join(err, out.Close())
	}
	defer in.Close() //nolint:errcheck // read only
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// manager makes contexts as the daemon does, without recall.
func manager(s *store.Store, catalogue *usage.Catalogue) *contextmgr.Manager {
	reference := tokens.Reference()
	return contextmgr.New(s, contextmgr.Config{
		Digest: summarize.NewExtractive(reference.Text), Models: catalogue.Model,
		Counter:   func(family string) contextmgr.Counter { return tokens.ForFamily(tokens.Family(family)) },
		Reference: string(reference.Family()),
	})
}

// reads measures what is read of a conversation, in process, at three sizes of the history.
func (b *bench) reads(ctx context.Context) (err error) {
	catalogue, err := usage.Load(nil)
	if err != nil {
		return err
	}
	var latest, short, wide []variant
	for _, size := range b.sizes() {
		o, err := b.open(ctx, size)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.close()) }()
		m := manager(o.store, catalogue)
		latest = append(latest, variant{name: fmt.Sprintf("last 50 of %d", size), run: func(ctx context.Context, n int) error {
			return each(n, func(int) error {
				msgs, _, err := o.store.Messages(ctx, o.long, store.MessagePage{Limit: 50, Descending: true})
				return wrong(err, len(msgs), 50)
			})
		}}, o.bare(o.long, 50))
		short = append(short, contexts(m, o.long, keptShort+1), o.bare(o.long, keptShort))
		wide = append(wide, contexts(m, o.wide, keptWide+1), o.bare(o.wide, keptWide))
	}
	for _, group := range []struct {
		name     string
		n        int
		most     time.Duration
		variants []variant
	}{
		{"last 50 messages", b.count(100), time.Millisecond, latest},
		{fmt.Sprintf("context of %d messages", keptShort), b.count(100), time.Millisecond, short},
		{fmt.Sprintf("context of a full window (%d messages)", keptWide), b.count(20), 10 * time.Millisecond, wide},
	} {
		times, err := race(ctx, b.rounds, group.n, group.variants...)
		if err != nil {
			return err
		}
		for i, size := range b.sizes() {
			b.add(row{
				name: fmt.Sprintf("%s, history of %s", group.name, thousands(size)), product: times[2*i], baseline: times[2*i+1],
				against: "its SELECTs, straight on the driver", aims: []aim{{atMost: float64(group.most)}},
			})
		}
		b.grown(group.name, times[0], times[len(times)-2])
	}
	return nil
}

// grown adds how much slower something is in the large history than in the small one.
func (b *bench) grown(name string, small, large timing) {
	sizes := b.sizes()
	b.add(row{
		name: fmt.Sprintf("%s: growth from %s to %s", name, thousands(sizes[0]), thousands(sizes[len(sizes)-1])), product: large, baseline: small,
		against: "itself in the history of " + thousands(sizes[0]), aims: []aim{{ratio: 1.2}},
	})
}

func thousands(size int) string {
	if size >= 1_000_000 {
		return fmt.Sprintf("%d M", size/1_000_000)
	}
	if size < 1000 {
		return fmt.Sprint(size)
	}
	return fmt.Sprintf("%d k", size/1000)
}

// contexts is the variant that makes a context and puts it into its wire form.
func contexts(m *contextmgr.Manager, id session.ID, messages int) variant {
	return variant{name: "context", run: func(ctx context.Context, n int) error {
		return each(n, func(int) error {
			view, err := m.Assemble(ctx, id, contextmgr.Budget{Dialect: "openai.chat"})
			if err != nil {
				return err
			}
			if _, err = api.Render(view); err != nil {
				return err
			}
			return wrong(nil, len(view.Messages), messages)
		})
	}}
}

// bare is the variant that reads the last messages of a session straight on the driver.
func (o *opened) bare(id session.ID, messages int64) variant {
	last := o.last[id]
	return variant{name: "bare", run: func(ctx context.Context, n int) error {
		return each(n, func(int) error { return o.lean.messages(ctx, string(id), last-messages+1, last) })
	}}
}

// wrong fails a measurement that measures something else than it says.
func wrong(err error, got, want int) error {
	if err == nil && got != want {
		return fmt.Errorf("got %d of them, not %d", got, want)
	}
	return err
}
