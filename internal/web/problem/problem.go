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

// describe returns the HTTP status of a code, and its title, which is the same for each occurrence. An unknown code is a
// defect.
func describe(code session.Code) (status int, title string) {
	switch code {
	case session.Malformed:
		return http.StatusBadRequest, "Malformed request"
	case session.Unauthorized:
		return http.StatusUnauthorized, "Token required"
	case session.Forbidden:
		return http.StatusForbidden, "Not allowed"
	case session.NotFound:
		return http.StatusNotFound, "Not found"
	case session.Conflict:
		return http.StatusConflict, "Conflict"
	case session.CompactionRequired:
		return http.StatusConflict, "Compaction required"
	case session.PreconditionFailed:
		return http.StatusPreconditionFailed, "Revision does not match"
	case session.TooLarge:
		return http.StatusRequestEntityTooLarge, "Too large"
	case session.Invalid:
		return http.StatusUnprocessableEntity, "Invalid"
	case session.DoesNotFit:
		return http.StatusUnprocessableEntity, "Does not fit"
	case session.Busy:
		return http.StatusServiceUnavailable, "Busy"
	case session.StorageFull:
		return http.StatusInsufficientStorage, "Storage is full"
	case session.Unavailable:
		return http.StatusServiceUnavailable, "Unavailable"
	default:
		return http.StatusInternalServerError, "Internal error"
	}
}

// New returns a problem with a code and a detail.
func New(code session.Code, detail string) *Problem {
	status, title := describe(code)
	return &Problem{Type: "urn:sessiond:problem:" + string(code), Title: title, Status: status, Detail: detail, Code: code}
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
