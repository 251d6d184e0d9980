package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"sessiond/internal/analytics"
	"sessiond/internal/search"
	"sessiond/internal/store"
	"sessiond/internal/tokens"
	"sessiond/internal/web/api"
)

// BenchmarkAppend appends one message a request over loopback, each client to a session of its own.
func BenchmarkAppend(b *testing.B) {
	dir := b.TempDir()
	st, err := store.Open(b.Context(), filepath.Join(dir, "sessions.db"), store.Options{Log: zerolog.Nop(), Measure: tokens.Reference().Measure})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	index, err := search.Open(b.Context(), filepath.Join(dir, "search.db"), st)
	if err != nil {
		b.Fatal(err)
	}
	defer index.Close()
	server := httptest.NewServer(api.New(api.Deps{
		Store: st, Contexts: manager(st), Search: index, Reports: analytics.New(st.Reader(), nil),
		Catalogue: catalogue{}, Log: zerolog.New(io.Discard).Level(zerolog.InfoLevel),
	}))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var failed atomic.Int64
	for _, clients := range []int{1, 16} {
		b.Run(map[int]string{1: "1 client", 16: "16 clients"}[clients], func(b *testing.B) {
			b.SetParallelism(max(1, clients/2)) // times GOMAXPROCS
			if clients == 1 {
				b.SetParallelism(1)
			}
			b.RunParallel(func(pb *testing.PB) {
				sess, err := st.CreateSession(b.Context(), store.NewSession{})
				if err != nil {
					b.Error(err)
					return
				}
				url := server.URL + "/v1/sessions/" + string(sess.ID) + "/messages"
				for pb.Next() {
					resp, err := client.Post(url, "application/json", strings.NewReader(`{"messages":[{"role":"user","content":"How many files are there in the folder, and which one is the largest?"}]}`))
					if err != nil {
						b.Error(err)
						return
					}
					if resp.StatusCode != http.StatusCreated {
						failed.Add(1)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		})
	}
	if failed.Load() > 0 {
		b.Errorf("%d appends failed", failed.Load())
	}
}
