package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// says appends a message for each word.
func (d *daemon) says(id session.ID, words ...string) {
	d.t.Helper()
	for _, word := range words {
		body := map[string]any{"messages": []any{map[string]string{"role": "user", "content": "the word is " + word}}}
		testkit.Must(d.do("POST", "/v1/sessions/"+string(id)+"/messages", body, nil))(d.t)
	}
}

// words returns prefix1, prefix2, … prefixn.
func words(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d", prefix, i+1))
	}
	return all
}

// finds reports whether a search finds each of the words in one message, and none of the others, with an index that
// has everything.
func (d *daemon) finds(some, none []string) bool {
	d.t.Helper()
	count := func(word string) int {
		var found struct {
			Hits    []struct{} `json:"hits"`
			Pending int        `json:"pending"`
		}
		if _, err := d.do("GET", "/v1/search?q="+url.QueryEscape(`"`+word+`"`), nil, &found); err != nil ||
			found.Pending > 0 {
			return -1
		}
		return len(found.Hits)
	}
	for _, word := range some {
		if count(word) != 1 {
			return false
		}
	}
	for _, word := range none {
		if count(word) != 0 {
			return false
		}
	}
	return true
}

// reads returns the context of a session.
func (d *daemon) reads(id session.ID) string {
	d.t.Helper()
	res := testkit.Must(d.client.Get("http://sessiond/v1/sessions/" + string(id) + "/context?dialect=openai.chat"))(d.t)
	defer res.Body.Close()
	return string(testkit.Must(io.ReadAll(res.Body))(d.t))
}

// gaps follows a daemon's events, and connects again with the last id, until the test ends; it counts the gaps
// that the daemon tells.
func (d *daemon) gaps() (count func() int) {
	var mu sync.Mutex
	n, ready := 0, make(chan struct{})
	go func() {
		for id := ""; d.t.Context().Err() == nil; {
			req, _ := http.NewRequestWithContext(d.t.Context(), http.MethodGet, "http://sessiond/v1/events", nil)
			req.Header.Set("Last-Event-ID", id)
			res, err := d.client.Do(req)
			if err != nil {
				return // the daemon is gone
			}
			for lines := bufio.NewScanner(res.Body); lines.Scan(); {
				if value, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
					if id == "" {
						close(ready)
					}
					id = value
				}
				if lines.Text() == "event: gap" {
					mu.Lock()
					n++
					mu.Unlock()
				}
			}
			res.Body.Close()
		}
	}()
	<-ready
	return func() int { mu.Lock(); defer mu.Unlock(); return n }
}

// TestDaemonsFollowARestoredServer restores the server under two daemons that run on, as a failover does that
// loses the last writes. Ids of sessions, messages and events are used again, with other content. Both daemons
// find and show what is stored, nothing that is lost, and tell their listeners.
func TestDaemonsFollowARestoredServer(t *testing.T) {
	t.Parallel()
	cluster := storetest.NewCluster(t)
	a := startDaemonOn(t, t.TempDir(), "", "SESSIOND_DB="+cluster.Address())
	b := startDaemonOn(t, t.TempDir(), "", "SESSIOND_DB="+cluster.Address())
	both := []*daemon{a, b}
	id := a.newSession()
	kept, lost := words("kept", 3), words("lost", 6)
	a.says(id, kept...)
	cluster.Stop()
	cluster.Save()
	cluster.Start()
	ready := func(d *daemon) {
		eventually(t, "daemon that is ready", func() bool {
			status, _, _, _ := d.ask("GET", "/readyz", "", "")
			return status == 200
		})
	}
	ready(a)
	ready(b)
	const body = `{"messages":[{"role":"user","content":"with a key"}]}`
	if status, _, _, said := a.ask("POST", "/v1/sessions/"+string(id)+"/messages", body, "the-same"); status != 201 {
		t.Fatalf("%d %s", status, said)
	}
	a.says(id, lost...)
	next := a.newSession()
	a.says(next, "elsewhere")
	gaps := []func() int{a.gaps(), b.gaps()}
	for _, d := range both {
		eventually(t, "hit of a lost word", func() bool { return d.finds(append(kept, lost...), nil) })
		if text := d.reads(id); !strings.Contains(text, "lost6") {
			t.Errorf("the context lacks a word: %s", text)
		}
	}

	cluster.Stop()
	cluster.Restore()
	cluster.Start()
	for i := range both {
		eventually(t, "gap", func() bool { return gaps[i]() > 0 })
	}
	ready(b)
	fresh := words("fresh", 20)
	// lost, so it is stored
	if status, _, _, said := b.ask("POST", "/v1/sessions/"+string(id)+"/messages", body, "the-same"); status != 201 {
		t.Errorf("a repeated append: %d %s", status, said)
	}
	b.says(id, fresh...)
	again := b.newSession()
	if again[:8] == next[:8] && again != next { // on one day
		t.Errorf("the next session is %s: this test wants the lost id %s again", again, next)
	}
	b.says(again, "here")
	for i, d := range both {
		ready(d)
		eventually(t, "hit of each new word and of no lost one", func() bool {
			return d.finds(append(append(kept, fresh...), "here", "with a key"), append(lost, "elsewhere"))
		})
		if text := d.reads(id); strings.Contains(text, "lost") || strings.Count(text, "with a key") != 1 ||
			!strings.Contains(text, "fresh20") {
			t.Errorf("daemon %d shows %s", i, text)
		}
	}
	h := home{t, t.TempDir()}
	h.run("doctor", "--db", cluster.Address())
}

// TestRestoredFileIsSearched replaces sessions.db by an older copy, as README says, and keeps search.db.
func TestRestoredFileIsSearched(t *testing.T) {
	t.Parallel()
	storetest.OnFile(t)
	for name, n := range map[string]int{"fewer messages than before": 2, "more than before": 20} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := startDaemon(t, dir)
			id := d.newSession()
			kept, lost, fresh := words("kept", 3), words("lost", 6), words("fresh", n)
			d.says(id, kept...)
			copied := filepath.Join(t.TempDir(), "copy.db")
			h := home{t, dir}
			h.run("backup", copied)
			d.says(id, lost...)
			eventually(t, "hit of a lost word", func() bool { return d.finds(append(kept, lost...), nil) })
			d.stop()
			testkit.Check(t, os.WriteFile(d.db(), testkit.Must(os.ReadFile(copied))(t), 0o600))
			h.run("append", string(id), "user", "the word is early") // before the daemon starts
			d = startDaemon(t, dir)
			d.says(id, fresh...)
			eventually(t, "hit of each new word and of no lost one", func() bool {
				return d.finds(append(append(kept, fresh...), "early"), lost)
			})
			d.stop()
			if out := string(h.run("search", "lost4")); strings.Contains(out, "the word is") {
				t.Errorf("the command finds %s", out)
			}
			h.run("doctor")
		})
	}
}
