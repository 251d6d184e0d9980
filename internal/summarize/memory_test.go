package summarize

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"sessiond/internal/session"
)

func said(row int64, role session.Role, text string) session.Message {
	m := session.Message{RowID: row, Kind: session.KindMessage, Role: role, Origin: session.Person, Parts: []session.Part{session.TextPart(text)}}
	if role == session.Assistant {
		m.Origin, m.Finish = session.Model, session.FinishStop
	}
	return m
}

func words(s string) int64 { return int64(len(s)+3) / 4 }

func digestOf(t *testing.T, e *Extractive, msgs ...session.Message) string {
	t.Helper()
	s, err := e.Summarize(t.Context(), session.SummaryRequest{Messages: msgs, MaxTokens: 300, Instructions: "mind the ports"})
	if err != nil {
		t.Fatal(err)
	}
	return s.Text
}

// A digest of messages that are known is that of one who reads them for the first time, whatever
// stands around them.
func TestWhatIsRememberedChangesNoDigest(t *testing.T) {
	var msgs []session.Message
	for i := range int64(60) {
		msgs = append(msgs,
			said(2*i+1, session.User, fmt.Sprintf("Keep port %d for Service%d. Never restart it. 端口%d不要改。\n/srv/a%d/config.yaml", 8000+i, i%7, i, i)),
			said(2*i+2, session.Assistant, fmt.Sprintf("Done: service%d listens on %d now. Never restart it.", i%7, 8000+i)))
	}
	known := NewExtractive(words)
	for _, span := range [][2]int{{0, 40}, {20, 120}, {0, 120}, {60, 61}, {0, 120}} {
		part := msgs[span[0]:span[1]]
		if got, want := digestOf(t, known, part...), digestOf(t, NewExtractive(words), part...); got != want {
			t.Fatalf("messages %v:\n%s\nread for the first time:\n%s", span, got, want)
		}
	}
	if len(known.known.young) != len(msgs) {
		t.Errorf("%d of %d texts are remembered", len(known.known.young), len(msgs))
	}
	known.Forget()
	if known.known.of(textKey{1, 0}) != nil {
		t.Error("what was to be forgotten is known")
	}
}

// What a later entry says in the place of a stored text is told, and not that.
func TestAnotherTextOfTheSameMessageIsReadAnew(t *testing.T) {
	e := NewExtractive(words)
	digestOf(t, e, said(1, session.User, "The password file lies in /etc/shadow."))
	if got := digestOf(t, e, said(1, session.User, "The list lies in /srv/list.txt.")); !strings.Contains(got, "/srv/list.txt") || strings.Contains(got, "shadow") {
		t.Errorf("it tells of another text:\n%s", got)
	}
}

func TestTheMemoryOfTextsIsBounded(t *testing.T) {
	var m memory
	var rd reader
	long := strings.Repeat("The quick brown fox 12 jumps over the lazy dog 34. ", 2000)
	for row := range int64(400) {
		m.read(&rd, row+1, 0, passage{text: long[row:], by: byTool})
		m.read(&rd, 1, 0, passage{text: long, by: byTool}) // which is used again and again
	}
	sum := 0
	for _, known := range []map[textKey]*remembered{m.young, m.old} {
		for _, r := range known {
			sum += r.size()
		}
	}
	if sum > mostRemembered || sum < mostRemembered/4 {
		t.Errorf("it holds %d bytes, at most %d are allowed", sum, mostRemembered)
	}
	if m.of(textKey{1, 0}) == nil || m.of(textKey{2, 0}) != nil {
		t.Error("it forgot what is used, or keeps what is not")
	}
}

// processorTime is what this process has used so far: others use the processor, too.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkDigestOfAFullWindow holds digests of known messages against first ones, in pairs.
func BenchmarkDigestOfAFullWindow(b *testing.B) {
	var msgs []session.Message
	for size := 0; size < 800_000; {
		i := len(msgs)
		m := said(int64(i+1), []session.Role{session.User, session.Assistant}[i%2], strings.Repeat(fmt.Sprintf("internal/web/handler%d.go:%d: func handler%d(w http.ResponseWriter) error, which retries %d times.\n", i, i*3, i, i%7), 12))
		size += len(m.Text())
		msgs = append(msgs, m)
	}
	for _, c := range []struct {
		name  string
		known bool
	}{{"first", false}, {"known", true}} {
		b.Run(c.name, func(b *testing.B) {
			e := NewExtractive(words)
			b.ReportAllocs()
			began := processorTime(b)
			defer func() { b.ReportMetric(float64(processorTime(b)-began)/1e6/float64(b.N), "cpu-ms/op") }()
			for b.Loop() {
				if !c.known {
					e.Forget()
				}
				if _, err := e.Summarize(b.Context(), session.SummaryRequest{Messages: msgs, MaxTokens: 2000}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
