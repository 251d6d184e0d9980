package session

import (
	"errors"
	"fmt"
)

// Code is the kind of an error. The edges map it to an HTTP status or an exit code, in one table each.
type Code string

// The codes, as they appear in problem+json.
const (
	Malformed          Code = "malformed"           // not JSON, or not of the required form
	Unauthorized       Code = "unauthorized"        // no token, or a wrong one
	Forbidden          Code = "forbidden"           // a known caller without permission
	NotFound           Code = "not_found"           // nothing has this name
	Conflict           Code = "conflict"            // the state changed meanwhile, e.g. a stale head
	CompactionRequired Code = "compaction_required" // the context exceeds its limit and automatic compaction is off
	PreconditionFailed Code = "precondition_failed" // If-Match named another revision
	TooLarge           Code = "too_large"           // over a stated size limit
	Invalid            Code = "invalid"             // well-formed, but not allowed
	DoesNotFit         Code = "does_not_fit"        // no context has room for the named items
	Internal           Code = "internal"            // a fault of sessiond; only the log has the cause
	Busy               Code = "busy"                // try again soon
	StorageFull        Code = "storage_full"        // the disk or the database is full
	Unavailable        Code = "unavailable"         // the database accepts no writes until its operator acts
)

// Error is an error for users: a code, a sentence with the problem and its solution, and, for bad
// input, the invalid fields.
type Error struct {
	Code    Code
	Message string
	Fields  []FieldError
	cause   error
}

// FieldError is the error of one field of an input. Path has dots, and indexes in brackets:
// messages[3].parts[0].text.
type FieldError struct {
	Path    string `json:"path" doc:"The field or parameter, like call.usage"`
	Message string `json:"message" doc:"What is wrong with it"`
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause, whose details are for the log and not for a caller.
func (e *Error) Unwrap() error { return e.cause }

// Errorf returns an Error. A %w in the format sets its cause.
func Errorf(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: wrapped.Error(), cause: errors.Unwrap(wrapped)}
}

// Wrap says what was being done when err came; nil stays nil.
func Wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// At adds an invalid field and returns the error.
func (e *Error) At(path, format string, args ...any) *Error {
	e.Fields = append(e.Fields, FieldError{Path: path, Message: fmt.Sprintf(format, args...)})
	return e
}

// Under prefixes the fields of an error with the field that contains them.
func Under(field string, err error) error {
	var known *Error
	if !errors.As(err, &known) {
		return err
	}
	moved := Errorf(known.Code, "%s: %w", field, err)
	moved.Message = fmt.Sprintf("%s: %s", field, known.Message)
	for _, f := range known.Fields {
		moved.Fields = append(moved.Fields, FieldError{Path: field + "." + f.Path, Message: f.Message})
	}
	return moved
}

// CodeOf returns the code of the first Error in err's chain, Internal for any other error and "" for
// nil.
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

// IsRepeated reports whether an error says that it is one that was returned before, as of a circuit
// breaker that stays open: the log has it already.
func IsRepeated(err error) bool {
	var e interface{ Repeated() bool }
	return errors.As(err, &e) && e.Repeated()
}
