package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"sessiond/internal/session"
	"sessiond/internal/web/problem"
)

// request is the data of a request beside its input.
type request struct {
	id    string // for the log and for problems
	route string // method and path, as an Idempotency-Key is bound to them
	body  *brokenBody
	query url.Values

	releases []func() // of what is reserved for the answer
}

// release returns the memory that is reserved for the answer.
func (r *request) release() {
	for _, release := range r.releases {
		release()
	}
	r.releases = nil
}

type requestKey struct{}

// requestOf returns the request of a handler's context.
func requestOf(ctx context.Context) *request {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r
	}
	return &request{}
}

// queryError returns an error if the address has a parameter twice, of which only one would be read. Codes: Invalid.
func (r *request) queryError() error {
	for _, name := range slices.Sorted(maps.Keys(r.query)) {
		if n := len(r.query[name]); n > 1 && !isInclude(name) {
			return session.Errorf(session.Invalid, "%s is %d times in the address: give it once", name, n).
				At("query."+name, "must be there once")
		}
	}
	return nil
}

// bodyError returns an error if the body could not be read. Codes: Malformed (the connection broke), Busy
// (other bodies are too large).
func (r *request) bodyError() error {
	switch {
	case r.body == nil || r.body.failed == nil:
		return nil
	case errors.Is(r.body.failed, errManyBodies):
		return errManyBodies
	}
	return session.Errorf(session.Malformed, "the body is incomplete: the connection broke")
}

// brokenBody records a read error and reports the end of the body instead, because the framework
// treats read errors as internal. It passes timeouts on, which the framework knows.
type brokenBody struct {
	io.ReadCloser
	failed error

	inFlight *atomic.Int64 // bytes of all bodies that are being read or handled
	read     int64         // of them this body's
}

// maxInFlight bounds the bytes of all bodies at once: an append holds some copies of its own.
const maxInFlight = 64 << 20

var errManyBodies = session.Errorf(session.Busy,
	"other requests with large bodies are being handled; nothing was stored, try again soon")

func (b *brokenBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if b.inFlight.Add(int64(n)) > maxInFlight {
		err = errManyBodies
	}
	var timeout net.Error
	if err == nil || errors.Is(err, io.EOF) || errors.As(err, &timeout) && timeout.Timeout() {
		return n, err
	}
	b.failed = err
	return n, io.EOF
}

// answer records the status, for the log, the metrics and the panic handler.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(code int) {
	if a.status == 0 {
		a.status = code
	}
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// around assigns the request's id, recovers from panics, logs and counts.
func (s *Server) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		req := &request{
			id: newRequestID(), route: r.Method + " " + r.URL.Path,
			body: &brokenBody{ReadCloser: r.Body, inFlight: &s.inFlight}, query: r.URL.Query(),
		}
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, req))
		r.Body = req.body
		a := &answer{ResponseWriter: w}
		a.Header().Set("X-Request-Id", req.id)
		a.Header().Set("X-Content-Type-Options", "nosniff")
		a.Header().Set("Cache-Control", "no-store")
		defer func() {
			s.inFlight.Add(-req.body.read)
			req.release()
			if v := recover(); v != nil {
				s.panicked(a, r, req, v)
			}
			s.metrics.observe(r.Pattern, a.status, time.Since(began))
			s.log.Debug().Str("request_id", req.id).Str("method", r.Method).Str("route", r.Pattern).
				Int("status", a.status).Dur("took", time.Since(began)).Msg("request")
		}()
		next.ServeHTTP(a, r)
	})
}

// panicked answers after a panic. http.ErrAbortHandler is no defect: it closes the connection on
// purpose, which only net/http can do.
func (s *Server) panicked(a *answer, r *http.Request, req *request, v any) {
	if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so, too
		panic(v)
	}
	if r.Context().Err() == nil {
		s.log.Error().Str("request_id", req.id).Str("route", r.Pattern).Interface("panic", v).Bytes("stack",
			debug.Stack()).Msg("a handler panicked")
	}
	if a.status != 0 { // half an answer is out: the caller must see that it is broken
		panic(http.ErrAbortHandler)
	}
	p := problem.New(session.Internal, "internal error: the log of sessiond has the cause under this request id")
	p.RequestID = req.id
	p.Write(a)
}

func newRequestID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
