package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

const (
	listeners  = 50
	eventPace  = 5 * time.Millisecond // 200 events a second
	slowShare  = 0.99
	purgedSize = 10_000 // messages
)

// events measures appends at 200 a second while fifty listeners hear of each, beside the same
// appends to a daemon that nobody listens to. It fails if a listener misses one.
func (b *bench) events(ctx context.Context) (err error) {
	var appends [2]func() ([]time.Duration, error)
	var daemons [2]*daemon
	for i := range daemons {
		d, err := b.serve(ctx, filepath.Join(b.work, fmt.Sprint("events", i), "sessions.db"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.stop()) }()
		l, err := d.dial()
		if err != nil {
			return err
		}
		id, err := newSession(l)
		if err != nil {
			return err
		}
		post := appendOne(id, b.text)
		daemons[i], appends[i] = d, func() ([]time.Duration, error) { return paced(b.count(400), eventPace, l, post) }
	}
	heard := make([]atomic.Int64, listeners)
	for i := range heard {
		l, err := daemons[0].dial()
		if err != nil {
			return err
		}
		defer l.conn.Close() //nolint:errcheck // a stream that has no end of its own
		if err := listen(l); err != nil {
			return err
		}
		go count(l.in, &heard[i])
	}
	var slow [2]timing
	appended := int64(0)
	for round := range b.rounds + 1 {
		for i := range daemons {
			times, err := appends[i]()
			if err != nil {
				return err
			}
			if i == 0 {
				appended += int64(len(times))
			}
			if round > 0 {
				slow[i].wall = append(slow[i].wall, percentile(times, slowShare))
			}
		}
	}
	if err := allHeard(heard, appended); err != nil {
		return err
	}
	b.add(row{
		name: fmt.Sprintf("append, 99th of 100, %d listeners at 200 events a second", listeners), product: slow[0], baseline: slow[1],
		against: "the same with nobody listening", aims: []aim{{ratio: 1.5}},
	})
	return nil
}

// listen opens a stream of events and waits for its first line: from there on it misses nothing.
func listen(l *line) error {
	if _, err := l.conn.Write([]byte("GET /v1/events HTTP/1.1\r\nHost: sessiond\r\n\r\n")); err != nil {
		return err
	}
	for first := true; ; first = false {
		text, err := l.in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("waiting for a stream of events to begin: %w", err)
		}
		if first && !strings.HasPrefix(text, "HTTP/1.1 200 ") {
			return fmt.Errorf("no stream of events: %s", text)
		}
		if strings.HasPrefix(text, "id: ") {
			return nil
		}
	}
}

// count adds up the messages that a stream tells of.
func count(in *bufio.Reader, heard *atomic.Int64) {
	for {
		text, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if bytes.HasPrefix(text, []byte("event: messages.appended")) {
			heard.Add(1)
		}
	}
}

// allHeard waits for the last events on their way.
func allHeard(heard []atomic.Int64, want int64) error {
	deadline := time.Now().Add(10 * time.Second)
	for i := range heard {
		for heard[i].Load() < want {
			if time.Now().After(deadline) {
				return fmt.Errorf("listener %d heard of %d of %d appends", i, heard[i].Load(), want)
			}
			time.Sleep(time.Millisecond)
		}
		if n := heard[i].Load(); n > want {
			return fmt.Errorf("listener %d heard of %d appends, there were %d", i, n, want)
		}
	}
	return nil
}

func appendOne(id, text string) []byte {
	body, err := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": text}}})
	if err != nil {
		panic(err) // a map of strings
	}
	return request("POST", "/v1/sessions/"+id+"/messages", string(body))
}

// paced sends a request n times, no more often than once in a while, and gives what each took.
func paced(n int, every time.Duration, l *line, req []byte) ([]time.Duration, error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	times := make([]time.Duration, n)
	for i := range times {
		<-tick.C
		start := time.Now()
		if err := l.send(req, nil); err != nil {
			return nil, err
		}
		times[i] = time.Since(start)
	}
	return times, nil
}

func percentile(times []time.Duration, share float64) float64 {
	sorted := slices.Sorted(slices.Values(times))
	return float64(sorted[min(len(sorted)-1, int(share*float64(len(sorted))))])
}

// purge measures the slowest append beside the purge of a session of 10,000 messages.
func (b *bench) purge(ctx context.Context) (err error) {
	d, err := b.serve(ctx, filepath.Join(b.work, "purge", "sessions.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	lines, err := d.lines(2)
	if err != nil {
		return err
	}
	beside, err := newSession(lines[0])
	if err != nil {
		return err
	}
	post := appendOne(beside, b.text)
	size := b.count(purgedSize)
	var with, without, took timing
	for range min(b.rounds, 5) {
		doomed, err := b.longSession(lines[0], size)
		if err != nil {
			return err
		}
		quiet, err := paced(100, eventPace, lines[1], post)
		if err != nil {
			return err
		}
		without.wall = append(without.wall, percentile(quiet, 1))
		start, done := time.Now(), make(chan error, 1)
		go func() { done <- lines[0].send(request("DELETE", "/v1/sessions/"+doomed+"?purge=true", ""), nil) }()
		slowest := time.Duration(0)
		for running := true; running; {
			select {
			case err := <-done:
				if err != nil {
					return err
				}
				running = false
			default:
				times, err := paced(1, eventPace, lines[1], post)
				if err != nil {
					return err
				}
				slowest = max(slowest, times[0])
			}
		}
		took.wall = append(took.wall, float64(time.Since(start)))
		with.wall = append(with.wall, float64(slowest))
	}
	b.add(row{
		name: fmt.Sprintf("slowest append beside the purge of %s messages", thousands(size)), product: with, baseline: without,
		against: "slowest of 100 appends before it", aims: []aim{{atMost: float64(50 * time.Millisecond)}},
	})
	b.add(row{name: fmt.Sprintf("purge of %s messages", thousands(size)), product: took})
	return nil
}

func (b *bench) longSession(l *line, size int) (string, error) {
	id, err := newSession(l)
	if err != nil {
		return "", err
	}
	const batch = 500
	messages := make([]any, min(batch, size))
	for i := range messages {
		messages[i] = map[string]any{"role": "user", "content": b.text}
	}
	body, err := json.Marshal(map[string]any{"messages": messages})
	if err != nil {
		return "", err
	}
	post := request("POST", "/v1/sessions/"+id+"/messages", string(body))
	return id, each(size/len(messages), func(int) error { return l.send(post, nil) })
}
