package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/store"
)

// exports measures what writing a session takes of memory at its peak, over an export of one
// message, in every format, plain and masked: of a session of very many messages, and of one with
// a long text.
func (b *bench) exports(ctx context.Context) error {
	large, long := b.large<<20, 50<<20
	if b.quick {
		large, long = 2<<20, 4<<20
	}
	idle, err := b.exportable(ctx, "one", &turns{author: newAuthor(5), most: 100})
	if err != nil {
		return err
	}
	for _, m := range []struct {
		about string
		turns turns
	}{
		{"%.0f MB in %d messages", turns{author: newAuthor(5), most: large}},
		{"a text of %.0f MB, %d messages", turns{author: newAuthor(5), most: 1000, long: long}},
	} {
		from, err := b.exportable(ctx, "large", &m.turns)
		if err != nil {
			return err
		}
		about := fmt.Sprintf(m.about, float64(m.turns.bytes)/1e6, m.turns.n)
		for _, format := range []string{"jsonl", "md", "html", "openai", "pi", "goose"} {
			for _, masked := range []bool{false, true} {
				_, rest, err := b.runExport(ctx, idle, format, masked)
				if err != nil {
					return err
				}
				wall, peak, err := b.runExport(ctx, from, format, masked)
				if err != nil {
					return err
				}
				name := "export to " + format
				if masked {
					name += " --redact"
				}
				b.say("%s, %s: %s", name, about, wall.Round(time.Second/10))
				b.add(row{
					name: fmt.Sprintf("%s, peak of memory over idle: %s", name, about), unit: size,
					product: timing{wall: series{max(peak-rest, 0)}}, aims: []aim{{atMost: 64 << 20}},
				})
			}
		}
		if err := os.RemoveAll(filepath.Dir(from.db)); err != nil {
			return err
		}
	}
	return nil
}

// exportable is a database with one session.
type exportable struct {
	db string
	id session.ID
}

func (b *bench) exportable(ctx context.Context, name string, t *turns) (exportable, error) {
	dir := filepath.Join(b.work, "exports", name)
	e := exportable{db: filepath.Join(dir, "sessions.db")}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return e, err
	}
	from, err := lines("2026-02-03T09-00-00-000Z_one.jsonl", piHeader, piLine)(ctx, b, dir, t)
	if err != nil {
		return e, err
	}
	if _, _, err := b.runImport(ctx, e.db, "pi", from); err != nil {
		return e, err
	}
	s, err := store.Open(ctx, e.db, store.Options{ReadOnly: true})
	if err != nil {
		return e, err
	}
	all, _, err := s.Sessions(ctx, store.Filter{}, store.Page{Limit: 1})
	if err == nil && len(all) != 1 {
		err = errors.New("the session is not there")
	}
	if err == nil {
		e.id = all[0].ID
	}
	return e, errors.Join(err, s.Close(), os.Remove(from))
}

// runExport exports the session into a file, which it removes.
func (b *bench) runExport(ctx context.Context, from exportable, format string, masked bool) (wall time.Duration, peak float64, err error) {
	to := filepath.Join(filepath.Dir(from.db), "out")
	args := []string{"export", string(from.id), "--format", format, "-o", to, "--force", "--json"}
	if masked {
		args = append(args, "--redact")
	}
	cmd, err := b.command(ctx, from.db, args...)
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if peak, err = runWatched(cmd); err != nil {
		return 0, 0, fmt.Errorf("export to %s: %w", format, err)
	}
	wall = time.Since(start)
	info, err := os.Stat(to)
	if err == nil && info.Size() == 0 {
		err = fmt.Errorf("the export to %s is empty", format)
	}
	return wall, peak, errors.Join(err, os.Remove(to))
}
