package store

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/tokens"
)

// A text of 50 MB that lies elsewhere takes little memory to store and to read in pieces: a
// process of its own says its peak before it and after each step.
func TestALargeTextTakesLittleMemory(t *testing.T) {
	effort.OnlyLong(t, "it measures memory")
	if peakMemory() == 0 {
		t.Skip("no /proc to ask for the peak")
	}
	s := openTest(t)
	sess := mustCreate(t, s, NewSession{})
	s.Close()
	var peaks map[string]int64
	if err := json.Unmarshal(must(child(t, "memory", s.File(), string(sess.ID)).Output())(t), &peaks); err != nil {
		t.Fatal(err)
	}
	for step, peak := range peaks {
		over := peak - peaks["idle"]
		t.Logf("%s: %d MB, %d over idle", step, peak>>20, over>>20)
		if over > 64<<20 {
			t.Errorf("%s takes %d MB over idle", step, over>>20)
		}
	}
}

func memoryInChild(args []string) error {
	ctx := context.Background()
	s, err := Open(ctx, args[0], Options{CacheKiB: 8 << 10, Measure: tokens.Reference().Measure})
	if err != nil {
		return err
	}
	defer s.Close()
	id := session.ID(args[1])
	peaks := map[string]int64{}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"idle", func() error { return appendOne(s, id, says(session.User, "hello")) }},
		{"storing", func() error {
			return appendOne(s, id, far(session.Tool, func(int) (io.Reader, error) {
				return &endless{line: "one line of a very long output, with an end\n", left: 50 << 20}, nil
			}))
		}},
		{"indexing", func() error {
			_, err := s.MessagesAfter(ctx, 1, 10)
			return err
		}},
		{"copying", func() error {
			var sha string
			if err := s.get(ctx, &sha, `SELECT sha256 FROM blobs`); err != nil {
				return err
			}
			b, err := s.BlobFrom(ctx, sha)
			if err != nil {
				return err
			}
			return appendOne(s, id, session.Message{Role: session.Tool, Parts: []session.Part{{Kind: session.PartText, Blob: &b}}})
		}},
		{"checking", func() error { _, err := s.Doctor(ctx, false); return err }},
	} {
		debug.FreeOSMemory() // no step pays for the one before it
		forgetPeak()
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		peaks[step.name] = peakMemory()
	}
	return json.NewEncoder(os.Stdout).Encode(peaks)
}

func appendOne(s *Store, id session.ID, m session.Message) error {
	_, err := s.Append(context.Background(), Append{Session: id, Messages: []session.Message{m}})
	return err
}

// endless gives a line again and again.
type endless struct {
	line string
	at   int
	left int
}

func (e *endless) Read(p []byte) (n int, err error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	for n < len(p) && e.left > 0 {
		k := copy(p[n:min(len(p), n+e.left)], e.line[e.at:])
		e.at, e.left, n = (e.at+k)%len(e.line), e.left-k, n+k
	}
	return n, nil
}

// forgetPeak makes the kernel take the peak from now on, where it does.
func forgetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peakMemory is the most that this process held, in bytes; 0 where nothing tells.
func peakMemory() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10
}
