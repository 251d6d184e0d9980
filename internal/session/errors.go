package session

import (
	"errors"
	"fmt"
)

// Code says what kind of failure an error is. The edges turn it into an HTTP status or an
// exit code, in one table each.
type Code string

// The codes, as they appear in problem+json.
const (
	Malformed          Code = "malformed"           // not JSON, or not the JSON that was asked for
	Unauthorized       Code = "unauthorized"        // no token, or a wrong one
	Forbidden          Code = "forbidden"           // a known caller that may not do this
	NotFound           Code = "not_found"           // nothing has this name
	Conflict           Code = "conflict"            // the state moved on, e.g. a stale head
	CompactionRequired Code = "compaction_required" // the context passes its limit and nothing may compact unasked
	PreconditionFailed Code = "precondition_failed" // If-Match named another revision
	TooLarge           Code = "too_large"           // over a stated size limit
	Invalid            Code = "invalid"             // well-formed, but not allowed
	DoesNotFit         Code = "does_not_fit"        // no context can hold the named items
	Internal           Code = "internal"            // ours; the cause goes to the log only
	Busy               Code = "busy"                // try again soon
	StorageFull        Code = "storage_full"        // the disk or the database is full
)

// Error is an error that a user can act on: a code, a sentence that says what, where and
// what to do, and, for bad input, the fields at fault.
type Error struct {
	Code    Code
	Message string
	Fields  []FieldError
	cause   error
}

// FieldError names one field of an input and what is wrong with it. Path is dotted, with
// indexes in brackets: messages[3].parts[0].text.
type FieldError struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause, which may hold details that are for the log and not for a caller.
func (e *Error) Unwrap() error { return e.cause }

// Errorf makes an Error. A %w in the format is kept as its cause.
func Errorf(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: wrapped.Error(), cause: errors.Unwrap(wrapped)}
}

// At says which field of the input the error is about, and returns the error.
func (e *Error) At(path, format string, args ...any) *Error {
	e.Fields = append(e.Fields, FieldError{Path: path, Message: fmt.Sprintf(format, args...)})
	return e
}

// CodeOf gives the code of the nearest Error in err's chain, Internal for any other error
// and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}
