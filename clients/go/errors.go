package sessiond

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Codes of errors. A newer daemon may have more.
const (
	CodeUnreachable        = "unreachable" // no daemon answered
	CodeMalformed          = "malformed"
	CodeUnauthorized       = "unauthorized"
	CodeForbidden          = "forbidden"
	CodeNotFound           = "not_found"
	CodeConflict           = "conflict"
	CodeCompactionRequired = "compaction_required"
	CodePreconditionFailed = "precondition_failed"
	CodeTooLarge           = "too_large"
	CodeInvalid            = "invalid"
	CodeDoesNotFit         = "does_not_fit"
	CodeInternal           = "internal"
	CodeBusy               = "busy"
	CodeStorageFull        = "storage_full"
	CodeUnavailable        = "unavailable"
)

// Error is an answer of the daemon that is an error, or that none came.
type Error struct {
	Request   string       // method and path
	Status    int          // of HTTP; 0: no answer came
	Code      string       // one of the codes above
	Message   string       // what happened, why, and what to do
	Fields    []FieldError // the invalid fields of the request
	Head      string       // of a stale expect_head: the head as it is; "": the session is empty
	RequestID string       // of an internal error: the id of its entry in the daemon's log

	cause error
}

func (e *Error) Error() string { return e.Request + ": " + e.Message }

func (e *Error) Unwrap() error { return e.cause }

// CodeOf returns the code of the first Error in an error's chain; "" if there is none.
func CodeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// problemOf reads the error of an answer.
func problemOf(r *request, res *http.Response) error {
	e := &Error{Request: r.method + " " + r.path, Status: res.StatusCode}
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	var p Problem
	if err != nil || json.Unmarshal(text, &p) != nil || p.Code == "" { // of something between us and the daemon
		e.Message = strings.TrimSpace(fmt.Sprintf("%s: %.300s", res.Status, text))
		return e
	}
	e.Code, e.Message, e.Fields, e.Head, e.RequestID = p.Code, p.Detail, p.Errors, p.Head, p.RequestID
	return e
}
