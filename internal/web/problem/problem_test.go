package problem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/web/problem"
)

func TestEveryCodeHasItsStatus(t *testing.T) {
	for code, want := range map[session.Code]int{
		session.Malformed: 400, session.Unauthorized: 401, session.Forbidden: 403, session.NotFound: 404,
		session.Conflict: 409, session.CompactionRequired: 409, session.PreconditionFailed: 412, session.TooLarge: 413,
		session.Invalid: 422, session.DoesNotFit: 422, session.Internal: 500, session.Busy: 503, session.StorageFull: 507,
		session.Unavailable: 503,
	} {
		p := problem.New(code, "x")
		if p.Status != want || p.Title == "" || (code != session.Internal && p.Title == "Internal error") {
			t.Errorf("%s: status %d, want %d, title %q", code, p.Status, want, p.Title)
		}
	}
}

func TestFieldsAndWrappedErrorsReachTheCaller(t *testing.T) {
	err := fmt.Errorf("append: %w", session.Errorf(session.Invalid, "the title is too long").
		At("title", "at most %d bytes", 10))
	p, internal := problem.Of(err)
	if internal || p.Code != session.Invalid || p.Detail != "the title is too long" || len(p.Errors) != 1 ||
		p.Errors[0].Path != "title" {
		t.Errorf("%+v", p)
	}
}

func TestInternalTextStaysInside(t *testing.T) {
	for _, err := range []error{
		errors.New("dial /secret/path: denied"),
		session.Errorf(session.Internal, "dial %w", errors.New("/secret/path")),
	} {
		p, internal := problem.Of(err)
		w := httptest.NewRecorder()
		p.Write(w)
		if !internal || w.Code != 500 || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%v: %d %s", err, w.Code, w.Body)
		}
	}
}

func TestAClientThatLeftIsNoFailureOfOurs(t *testing.T) {
	if p, internal := problem.Of(fmt.Errorf("read: %w", context.Canceled)); internal ||
		p.Status != problem.StatusClientClosed {
		t.Errorf("%+v %v", p, internal)
	}
}

func TestWriteIsAProblemDocument(t *testing.T) {
	w := httptest.NewRecorder()
	problem.New(session.Busy, "a <b> & c").Write(w)
	var doc map[string]any
	testkit.Check(t, json.Unmarshal(w.Body.Bytes(), &doc))
	if w.Code != 503 || w.Header().Get("Content-Type") != problem.MediaType || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if doc["type"] != "urn:sessiond:problem:busy" || doc["code"] != "busy" ||
		doc["status"] != 503.0 || !strings.Contains(w.Body.String(), "a <b> & c") {
		t.Errorf("%s", w.Body)
	}
}

// A problem of the routes of conversations is in OpenAI's form, whoever found it; other answers pass.
func TestProblemsAsOpenAI(t *testing.T) {
	for _, c := range []struct {
		path   string
		code   session.Code
		status int
		want   string
	}{
		{"/v1/conversations", session.Unauthorized, 401, `"type":"invalid_request_error","param":null,"code":"invalid_api_key"`},
		{"/v1/conversations/x", session.Invalid, 400, `"type":"invalid_request_error","param":"items[0]","code":null`},
		{"/v1/conversations/x", session.Internal, 500, `"type":"server_error","param":null,"code":"internal_error"`},
		{"/v1/conversations/x", session.Busy, 503, `"type":"server_error","param":null,"code":"service_unavailable"`},
		{"/v1/conversationsx", session.Invalid, 422, `"code":"invalid"`},
		{"/v1/sessions", session.Invalid, 422, `"code":"invalid"`},
	} {
		p := problem.New(c.code, "why")
		if c.code == session.Invalid {
			p.Errors = []session.FieldError{{Path: "items[0]", Message: "no item"}}
		}
		w := httptest.NewRecorder()
		refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { p.Write(w) })
		problem.AsOpenAI(problem.AsOpenAI(refuse)).ServeHTTP(w, httptest.NewRequest(http.MethodPost, c.path, nil))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s", c.path, c.code, w.Code, w.Body)
		}
		if wait := w.Header().Get("Retry-After"); (wait != "") != (c.code == session.Busy) {
			t.Errorf("%s: Retry-After %q", c.code, wait)
		}
	}
	w := httptest.NewRecorder()
	problem.AsOpenAI(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	})).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/conversations/x", nil))
	if w.Code != 200 || w.Body.String() != "{}" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
