package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
)

// TestMemoryReturnsAfterASoak loads the daemon for a while and again for longer. A minute after the last
// write its memory is what it was after the first load.
func TestMemoryReturnsAfterASoak(t *testing.T) {
	t.Parallel()
	effort.OnlyLong(t, "it takes eight minutes")
	d := startDaemon(t, t.TempDir())
	ids := make([]session.ID, 8)
	for i := range ids {
		ids[i] = d.newSession()
	}
	requests := 0
	rest := func(load time.Duration) int64 {
		requests += d.soak(ids, load)
		time.Sleep(75 * time.Second)
		return d.memory()
	}
	before := rest(time.Minute)
	after := rest(4 * time.Minute)
	t.Logf("%d requests; %d MiB after the first load, %d MiB after the soak", requests, before>>20, after>>20)
	if after > before*13/10 {
		t.Errorf("the daemon keeps %d MiB, %d MiB before the soak", after>>20, before>>20)
	}
}

// soak appends, reads contexts and pages, searches and exports for a time. It returns the number of requests.
func (d *daemon) soak(ids []session.ID, load time.Duration) (requests int) {
	d.t.Helper()
	end := time.Now().Add(load)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for c, id := range ids {
		wg.Go(func() {
			own := "/v1/sessions/" + string(id)
			for n := 0; time.Now().Before(end); n++ {
				text := fmt.Sprintf("word%d %s", n%997, strings.Repeat("What does it charge? ", 10))
				asks := []struct {
					method, path string
					body         any
				}{{"POST", own + "/messages", map[string]any{"messages": []any{map[string]string{
					"role":    "user",
					"content": text,
				}}}}}
				if n%20 == c {
					asks = append(asks, asks[0], asks[0])
					asks[1].method, asks[1].path, asks[1].body = "GET", own+"/context?dialect=openai.chat&window=32000", nil
					asks[2].method, asks[2].path, asks[2].body = "GET", fmt.Sprintf("/v1/search?q=word%d", n%997), nil
				}
				for _, a := range asks {
					if _, err := d.do(a.method, a.path, a.body, nil); err != nil {
						d.t.Errorf("%v", err)
						return
					}
				}
				mu.Lock()
				requests += len(asks)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return requests
}

// memory returns the bytes of the daemon that are in memory.
func (d *daemon) memory() (n int64) {
	d.t.Helper()
	status := testkit.Must(os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid)))(d.t)
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	testkit.Must(fmt.Sscan(after, &n))(d.t)
	return n << 10
}
