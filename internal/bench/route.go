package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
)

// routes measures POST /v1/route beside a plain append to the same daemon, both over one
// kept-alive connection: a key whose session goes on, and one that is reset each time.
func (b *bench) routes(ctx context.Context) (err error) {
	d, err := b.serve(ctx, filepath.Join(b.work, "route", "sessions.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	lines, err := d.lines(1)
	if err != nil {
		return err
	}
	id, err := newSession(lines[0])
	if err != nil {
		return err
	}
	body := func(v map[string]any) (string, error) {
		raw, err := json.Marshal(v)
		return string(raw), err
	}
	message, err := body(map[string]any{"messages": []any{map[string]any{"role": "user", "content": b.text}}})
	if err != nil {
		return err
	}
	goesOn, err := body(map[string]any{"channel": "telegram", "chat_type": "group", "peer": "-100123", "text": b.text, "sender": "7"})
	if err != nil {
		return err
	}
	variants := []variant{}
	for _, v := range []struct{ name, path, body string }{
		{"append", "/v1/sessions/" + id + "/messages", message},
		{"route", "/v1/route", goesOn},
		{"route with a reset", "/v1/route", `{"key":"main","text":"/new and now something else"}`},
	} {
		sent := request("POST", v.path, v.body)
		variants = append(variants, variant{name: v.name, used: d.processorTime, run: func(_ context.Context, n int) error {
			return each(n, func(int) error { return lines[0].send(sent, nil) })
		}})
	}
	times, err := race(ctx, b.rounds, b.count(200), variants...)
	if err != nil {
		return err
	}
	const against = "a plain append to the same daemon"
	b.add(row{name: "route over HTTP, the session goes on", product: times[1], baseline: times[0], against: against, aims: []aim{{ratio: 2}}})
	b.add(row{name: "route over HTTP, a reset makes the next session", product: times[2], baseline: times[0], against: against, aims: []aim{{ratio: 2}}})
	return nil
}
