package models

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/redact"
	"sessiond/internal/summarize/digest"
)

// FailureKind is the reason why a model returned no summary.
type FailureKind string

// The kinds. The caller then uses the digest.
const (
	FailKey           FailureKind = "key"             // missing, wrong or without permission
	FailRefusal       FailureKind = "refusal"         // the model or its filter declined
	FailEmpty         FailureKind = "empty"           // no candidate, or one without text
	FailTooLongOutput FailureKind = "too_long_output" // cut off, or larger than what it replaces
	FailTooLongInput  FailureKind = "too_long_input"  // the span does not fit the summary model
	FailRateLimited   FailureKind = "rate_limited"
	FailServer        FailureKind = "server"
	FailTimeout       FailureKind = "timeout"
	FailBadAnswer     FailureKind = "bad_answer" // not JSON, or no summary
	FailOpen          FailureKind = "open"       // not asked: the circuit breaker is open
)

// Failure is the error of a model that returned no summary. Its text goes to the log, so it contains
// nothing that a provider wrote, which may quote the conversation or a key: that is Detail, for the
// ledger.
type Failure struct {
	Kind     FailureKind
	Message  string
	Detail   string // the provider's own text, with secrets masked
	cause    error
	wait     time.Duration // by the server's Retry-After
	retry    bool
	repeated bool
}

func (f *Failure) Error() string { return string(f.Kind) + ": " + f.Message }

// Repeated reports whether the same failure was returned before: an open circuit breaker logs once.
func (f *Failure) Repeated() bool { return f.repeated }

// ledgerText returns the text of an error with the provider's own.
func ledgerText(err error) string {
	var f *Failure
	if errors.As(err, &f) && f.Detail != "" {
		return err.Error() + ": " + f.Detail
	}
	return err.Error()
}

// Unwrap returns the cause, e.g. the context's error.
func (f *Failure) Unwrap() error { return f.cause }

// longestMessage is the limit of a provider's error text in bytes.
const longestMessage = 300

// clean removes the key and other secrets from a text.
func clean(text, key string) string {
	if key != "" {
		text = strings.ReplaceAll(text, key, "[secret: api key]")
	}
	text, _ = redact.Mask(redact.URLKey(text))
	return digest.CutText(strings.Join(strings.Fields(text), " "), longestMessage)
}

// statusFailure returns the failure of an HTTP status other than 2xx. Gemini answers 400 to a wrong
// key, and OpenAI 429 to an empty account, which no retry helps.
func statusFailure(resp *http.Response, body []byte, key string) *Failure {
	detail := providerMessage(body)
	lower := strings.ToLower(string(body))
	f := &Failure{Message: "the server answered " + strconv.Itoa(resp.StatusCode), Detail: clean(detail, key)}
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower, w) })
	}
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden,
		code == http.StatusBadRequest && has("api_key_invalid", "api key not valid", "api key expired", "invalid_api_key"):
		f.Kind = FailKey
	case code == http.StatusRequestEntityTooLarge,
		code == http.StatusBadRequest && has("context_length_exceeded", "maximum context length",
			"exceeds the maximum number of tokens", "input token count", "too many tokens"):
		f.Kind = FailTooLongInput
	case code == http.StatusTooManyRequests:
		f.Kind, f.retry = FailRateLimited, !has("insufficient_quota")
	case code == http.StatusRequestTimeout, code >= 500:
		f.Kind, f.retry = FailServer, true
	default:
		f.Kind = FailBadAnswer
	}
	f.wait = retryAfter(resp.Header.Get("Retry-After"))
	return f
}

// providerMessage returns the sentence of an error body: all providers write it to error.message,
// or to error.
func providerMessage(body []byte) string {
	var answer struct {
		Error jsontext.Value `json:"error"`
	}
	if json.Unmarshal(body, &answer) == nil {
		var inner struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(answer.Error, &inner) == nil && inner.Message != "" {
			return inner.Message
		}
		var text string
		if json.Unmarshal(answer.Error, &text) == nil {
			return text
		}
	}
	return string(body)
}

// retryAfter parses the header in its form of seconds; a date counts as none.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(strings.TrimSpace(header))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 24*3600)) * time.Second
}
