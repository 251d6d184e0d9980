package sessiond

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Event is a change in the store. It has no text of messages.
type Event struct {
	ID        string          `json:"-"` // the stream continues after it
	Type      string          `json:"type"`
	SessionID string          `json:"session_id"`
	Seq       int64           `json:"seq"`  // of a message
	Data      json.RawMessage `json:"data"` // of gap and dropped: what the stream says
	CreatedAt time.Time       `json:"created_at"`
}

// EventsQuery says which events a stream has.
type EventsQuery struct {
	After   string // the id of the last event that is known; "": only new events, "0": all that are kept
	Session string // only those of this session
}

// Events yields the events of the store until the context ends. A stream that breaks off continues behind the last
// event, also after a restart of the daemon: each event comes once. An event of type gap says that older ones are
// deleted. An error ends the stream: the daemon refused it, or the first attempts found none. A daemon that was there
// is awaited.
func (c *Client) Events(ctx context.Context, query EventsQuery) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		last, connected := query.After, false
		for failures := 1; ctx.Err() == nil; failures++ {
			res, err := c.send(ctx, http.MethodGet, "/v1/events", eventsQuery(query.Session, last), nil,
				[]Option{Header("Accept", "text/event-stream"), func(r *request) { r.streams = true }})
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && !(connected && CodeOf(err) == CodeUnreachable):
				yield(Event{}, err)
				return
			case err == nil:
				connected = true
				for e := range readEvents(res.Body) {
					failures = 0
					if e.ID != "" {
						last = e.ID
					}
					if !yield(e, nil) {
						_ = res.Body.Close()
						return
					}
				}
				_ = res.Body.Close()
			}
			_ = sleep(ctx, pauseBefore(max(failures, 1)))
		}
	}
}

func eventsQuery(session, after string) url.Values {
	query := url.Values{}
	if session != "" {
		query.Set("session", session)
	}
	if after != "" {
		query.Set("after", after)
	}
	return query
}

// readEvents yields the events of a stream of Server-Sent Events until it ends or breaks.
func readEvents(stream io.Reader) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		lines := bufio.NewScanner(stream)
		lines.Buffer(nil, 16<<20)
		var id, kind, data string
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case name == "id":
				id = value
			case name == "event":
				kind = value
			case name == "data":
				data += value
			case name == "" && value == "" && data != "": // the end of an event
				e := Event{}
				if json.Unmarshal([]byte(data), &e) != nil || e.Type == "" {
					e = Event{Type: kind, Data: json.RawMessage(data)}
				}
				e.ID = id
				if !yield(e) {
					return
				}
				id, kind, data = "", "", ""
			}
		}
	}
}

// ExportSession returns a session in a file's form, which the caller closes. format is one of those of
// `sessiond export`; "": the default.
func (c *Client) ExportSession(ctx context.Context, id, format string, options ...Option) (io.ReadCloser, error) {
	query := url.Values{"format": {format}}
	if format == "" {
		query = nil
	}
	res, err := c.send(ctx, http.MethodGet, "/v1/sessions/"+escape(id)+"/export", query, nil,
		append(options, Header("Accept", "*/*"), func(r *request) { r.streams = true }))
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}
