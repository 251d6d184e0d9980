package summarize

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sessiond/internal/redact"
)

// FailureKind says why a model gave no summary.
type FailureKind string

// The kinds. After each of them the digest takes over.
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

// Failure is why a model gave no summary. Message holds no key and no content of a
// conversation beyond what a provider puts into its error.
type Failure struct {
	Kind    FailureKind
	Message string
	cause   error
	wait    time.Duration // what the server asked for
	retry   bool
}

func (f *Failure) Error() string { return string(f.Kind) + ": " + f.Message }

// Unwrap gives the cause, e.g. the context's error.
func (f *Failure) Unwrap() error { return f.cause }

// longestMessage is the length in bytes to which a provider's error text is cut.
const longestMessage = 300

// clean takes the key and other secrets out of a text that is to be stored or shown.
func clean(text, key string) string {
	if key != "" {
		text = strings.ReplaceAll(text, key, "[secret: api key]")
	}
	text, _ = redact.Mask(redact.URLKey(text))
	return cutRunes(strings.Join(strings.Fields(text), " "), longestMessage)
}

// statusFailure says what an HTTP answer other than 2xx means. Gemini answers 400 to a wrong
// key, and OpenAI 429 to an empty account, for which no waiting helps.
func statusFailure(resp *http.Response, body []byte, key string) *Failure {
	detail := providerMessage(body)
	lower := strings.ToLower(string(body))
	f := &Failure{Message: clean("the server answered "+strconv.Itoa(resp.StatusCode)+": "+detail, key)}
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(lower, w) {
				return true
			}
		}
		return false
	}
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden,
		code == http.StatusBadRequest && has("api_key_invalid", "api key not valid", "api key expired", "invalid_api_key"):
		f.Kind = FailKey
	case code == http.StatusRequestEntityTooLarge,
		code == http.StatusBadRequest && has("context_length_exceeded", "maximum context length", "exceeds the maximum number of tokens", "input token count", "too many tokens"):
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

// providerMessage takes the sentence out of an error body; all providers keep it in
// error.message.
func providerMessage(body []byte) string {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &e) == nil && len(e.Error) > 0 {
		var inner struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(e.Error, &inner) == nil && inner.Message != "" {
			return inner.Message
		}
		var text string
		if json.Unmarshal(e.Error, &text) == nil {
			return text
		}
	}
	return string(body)
}

// retryAfter reads the header in its form of seconds; a date is left to the back-off.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(strings.TrimSpace(header))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 24*3600)) * time.Second
}
