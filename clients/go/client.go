// Package sessiond is a client of sessiond, the session store of the AI agents on a host. It needs nothing but the
// standard library.
//
//	client := sessiond.New(sessiond.Options{}) // the daemon of this host
//	s, err := client.CreateSession(ctx, sessiond.NewSessionRequest{Title: "tides"})
//	turn, err := client.TakeTurn(ctx, s.ID, sessiond.TurnRequest{
//		Dialect:  sessiond.Anthropic,
//		Messages: []any{map[string]any{"role": "user", "content": "How high is the water?"}},
//	})
//	// send turn.Context.Request with a model to the provider, append its reply
package sessiond

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options say how a client reaches its daemon. The zero value finds the daemon of this host as the sessiond command
// does.
type Options struct {
	Place
	// Retries after the first attempt, of requests that may be repeated; 0: 4, negative: none.
	Retries int
	// Timeout of an attempt; 0: a minute. The context bounds all attempts together.
	Timeout time.Duration
	// Connect is how long an attempt may take to reach the daemon; 0: as long as Timeout.
	Connect time.Duration
}

// Client is a client of one daemon. It may be used by several goroutines.
type Client struct {
	options Options

	mu    sync.Mutex
	place *Place // nil: to be found
	http  *http.Client
}

// Pauses before a retry: each is twice as long as the one before.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// New returns a client. It connects with the first request.
func New(options Options) *Client {
	if options.Retries == 0 {
		options.Retries = 4
	}
	if options.Timeout == 0 {
		options.Timeout = time.Minute
	}
	return &Client{options: options}
}

// Option changes one request.
type Option func(*request)

type request struct {
	method, path string
	query        url.Values
	body         []byte
	header       http.Header
	repeatable   bool
	streams      bool
	answered     *http.Header
}

// keyed sends an Idempotency-Key, so that a request that is repeated is done once.
func keyed(r *request) {
	r.repeatable = true
	if r.header.Get("Idempotency-Key") == "" {
		r.header.Set("Idempotency-Key", newKey())
	}
}

// IdempotencyKey names a request, so that a later one with the same key and body is not done again, by another client
// either. Without it each call has a key of its own.
func IdempotencyKey(key string) Option { return Header("Idempotency-Key", key) }

// IfMatch binds a change to a revision: another one is an error of CodePreconditionFailed.
func IfMatch(revision int64) Option {
	return Header("If-Match", fmt.Sprintf("%q", strconv.FormatInt(revision, 10)))
}

// IfNone binds a change to that there is nothing yet.
func IfNone() Option { return Header("If-None-Match", "*") }

// Header sends a header.
func Header(name, value string) Option { return func(r *request) { r.header.Set(name, value) } }

// Answered keeps the headers of the answer.
func Answered(header *http.Header) Option { return func(r *request) { r.answered = header } }

// RevisionOf returns the revision in the headers of an answer; 0 if there is none.
func RevisionOf(header http.Header) int64 {
	n, _ := strconv.ParseInt(strings.Trim(header.Get("ETag"), `"`), 10, 64)
	return n
}

// Do does an operation by its method and path, for those that have no method of their own. body is encoded as JSON;
// nil: none. The answer is decoded into answer, which may be nil. Reads and changes that name their object are repeated
// if no answer comes; a POST only with IdempotencyKey.
func (c *Client) Do(ctx context.Context, method, path string, body, answer any, options ...Option) error {
	return c.do(ctx, method, path, nil, body, answer, options)
}

func (c *Client) do(ctx context.Context, method, path string, query url.Values, body, answer any, options []Option,
	more ...Option,
) error {
	res, err := c.send(ctx, method, path, query, body, append(slices.Clone(options), more...))
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return &Error{
			Request: method + " " + path, Status: res.StatusCode, Code: CodeUnreachable,
			Message: "the answer broke off: " + err.Error(), cause: err,
		}
	}
	if answer == nil || len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s %s: the answer is no JSON of this client's version: %w", method, path, err)
	}
	return nil
}

// ask does an operation and returns its answer.
func ask[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any, options []Option,
	more ...Option,
) (*T, error) {
	answer := new(T)
	if err := c.do(ctx, method, path, query, body, answer, options, more...); err != nil {
		return nil, err
	}
	return answer, nil
}

// value is the answer itself, where that is raw JSON.
func value[T any](answer *T, err error) (v T, _ error) {
	if err == nil {
		v = *answer
	}
	return v, err
}

// send does a request and returns the answer of success, whose body the caller closes.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, body any, options []Option,
) (*http.Response, error) {
	r := &request{method: method, path: path, query: query, header: http.Header{}, repeatable: method != http.MethodPost}
	if body != nil {
		encoded, err := encode(body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: the body has no JSON: %w", method, path, err)
		}
		r.body = encoded
		r.header.Set("Content-Type", "application/json")
	}
	for _, apply := range options {
		apply(r)
	}
	if r.header.Get("Idempotency-Key") != "" {
		r.repeatable = true
	}
	retries := max(c.options.Retries, 0)
	if !r.repeatable {
		retries = 0
	}
	for attempt := 1; ; attempt++ {
		res, pause, err := c.attempt(ctx, r, attempt)
		if err == nil {
			if r.answered != nil {
				*r.answered = res.Header
			}
			return res, nil
		}
		if pause < 0 || attempt > retries || sleep(ctx, pause) != nil {
			return nil, err
		}
	}
}

// encode is json.Marshal that leaves <, > and & as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// attempt sends a request once. pause is how long to wait before the next attempt; negative: there should be none.
func (c *Client) attempt(ctx context.Context, r *request, attempt int,
) (res *http.Response, pause time.Duration, err error) {
	client, place := c.reach()
	cancel := func() {}
	bounded := ctx
	if !r.streams {
		bounded, cancel = context.WithTimeout(ctx, c.options.Timeout)
	}
	target := strings.TrimSuffix(place.URL, "/") + r.path
	if place.Socket != "" {
		target = "http://localhost" + r.path
	}
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(bounded, r.method, target, bytes.NewReader(r.body))
	if err != nil {
		cancel()
		return nil, -1, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	req.Header = r.header.Clone()
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	if place.Token != "" {
		req.Header.Set("Authorization", "Bearer "+place.Token)
	}
	res, err = client.Do(req)
	if err != nil {
		cancel()
		c.forget(client)
		return nil, pauseBefore(attempt), c.away(ctx, r, place, attempt, err)
	}
	res.Body = &body{res.Body, cancel}
	if res.StatusCode < 300 {
		return res, 0, nil
	}
	defer res.Body.Close() //nolint:errcheck // an answer that is refused anyway
	err = problemOf(r, res)
	if res.StatusCode != http.StatusServiceUnavailable {
		return nil, -1, err
	}
	pause = pauseBefore(attempt)
	if seconds, parsed := strconv.Atoi(res.Header.Get("Retry-After")); parsed == nil {
		pause = min(time.Duration(seconds)*time.Second, longestPause)
	}
	return nil, pause, err
}

// away is the error of a request without an answer.
func (c *Client) away(ctx context.Context, r *request, place Place, attempts int, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s %s: %w", r.method, r.path, ctx.Err())
	}
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	where := place.URL
	if place.Socket != "" {
		where = place.Socket
	}
	return &Error{
		Request: r.method + " " + r.path, Code: CodeUnreachable, cause: err,
		Message: fmt.Sprintf("no sessiond answers at %s (%v; attempt %d): start it with `sessiond serve`, or name its "+
			"address and token", where, err, attempts),
	}
}

// body ends the time of an attempt when the answer is read.
type body struct {
	io.ReadCloser
	done func()
}

func (b *body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

// reach returns where the daemon is, and who speaks with it.
func (c *Client) reach() (*http.Client, Place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.place == nil {
		place := c.options.Place
		if place.URL == "" && place.Socket == "" {
			found := FindDaemon(nil)
			if place.Token != "" {
				found.Token = place.Token
			}
			place = found
		}
		dialer := net.Dialer{Timeout: c.options.Connect}
		transport := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute}
		if place.Socket != "" {
			transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "unix", place.Socket)
			}
		}
		c.place, c.http = &place, &http.Client{Transport: transport, CheckRedirect: noRedirect}
	}
	return c.http, *c.place
}

// noRedirect keeps the token where it belongs: the daemon redirects nobody who asks for JSON.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// forget has the next attempt find the daemon anew: one that was restarted may listen elsewhere.
func (c *Client) forget(client *http.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http == client {
		c.http.CloseIdleConnections()
		c.place, c.http = nil, nil
	}
}

// Close closes the connections that are not in use. The client may be used afterwards.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

func pauseBefore(attempt int) time.Duration {
	pause := min(firstPause<<min(attempt-1, 10), longestPause)
	return pause/2 + mathrand.N(pause/2) //nolint:gosec // a spread of retries, no secret
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func newKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x", b)
}

func escape(name string) string { return url.PathEscape(name) }

// queryOf returns the parameters of a query's struct that are not zero.
func queryOf(query any) url.Values {
	values := url.Values{}
	of := reflect.ValueOf(query)
	for i := range of.NumField() {
		field := of.Field(i)
		if field.IsZero() {
			continue
		}
		name, style, _ := strings.Cut(of.Type().Field(i).Tag.Get("query"), ",")
		switch v := reflect.Indirect(field).Interface().(type) {
		case map[string]string:
			for key, value := range v {
				if style == "deepObject" {
					key = name + "[" + key + "]"
				}
				values.Set(key, value)
			}
		case []string:
			values.Set(name, strings.Join(v, ","))
		case time.Time:
			values.Set(name, v.Format(time.RFC3339Nano))
		default:
			values.Set(name, fmt.Sprint(v))
		}
	}
	return values
}
