package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"sessiond/internal/session"
)

type eventsInput struct {
	LastEventID string     `header:"Last-Event-ID" doc:"The id of the last event that was seen: the stream goes on after it"`
	After       string     `query:"after" doc:"The same as a parameter; 0: from the oldest event that is kept. Without either the stream begins now"`
	Session     session.ID `query:"session" doc:"Events of this session alone"`
}

// writePatience is how long a listener may take what it is sent; gatherTime is how long a
// stream waits for more after it was woken, so that a burst is one writing.
const (
	writePatience = 20 * time.Second
	gatherTime    = 10 * time.Millisecond
)

// events streams the outbox. Codes: Invalid (an id that is none), NotFound (the session), Busy.
func (s *Server) events(ctx context.Context, in *eventsInput) (*huma.StreamResponse, error) {
	if in.Session != "" {
		at := InSession{in.Session}
		id, err := at.sessionID()
		if err == nil {
			_, err = s.Store.Session(ctx, id)
		}
		if err != nil {
			return nil, err
		}
	}
	l := listener{server: s, only: in.Session}
	wanted := in.LastEventID
	if wanted == "" {
		wanted = in.After
	}
	if err := l.begin(ctx, wanted); err != nil {
		return nil, err
	}
	if !s.Events.enter() {
		return nil, session.Errorf(session.Busy, "%d listeners are there already: close one, or try again", maxListeners)
	}
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		defer s.Events.leave()
		r, w := humago.Unwrap(hctx)
		l.stream(r.Context(), w)
	}}, nil
}

// listener is one stream of events and where it stands.
type listener struct {
	server *Server
	only   session.ID // "": all
	epoch  string
	at     int64 // the last event that it was sent, or that was none of its
	gap    *gap  // what the first event has to say
	live   bool  // it was up to date once
}

// gap tells a listener that it missed something, and from where the stream goes on.
type gap struct {
	Requested string `json:"requested"`
	Resume    string `json:"resume"`
	Detail    string `json:"detail"`
}

// begin finds where a stream goes on. Codes: Invalid.
func (l *listener) begin(ctx context.Context, wanted string) error {
	epoch, removed, last, err := l.server.Store.EventRange(ctx)
	if err != nil {
		return err
	}
	l.epoch, l.at = epoch, last
	if wanted == "" {
		return nil
	}
	if wanted == "0" {
		l.at = removed
		return nil
	}
	cut := strings.LastIndexByte(wanted, '-')
	var n int64
	if cut > 0 {
		n, err = strconv.ParseInt(wanted[cut+1:], 10, 64)
	}
	if cut <= 0 || err != nil || n < 0 {
		return session.Errorf(session.Invalid, "%.60q is no id of an event: it looks like %s, or 0 for the oldest that is kept", wanted, l.name(last)).
			At("Last-Event-ID", "no id of an event")
	}
	detail := ""
	switch l.at = n; {
	case wanted[:cut] != epoch:
		l.at, detail = removed, "this id is of another database; the stream begins with the oldest event that is kept"
	case n < removed:
		l.at, detail = removed, "the events after this one were removed for their age; the stream goes on with the oldest that is kept"
	case n > last:
		l.at, detail = last, "this database is older than the event, perhaps a backup was restored; the stream goes on from now: read anew what you follow"
	}
	if detail != "" {
		l.gap = &gap{Requested: wanted, Resume: l.name(l.at), Detail: detail}
	}
	return nil
}

func (l *listener) name(id int64) string { return l.epoch + "-" + strconv.FormatInt(id, 10) }

// stream writes until the listener leaves, is too slow, or the daemon stops.
func (l *listener) stream(ctx context.Context, w http.ResponseWriter) {
	feed := l.server.Events
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Time{}) // the request was read; a stream has no end of its own
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := &stream{w: w, conn: conn}
	fmt.Fprintf(out, "retry: 2000\nid: %s\n\n", l.name(l.at))
	if l.gap != nil {
		out.event("gap", l.name(l.at), l.gap)
	}
	pulse := time.NewTicker(feed.pulse())
	defer pulse.Stop()
	for out.flush() {
		next := feed.next()
		events, err := feed.after(ctx, l.at)
		if err != nil {
			l.server.log.Error().Err(err).Msg("a stream of events broke off")
			return
		}
		if len(events) > 0 {
			if l.send(out, events) {
				continue
			}
			out.flush()
			return
		}
		l.live = true
		select {
		case <-next:
			if !l.gather(ctx) {
				return
			}
		case <-pulse.C:
			fmt.Fprintf(out, ": heartbeat\nid: %s\n\n", l.name(l.at))
		case <-ctx.Done():
			return
		case <-l.server.Stopping:
			return
		}
	}
}

// send writes events; false: the listener has fallen too far behind and was told so.
func (l *listener) send(out *stream, events []session.Event) bool {
	if l.live {
		_, _, last, err := l.server.Store.EventRange(context.Background())
		if behind := last - l.at; err == nil && behind > l.server.Events.maxLag() {
			out.event("dropped", l.name(l.at), map[string]any{
				"behind": behind, "resume": l.name(l.at),
				"detail": "this stream is read too slowly: connect again with the id in resume to catch up",
			})
			return false
		}
	}
	for _, e := range events {
		l.at = e.RowID
		if l.only != "" && e.SessionID != l.only {
			continue
		}
		e.ID = l.name(e.RowID)
		out.event(e.Type, e.ID, e)
	}
	return true
}

// gather waits a moment for what comes along with the first; false: the stream ends.
func (l *listener) gather(ctx context.Context) bool {
	timer := time.NewTimer(gatherTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-l.server.Stopping:
	}
	return false
}

func (f *Feed) pulse() time.Duration {
	if f.Pulse > 0 {
		return f.Pulse
	}
	return defaultPulse
}

func (f *Feed) maxLag() int64 {
	if f.MaxLag > 0 {
		return f.MaxLag
	}
	return defaultMaxLag
}

// stream writes Server-Sent Events and remembers the first failure.
type stream struct {
	w    io.Writer
	conn *http.ResponseController
	buf  []byte
	err  error
}

func (s *stream) Write(p []byte) (int, error) {
	s.buf = append(s.buf, p...)
	return len(p), nil
}

func (s *stream) event(kind, id string, data any) {
	body, err := json.Marshal(data)
	if err != nil {
		s.err = err
		return
	}
	fmt.Fprintf(s, "id: %s\nevent: %s\ndata: %s\n\n", id, kind, body)
}

// flush sends what was written; false: the listener is gone, or takes nothing.
func (s *stream) flush() bool {
	if s.err != nil || len(s.buf) == 0 {
		return s.err == nil
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(writePatience)) // where it cannot be set there is none
	if _, s.err = s.w.Write(s.buf); s.err == nil {
		s.err = s.conn.Flush()
	}
	s.buf = s.buf[:0]
	return s.err == nil
}
