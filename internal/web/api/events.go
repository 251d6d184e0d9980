package api

import (
	"bytes"
	"cmp"
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
	LastEventID string     `header:"Last-Event-ID" doc:"The id of the last event seen: the stream continues after it"`
	After       string     `query:"after" doc:"The same as Last-Event-ID; 0: from the oldest stored event. Default: the stream begins now"`
	Session     session.ID `query:"session" doc:"Only events of this session"`
}

// writePatience is how long one write to a client may take; gatherTime is how long a stream
// waits for more events after it wakes, so that a burst is one write.
const (
	writePatience = 20 * time.Second
	gatherTime    = 10 * time.Millisecond
)

// streamEvents streams the outbox. Codes: Invalid (not an id), NotFound (the session), Busy.
func (s *Server) streamEvents(ctx context.Context, in *eventsInput) (*huma.StreamResponse, error) {
	if in.Session != "" {
		at := InSession{in.Session}
		if err := at.parsePath(); err != nil {
			return nil, err
		}
		if _, err := s.Store.Session(ctx, at.ID); err != nil {
			return nil, err
		}
	}
	l := listener{server: s, only: in.Session}
	if err := l.begin(ctx, cmp.Or(in.LastEventID, in.After)); err != nil {
		return nil, err
	}
	leave, err := s.Events.enter(ctx)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		defer leave()
		r, w := humago.Unwrap(hctx)
		l.stream(r.Context(), w)
	}}, nil
}

// listener is one stream of events and its position.
type listener struct {
	server *Server
	only   session.ID // "": all
	epoch  string
	at     int64         // the last event sent or skipped
	last   session.Event // the event at this position, once it was read
	gap    *gap          // the first event, if events are missing
	live   bool          // it has been up to date
}

// gap reports missing events and the place where the stream continues.
type gap struct {
	Requested string `json:"requested"`
	Resume    string `json:"resume"`
	Detail    string `json:"detail"`
}

// begin finds the position where a stream begins. Codes: Invalid.
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
		return session.Errorf(session.Invalid,
			"%.60q is not the id of an event: an id looks like %s, and 0 means the oldest event kept", wanted, l.name(last)).
			At("Last-Event-ID", "not the id of an event")
	}
	detail := ""
	switch l.at = n; {
	case wanted[:cut] != epoch:
		l.at, detail = removed, "this id belongs to another database; the stream begins with the oldest event kept"
	case n < removed:
		l.at, detail = removed, "the next events were deleted by age; the stream continues with the oldest event kept"
	case n > last:
		back, err := l.server.Store.EventsWentBack(ctx, n)
		if err != nil {
			return err
		}
		if back {
			l.at, detail = last, olderDatabase
		}
	}
	if detail != "" {
		l.gap = &gap{Requested: wanted, Resume: l.name(l.at), Detail: detail}
	}
	return nil
}

const olderDatabase = "this database is older than the event, perhaps restored from a backup; " +
	"the stream continues from now: reload what you follow"

// next reads the events after the position, at most a page. It also reads the one at the position: back reports
// that the database went back, because a backup was restored or a server took over that lacks the last writes.
// Ids are used again then. The event may also be missing because it is old, or of a purged session.
func (l *listener) next(ctx context.Context) (events []session.Event, back bool, err error) {
	// send leaves out those of others
	events, err = l.server.Store.EventsAfter(session.WithoutScope(ctx), l.at-1, feedPage)
	switch {
	case err != nil:
	case len(events) == 0:
		back, err = l.server.Store.EventsWentBack(ctx, l.at)
	case events[0].RowID == l.at:
		known := l.last.RowID == l.at
		back = known && (events[0].SessionID != l.last.SessionID || events[0].Type != l.last.Type ||
			!events[0].CreatedAt.Equal(l.last.CreatedAt.Time))
		l.last, events = events[0], events[1:]
	}
	return events, back, err
}

// goBack continues from now in a database that went back, and tells so.
func (l *listener) goBack(ctx context.Context, out *stream) error {
	_, _, last, err := l.server.Store.EventRange(ctx)
	if err != nil {
		return err
	}
	requested := l.name(l.at)
	l.at = last
	out.event("gap", l.name(l.at), gap{Requested: requested, Resume: l.name(l.at), Detail: olderDatabase})
	return nil
}

func (l *listener) name(id int64) string { return l.epoch + "-" + strconv.FormatInt(id, 10) }

// stream writes until the client leaves or is too slow, or the daemon stops.
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
	pulse := time.NewTicker(cmp.Or(feed.Pulse, defaultPulse))
	defer pulse.Stop()
	for out.flush() {
		next := feed.next()
		events, back, err := l.next(ctx)
		if err == nil && back {
			if err = l.goBack(ctx, out); err == nil {
				continue
			}
		}
		if err != nil {
			l.server.log.Error().Err(err).Msg("a stream of events failed")
			return
		}
		if len(events) > 0 {
			if l.send(ctx, out, events) {
				continue
			}
			out.flush()
			return
		}
		l.live = true
		select {
		case <-next:
			time.Sleep(gatherTime)
		case <-pulse.C:
			fmt.Fprintf(out, ": heartbeat\nid: %s\n\n", l.name(l.at))
		case <-ctx.Done():
			return
		case <-l.server.Stopping:
			return
		}
	}
}

// send writes events; false: the listener is too far behind, and the last event says so.
func (l *listener) send(ctx context.Context, out *stream, events []session.Event) bool {
	if l.live {
		_, _, last, err := l.server.Store.EventRange(context.Background())
		if behind := last - l.at; err == nil && behind > cmp.Or(l.server.Events.MaxLag, defaultMaxLag) {
			out.event("dropped", l.name(l.at), map[string]any{
				"behind": behind, "resume": l.name(l.at),
				"detail": "the client reads this stream too slowly: reconnect with the id in resume to catch up",
			})
			return false
		}
	}
	shown, err := l.shown(ctx, events)
	if err != nil {
		l.server.log.Error().Err(err).Msg("a stream of events failed")
		return false
	}
	for _, e := range events {
		l.at, l.last = e.RowID, e
		if l.only != "" && e.SessionID != l.only || !shown(e.SessionID) {
			continue
		}
		e.ID = l.name(e.RowID)
		out.event(e.Type, e.ID, e)
	}
	return true
}

// shown reports which sessions of events a named token may see: those within its scope that are not purged.
func (l *listener) shown(ctx context.Context, events []session.Event) (func(session.ID) bool, error) {
	if _, limited := session.ScopeOf(ctx); !limited {
		return func(session.ID) bool { return true }, nil
	}
	var ids []session.ID
	for _, e := range events {
		ids = append(ids, e.SessionID)
	}
	visible, err := l.server.Store.InTrash(ctx, ids)
	return func(id session.ID) bool { _, ok := visible[id]; return ok }, err
}

// stream buffers Server-Sent Events and remembers the first failure.
type stream struct {
	bytes.Buffer
	w    io.Writer
	conn *http.ResponseController
	err  error
}

func (s *stream) event(kind, id string, data any) {
	body, err := json.Marshal(data)
	if err != nil {
		s.err = err
		return
	}
	fmt.Fprintf(s, "id: %s\nevent: %s\ndata: %s\n\n", id, kind, body)
}

// flush sends the buffer; false: the client has gone or does not read.
func (s *stream) flush() bool {
	if s.err != nil || s.Len() == 0 {
		return s.err == nil
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(writePatience)) // where it cannot be set there is none
	if _, s.err = s.w.Write(s.Bytes()); s.err == nil {
		s.err = s.conn.Flush()
	}
	s.Reset()
	return s.err == nil
}
