// Package problem converts errors to RFC 9457 problem documents. It maps codes to HTTP statuses, and
// hides the text of internal errors.
package problem

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"sessiond/internal/session"
)

// MediaType is the content type of a Problem.
const MediaType = "application/problem+json"

// StatusClientClosed is the logged status of a request whose client disconnected.
const StatusClientClosed = 499

// retryAfter is the Retry-After of Busy and Unavailable, in seconds.
const retryAfter = 1

// Problem is the body of every error answer.
type Problem struct {
	Type      string               `json:"type" doc:"urn:sessiond:problem: followed by the code"`
	Title     string               `json:"title" doc:"The kind of problem; the same for each occurrence"`
	Status    int                  `json:"status" doc:"The HTTP status"`
	Detail    string               `json:"detail" doc:"What happened, why, and what to do"`
	Code      session.Code         `json:"code" doc:"malformed, unauthorized, forbidden, not_found, conflict, compaction_required, precondition_failed, too_large, invalid, does_not_fit, internal, busy, storage_full, unavailable"`
	Errors    []session.FieldError `json:"errors,omitempty" doc:"The invalid fields"`
	Head      *session.MessageRef  `json:"head,omitempty" doc:"Of a stale expect_head: the current head"`
	RequestID string               `json:"request_id,omitempty" doc:"Of an internal error: the id of its log entry"`
}

// kinds are the HTTP status of each code, and its title, which is the same for each occurrence.
var kinds = map[session.Code]struct {
	status int
	title  string
}{
	session.Malformed:          {http.StatusBadRequest, "Malformed request"},
	session.Unauthorized:       {http.StatusUnauthorized, "Token required"},
	session.Forbidden:          {http.StatusForbidden, "Not allowed"},
	session.NotFound:           {http.StatusNotFound, "Not found"},
	session.Conflict:           {http.StatusConflict, "Conflict"},
	session.CompactionRequired: {http.StatusConflict, "Compaction required"},
	session.PreconditionFailed: {http.StatusPreconditionFailed, "Revision does not match"},
	session.TooLarge:           {http.StatusRequestEntityTooLarge, "Too large"},
	session.Invalid:            {http.StatusUnprocessableEntity, "Invalid"},
	session.DoesNotFit:         {http.StatusUnprocessableEntity, "Does not fit"},
	session.Busy:               {http.StatusServiceUnavailable, "Busy"},
	session.StorageFull:        {http.StatusInsufficientStorage, "Storage is full"},
	session.Unavailable:        {http.StatusServiceUnavailable, "Unavailable"},
}

// New returns a problem with a code and a detail. An unknown code is an internal error.
func New(code session.Code, detail string) *Problem {
	kind, known := kinds[code]
	if !known {
		kind.status, kind.title = http.StatusInternalServerError, "Internal error"
	}
	return &Problem{
		Type: "urn:sessiond:problem:" + string(code), Title: kind.title, Status: kind.status, Detail: detail,
		Code: code,
	}
}

// Of converts an error to a problem. It keeps only the text of a session.Error that is not internal.
// If internal is true, the caller logs the error.
func Of(err error) (p *Problem, internal bool) {
	var already *Problem
	if errors.As(err, &already) {
		return already, already.Code == session.Internal
	}
	var known *session.Error
	if errors.As(err, &known) && known.Code != session.Internal {
		p = New(known.Code, known.Message)
		p.Errors = known.Fields
		return p, false
	}
	switch {
	case errors.Is(err, context.Canceled):
		p = New(session.Busy, "the request was cancelled")
		p.Status = StatusClientClosed
		return p, false
	case errors.Is(err, context.DeadlineExceeded):
		return New(session.Busy, "the request exceeded its time limit: retry"), false
	}
	return New(session.Internal, "internal error: the log of sessiond has the cause under this request id"), true
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return MediaType }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	switch p.Code {
	case session.Busy, session.Unavailable:
		h.Set("Retry-After", strconv.Itoa(retryAfter))
	case session.Unauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="sessiond"`)
	}
	return h
}

// Write answers with the problem.
func (p *Problem) Write(w http.ResponseWriter) {
	body, err := session.MarshalPlain(p)
	if err != nil { // a Problem is made of plain values
		panic(err)
	}
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", MediaType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // the client may have gone
}
