package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// side is something that an append carries beside the bare statements: statements more, or
// part of the schema, which is then dropped to see what it costs.
type side struct {
	name string
	part part
	also func(context.Context, *floor) error
	drop []string
}

func sides() []side {
	return []side{
		{name: "reading the session and its head", also: readHead},
		{name: "event in the outbox", also: func(ctx context.Context, f *floor) error {
			_, err := f.exec(ctx, `INSERT INTO events (session_id, type, seq, data, created_at) VALUES (?, ?, ?, ?, ?)`,
				string(f.session), "messages.appended", f.seq, fmt.Sprintf(`{"from":%d}`, f.seq), moment)
			return err
		}},
		{name: "roll-up of the day", also: func(ctx context.Context, f *floor) error {
			_, err := f.exec(ctx, `INSERT INTO daily_usage (day, source, model, messages, prompts) VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (day, source, model) DO UPDATE SET messages = messages + excluded.messages, prompts = prompts + excluded.prompts`,
				day, "sessiond", "", 1, 1)
			return err
		}},
		{name: "idempotency key", also: rememberKey},
		{name: "model call in the ledger", also: func(ctx context.Context, f *floor) error {
			_, err := f.exec(ctx, `INSERT INTO calls (session_id, message_id, purpose, provider, model, day, input_tokens, output_tokens, cost_nanousd, price_source, created_at)
				VALUES (?, ?, 'chat', 'openai', 'gpt-4o', ?, 12000, 300, 33000000, 'catalogue', ?)`, string(f.session), f.row, day, moment)
			return err
		}},
		{name: "tool call as the part (its index)", part: part{kind: "tool_call", tool: "read", callID: "call_1", arguments: `{"path":"internal/store/append.go"}`}},
		{name: "tool result as the part (its index)", part: part{kind: "tool_result", callID: "call_1", answers: true}},
		{name: "touched file", also: func(ctx context.Context, f *floor) error {
			_, err := f.exec(ctx, `INSERT INTO touched_files (path, message_id, op, session_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
				fmt.Sprintf("/home/me/project/internal/%d.go", f.row%50), f.row, "read", string(f.session))
			return err
		}},
		{name: "external id (its index)", part: part{external: true}},
		{name: "savepoint", also: func(ctx context.Context, f *floor) error {
			if _, err := f.exec(ctx, `SAVEPOINT job`); err != nil {
				return err
			}
			_, err := f.exec(ctx, `RELEASE job`)
			return err
		}},
		{name: "triggers that keep messages and parts", drop: []string{`DROP TRIGGER messages_no_replace`, `DROP TRIGGER parts_no_replace`}},
		{name: "index messages_person", drop: []string{`DROP INDEX messages_person`}},
		{name: "index sessions_active", drop: []string{`DROP INDEX sessions_active`}},
		{name: "index sessions_current (of keys)", drop: []string{`DROP INDEX sessions_current`}},
	}
}

func readHead(ctx context.Context, f *floor) error {
	st, err := f.stmt(ctx, `SELECT s.source, s.directory, s.title, s.head_id, s.last_seq, s.compaction_id, s.epoch, s.revision, s.message_count,
		s.total_tokens, s.context_tokens, s.turn_origin, s.active_at, s.inbound_at, s.deleted_at, h.session_id, h.seq, h.depth, h.path_tokens
		FROM sessions s LEFT JOIN messages h ON h.id = s.head_id WHERE s.id = ?`)
	if err != nil {
		return err
	}
	return scanAll(st.QueryContext(ctx, string(f.session)))
}

func rememberKey(ctx context.Context, f *floor) error {
	sum := sha256.Sum256(fmt.Append(nil, f.row))
	key := hex.EncodeToString(sum[:])
	st, err := f.stmt(ctx, `SELECT body_hash, status, session_id, message_id, n FROM idempotency_keys WHERE key_hash = ?`)
	if err != nil {
		return err
	}
	if err := scanAll(st.QueryContext(ctx, key)); err != nil {
		return err
	}
	_, err = f.exec(ctx, `INSERT INTO idempotency_keys (key_hash, body_hash, route, status, session_id, message_id, n, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		key, key, "POST /v1/sessions/x/messages", 201, string(f.session), f.row, 1, moment)
	return err
}

// appendSides measures what each side of an append costs beside the bare statements. The
// disk's waits are taken out (synchronous=OFF, processor time), for they are a thousand times
// what is looked for.
func (b *bench) appendSides(ctx context.Context) (err error) {
	all := sides()
	pragmas := slices.DeleteFunc(writerPragmas(), func(p string) bool {
		return strings.HasPrefix(p, "synchronous") || strings.HasPrefix(p, "wal_autocheckpoint")
	})
	pragmas = append(pragmas, "synchronous(off)", "wal_autocheckpoint(0)") // the log shows what was written
	var floors []*floor
	defer func() {
		for _, f := range floors {
			err = errors.Join(err, f.close())
		}
	}()
	variants := make([]variant, 0, len(all)+1)
	add := func(i int, s side) error {
		f, err := b.newFloor(ctx, fmt.Sprintf("side-%d", i), pragmas, s.drop...)
		if err != nil {
			return err
		}
		floors = append(floors, f)
		variants = append(variants, variant{name: s.name, run: func(ctx context.Context, n int) error {
			return each(n, func(int) error { return f.transact(ctx, 1, s.part, s.also) })
		}})
		return nil
	}
	if err := add(0, side{name: "bare"}); err != nil {
		return err
	}
	for i, s := range all {
		if err := add(i+1, s); err != nil {
			return err
		}
	}
	n := b.count(500)
	times, err := race(ctx, b.rounds, n, variants...)
	if err != nil {
		return err
	}
	written := make([]float64, len(floors))
	for i, f := range floors {
		info, err := os.Stat(f.path + "-wal")
		if err != nil {
			return err
		}
		written[i] = float64(info.Size()) / float64(n*(b.rounds+1)) / 1024
	}
	b.add(row{name: "the bare statements, processor time", product: timing{wall: times[0].cpu}, against: fmt.Sprintf("%.1f KiB of log", written[0])})
	for i, s := range all {
		r := row{name: "+ " + s.name, product: timing{wall: times[i+1].cpu.minus(times[0].cpu)}, unit: more, against: fmt.Sprintf("%+.1f KiB of log", written[i+1]-written[0])}
		if len(s.drop) > 0 {
			r.product.wall = times[0].cpu.minus(times[i+1].cpu)
			r.against = fmt.Sprintf("%+.1f KiB of log", written[0]-written[i+1])
		}
		b.add(r)
	}
	return nil
}
