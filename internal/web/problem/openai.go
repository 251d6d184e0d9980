package problem

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"sessiond/internal/session"
)

// OpenAIPath begins the paths of the routes that speak as OpenAI's API does.
const OpenAIPath = "/v1/conversations"

// OpenAIError is the body of an error answer in OpenAI's form.
type OpenAIError struct {
	Error OpenAIFault `json:"error" doc:"What failed"`
}

// OpenAIFault says what failed.
type OpenAIFault struct {
	Message string  `json:"message" doc:"What happened, why, and what to do"`
	Type    string  `json:"type" doc:"invalid_request_error or server_error"`
	Param   *string `json:"param" doc:"The invalid field or parameter; null: none"`
	Code    *string `json:"code" doc:"The kind of error, like invalid_api_key; null: none"`
}

// openAICodes are the codes that OpenAI's API has, or would have. Errors without one have null, as there.
var openAICodes = map[session.Code]string{
	session.Unauthorized: "invalid_api_key", session.Forbidden: "forbidden", session.Conflict: "conflict",
	session.TooLarge: "request_too_large", session.Busy: "service_unavailable", session.Unavailable: "service_unavailable",
	session.StorageFull: "storage_full", session.Internal: "internal_error",
}

// openAI returns the problem in OpenAI's form, and its status there: 400 for what is invalid.
func (p *Problem) openAI() (int, OpenAIError) {
	e := OpenAIFault{Message: p.Detail, Type: "invalid_request_error"}
	status := p.Status
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	if status >= http.StatusInternalServerError {
		e.Type = "server_error"
	}
	if code := openAICodes[p.Code]; code != "" {
		e.Code = &code
	}
	if len(p.Errors) > 0 {
		e.Param = &p.Errors[0].Path
	}
	if p.RequestID != "" {
		e.Message += " (" + p.RequestID + ")"
	}
	return status, OpenAIError{e}
}

// AsOpenAI passes requests on, and writes the problems that are answered to those below OpenAIPath in OpenAI's form:
// its clients understand no other, whoever found what is wrong.
func AsOpenAI(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, is := strings.CutPrefix(r.URL.Path, OpenAIPath); !is || rest != "" && rest[0] != '/' {
			next.ServeHTTP(w, r)
			return
		}
		t := &translator{ResponseWriter: w}
		next.ServeHTTP(t, r)
		t.finish()
	})
}

// translator holds a problem back until it is whole.
type translator struct {
	http.ResponseWriter
	problem bool
	body    bytes.Buffer
}

func (t *translator) WriteHeader(status int) {
	if t.problem = t.Header().Get("Content-Type") == MediaType; !t.problem {
		t.ResponseWriter.WriteHeader(status)
	}
}

func (t *translator) Write(p []byte) (int, error) {
	if t.problem {
		return t.body.Write(p)
	}
	return t.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (t *translator) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *translator) finish() {
	if !t.problem {
		return
	}
	var p Problem
	if err := json.Unmarshal(t.body.Bytes(), &p); err != nil { // of this package
		panic(err)
	}
	status, said := p.openAI()
	body, err := session.MarshalPlain(said)
	if err != nil { // made of plain values
		panic(err)
	}
	t.Header().Set("Content-Type", "application/json")
	t.Header().Del("Content-Length")
	t.ResponseWriter.WriteHeader(status)
	_, _ = t.ResponseWriter.Write(append(body, '\n')) // the client may have gone
}
