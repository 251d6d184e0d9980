package main

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// open asks for a page as a browser does, or submits a form to it.
func (d *daemon) open(path string, form url.Values) (status int, html string) {
	d.t.Helper()
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	req := testkit.Must(http.NewRequest(method, "http://sessiond"+path, strings.NewReader(body)))(d.t)
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := http.Client{Transport: d.client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	res := testkit.Must(client.Do(req))(d.t)
	defer res.Body.Close()
	return res.StatusCode, string(testkit.Must(io.ReadAll(res.Body))(d.t))
}

// The database goes away under the page and the API: pages are shown below an alarm, a change says why it was not made,
// the daemon lives on, and goes on by itself where the database comes back.
func TestPageOfADatabaseThatGoesAway(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name   string
		gone   func(t *testing.T, dir, db string)
		back   func(t *testing.T, dir, db string) // nil: it does not come back
		status int                                // of a change
		said   string                             // about it
	}{
		{"moved", func(t *testing.T, _, db string) {
			testkit.Check(t, os.Rename(db, db+".away"))
		}, func(t *testing.T, _, db string) {
			testkit.Check(t, os.Rename(db+".away", db))
		}, http.StatusServiceUnavailable, "is gone"},
		{"deleted", func(t *testing.T, _, db string) {
			testkit.Check(t, os.Remove(db))
		}, nil, http.StatusServiceUnavailable, "is gone"},
		{"replaced", func(t *testing.T, _, db string) {
			testkit.Check(t, errors.Join(os.Rename(db, db+".old"), exec.Command("cp", db+".old", db).Run()))
		}, nil, http.StatusServiceUnavailable, "another file"},
		{"full disk", func(t *testing.T, dir, _ string) {
			fill(t, filepath.Join(dir, "filler"))
		}, func(t *testing.T, dir, _ string) {
			testkit.Check(t, os.Remove(filepath.Join(dir, "filler")))
		}, http.StatusInsufficientStorage, "disk"},
	} {
		t.Run(way.name, func(t *testing.T) {
			if storetest.OnPostgres() {
				t.Skip("PostgreSQL has no file here")
			}
			dir := t.TempDir()
			if way.name == "full disk" {
				dir = smallDisk(t, 16)
			}
			d := startDaemon(t, dir)
			id := d.newSession()
			way.gone(t, dir, d.db())
			d.mustRefuse(id, way.status, way.said)
			for _, path := range []string{"/", "/s/" + string(id), "/usage", "/?q=plan"} {
				status, html := d.open(path, nil)
				if status != http.StatusOK || !strings.Contains(html, `role="alert"`) {
					t.Errorf("%s: %d %.300s", path, status, html)
				}
			}
			if way.back == nil {
				return
			}
			way.back(t, dir, d.db())
			d.mustChange(id)
		})
	}
	t.Run("PostgreSQL", func(t *testing.T) {
		cluster := storetest.NewCluster(t)
		network := newProxy(t, cluster.Host())
		d := startDaemonOn(t, t.TempDir(), "", "SESSIOND_DB="+network.address())
		id := d.newSession()
		network.reset()
		d.mustRefuse(id, http.StatusServiceUnavailable, "PostgreSQL")
		for _, path := range []string{"/", "/s/" + string(id), "/usage", "/?q=plan"} {
			if status, html := d.open(path, nil); status != http.StatusServiceUnavailable || !strings.Contains(html, "<h1>") {
				t.Errorf("%s: %d %.300s", path, status, html)
			}
		}
		network.restore()
		d.mustChange(id)
	})
}

// mustRefuse changes a session by its page and by the API, which answer why they cannot.
func (d *daemon) mustRefuse(id session.ID, status int, said string) {
	d.t.Helper()
	large := strings.Repeat("a long note ", 800) // a full disk may have room for a few bytes
	got, html := d.open("/s/"+string(id)+"/note", url.Values{"text": {large}, "revision": {"0"}})
	if got != status || !strings.Contains(html, said) || !strings.Contains(html, "<h1>") ||
		!strings.Contains(html, "</html>") {
		d.t.Errorf("the page answers %d, want %d, with %q: %s", got, status, said, html)
	}
	got, err := d.do(http.MethodPut, "/v1/sessions/"+string(id)+"/note", map[string]string{"text": large}, nil)
	if got != status || err == nil || !strings.Contains(err.Error(), said) {
		d.t.Errorf("the API answers %d, want %d, with %q: %v", got, status, said, err)
	}
	if got, err := d.do(http.MethodGet, "/healthz", nil, nil); got != http.StatusOK {
		d.t.Errorf("/healthz: %d %v", got, err)
	}
}

// mustChange changes a session once more.
func (d *daemon) mustChange(id session.ID) {
	d.t.Helper()
	eventually(d.t, "a change", func() bool {
		status, _ := d.open("/s/"+string(id)+"/star", url.Values{})
		return status == http.StatusSeeOther
	})
}
