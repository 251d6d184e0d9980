package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	past "sessiond/internal/history"
	"sessiond/internal/history/claudecode"
	"sessiond/internal/history/codex"
	"sessiond/internal/history/openclaw"
	"sessiond/internal/history/pi"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/testkit/samples"
)

// sink takes what an import brings and keeps nothing: what is left is the reading, and the
// measuring and checking that an import does outside of transactions.
type sink struct{ *store.Store }

func (sink) Import(_ context.Context, b store.ImportBatch) (store.ImportResult, error) {
	return store.ImportResult{Session: session.Session{ID: "20260101_001"}, Created: true, Messages: len(b.Messages), Calls: len(b.Calls)}, nil
}

// BenchmarkReading tells what an import costs without the database: MB/s, and for a message
// processor time, of all goroutines and of the collector, and allocations.
func BenchmarkReading(b *testing.B) {
	none := func(string) string { return "" }
	sources := map[string]past.Source{
		"pi": pi.New(none), "claude-code": claudecode.New(none, time.Now), "codex": codex.New(none, time.Now), "openclaw": openclaw.New(none),
	}
	for _, from := range []string{"real", "generated"} {
		for _, name := range []string{"pi", "claude-code", "codex", "openclaw"} {
			b.Run(from+"/"+name, func(b *testing.B) {
				dir := filepath.Join(b.TempDir(), "from")
				if from == "real" {
					dir = filepath.Join(samples.Dir(b), name)
				} else {
					generate(b, name, dir)
				}
				readFolder(b, sources[name], dir)
			})
		}
	}
}

func generate(b *testing.B, name, dir string) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	if name == "pi" { // those of the import's own rates
		if err := writeTranscripts(dir, 5000); err != nil {
			b.Fatal(err)
		}
		return
	}
	for _, p := range programs() {
		if p.source != name {
			continue
		}
		if _, err := p.write(b.Context(), nil, dir, &turns{author: newAuthor(5), most: 4 << 20}); err != nil {
			b.Fatal(err)
		}
	}
}

func readFolder(b *testing.B, source past.Source, dir string) {
	s, err := store.Open(b.Context(), filepath.Join(b.TempDir(), "sessions.db"), options())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	weight, err := weigh(dir)
	if err != nil {
		b.Fatal(err)
	}
	im := past.Importer{Store: sink{s}}
	messages := 0
	b.SetBytes(int64(weight))
	b.ReportAllocs()
	used := processorTime()
	for b.Loop() {
		done, err := im.Run(b.Context(), source, []string{dir})
		if err != nil {
			b.Fatal(err)
		}
		messages += done.Records.Imported + done.Records.Raw
	}
	b.ReportMetric(float64((processorTime()-used).Microseconds())/float64(messages), "µs/message")
	b.ReportMetric(float64(messages)/float64(b.N), "messages")
}
