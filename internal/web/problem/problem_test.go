package problem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
