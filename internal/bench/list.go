package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// many gives a database of many small sessions.
func (b *bench) many(ctx context.Context) (string, error) {
	n := b.manyCount()
	dir := filepath.Join(b.data, fmt.Sprintf("sessions-%d", n))
	made, err := b.cached(dir, func(temp string) error { return fillMany(ctx, filepath.Join(temp, "sessions.db"), n) })
	if made > 0 {
		b.say("made %d sessions in %s", n, made.Round(time.Millisecond))
	}
	return filepath.Join(dir, "sessions.db"), err
}

// fillMany makes sessions of one message each. Many at once share a commit.
func fillMany(ctx context.Context, path string, n int) (err error) {
	const atOnceMade = 128
	s, err := store.Open(ctx, path, options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var next atomic.Int64
	begin := time.Date(2024, 1, 1, 8, 0, 0, 0, time.UTC)
	return atOnce(atOnceMade, func(w int) error {
		a := newAuthor(uint64(w))
		for i := next.Add(1); i <= int64(n); i = next.Add(1) {
			at := session.At(begin.Add(time.Duration(i) * 10 * time.Minute))
			m := a.message(0, 20)
			m.CreatedAt = at
			_, err := s.Import(ctx, store.ImportBatch{
				Session: store.NewSession{
					Source: session.SourcePi, SourceID: fmt.Sprintf("session-%d", i), Title: a.sentence(5), Model: "gpt-4o",
					Directory: "/home/me/project", Project: "/home/me/project", CreatedAt: &at,
				},
				Messages: []store.ImportMessage{{Message: m}},
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// bareList is what a list of sessions reads.
const bareList = `SELECT id, day, title, title_source, kind, draft, settings, key, generation, source, source_id,
	directory, project, git_branch, provider, model, window, parent_id, parent_kind, head_id, last_seq,
	compaction_id, epoch, revision, message_count, total_tokens, context_tokens, compaction_count,
	input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_nanousd, cost_usd,
	unpriced_calls, turn_origin, created_at, updated_at, active_at, inbound_at, archived_at, deleted_at,
	ended_at, end_reason, metadata FROM sessions
	WHERE draft = 0 AND deleted_at IS NULL AND archived_at IS NULL ORDER BY active_at DESC, id DESC LIMIT %d`

const listed = 50

// list measures the newest 50 sessions of many.
func (b *bench) list(ctx context.Context) (err error) {
	from, err := b.many(ctx)
	if err != nil {
		return err
	}
	path := filepath.Join(b.work, "many.db")
	if err := copyFile(from, path); err != nil {
		return err
	}
	s, err := store.Open(ctx, path, options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	l, err := openLean(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	times, err := race(ctx, b.rounds, b.count(200),
		variant{name: "list", run: func(ctx context.Context, n int) error {
			return each(n, func(int) error {
				data, _, err := s.Sessions(ctx, store.Filter{}, store.Page{Limit: listed})
				return wrong(err, len(data), listed)
			})
		}},
		variant{name: "bare", run: func(ctx context.Context, n int) error {
			return each(n, func(int) error { return l.read(ctx, fmt.Sprintf(bareList, listed+1)) })
		}})
	if err != nil {
		return err
	}
	b.add(row{
		name: "list 50 of " + thousands(b.manyCount()) + " sessions", product: times[0], baseline: times[1],
		against: "its SELECT, straight on the driver", aims: []aim{{atMost: float64(150 * time.Microsecond)}},
	})
	return nil
}

func (b *bench) manyCount() int {
	if b.quick {
		return hundred / 50
	}
	return hundred
}

// cold measures commands from their start to their end, and how long the daemon takes to be ready.
func (b *bench) cold(ctx context.Context) error {
	db, err := b.many(ctx)
	if err != nil {
		return err
	}
	command := func(name string, args ...string) variant {
		return variant{name: name, run: func(ctx context.Context, n int) error {
			return each(n, func(int) error {
				cmd, err := b.command(ctx, db, args...)
				if err != nil {
					return err
				}
				if out, err := cmd.CombinedOutput(); err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
				return nil
			})
		}}
	}
	variants := []variant{command("ls", "ls", "--limit", fmt.Sprint(listed)), command("version", "version")}
	if shell, err := exec.LookPath("sqlite3"); err == nil {
		variants = append(variants, variant{name: "sqlite3", run: func(ctx context.Context, n int) error {
			return each(n, func(int) error {
				out, err := exec.CommandContext(ctx, shell, "-readonly", "-box", db, fmt.Sprintf(bareList, listed)).CombinedOutput()
				if err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
				return nil
			})
		}})
	}
	times, err := race(ctx, b.rounds, b.count(20), variants...)
	if err != nil {
		return err
	}
	for i := range times {
		times[i].cpu = nil // it is spent in other processes
	}
	b.add(row{name: "cold `sessiond ls` of " + thousands(b.manyCount()) + " sessions", product: times[0], baseline: times[1], against: "`sessiond version`", aims: []aim{{atMost: float64(10 * time.Millisecond)}}})
	if len(times) > 2 {
		b.add(row{name: "cold `sessiond ls` of " + thousands(b.manyCount()) + " sessions", product: times[0], baseline: times[2], against: "`sqlite3 -readonly`, the same SELECT"})
	}
	return b.startups(ctx, times[1])
}

// startups measures how long `sessiond serve` takes until it accepts requests, on a large history.
func (b *bench) startups(ctx context.Context, version timing) error {
	sizes := b.sizes()
	h, err := b.copied(ctx, sizes[len(sizes)-1])
	if err != nil {
		return err
	}
	var ready, resident timing
	for range b.rounds {
		d, err := b.serve(ctx, h.db)
		if err != nil {
			return err
		}
		ready.wall = append(ready.wall, float64(d.startup))
		resident.wall = append(resident.wall, d.memory())
		if err := d.stop(); err != nil {
			return err
		}
	}
	b.add(row{name: "`sessiond serve` ready on a history of " + thousands(h.size), product: ready, baseline: version, against: "`sessiond version`"})
	b.add(row{name: "… its resident memory then", product: resident, unit: size})
	return nil
}
