package summarize_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/summarize"
	"sessiond/internal/testkit"
)

func TestNewChoosesByProvider(t *testing.T) {
	for name, c := range map[string]struct {
		cfg             summarize.Config
		provider, model string
	}{
		"the zero value": {summarize.Config{}, "extractive", "digest"},
		"extractive":     {summarize.Config{Provider: "extractive"}, "extractive", "digest"},
		"gemini":         {summarize.Config{Provider: "gemini"}, "gemini", summarize.DefaultGeminiModel},
		"openai":         {summarize.Config{Provider: "openai", Model: "m"}, "openai", "m"},
		"a local server": {summarize.Config{Provider: "openai", BaseURL: "http://127.0.0.1:11434/v1/", Model: "llama"}, "openai", "llama"},
	} {
		t.Run(name, func(t *testing.T) {
			s := testkit.Must(summarize.New(c.cfg, summarize.Deps{Count: count, Getenv: func(string) string { return apiKey }}))(t)
			if provider, model := s.Name(); provider != c.provider || model != c.model {
				t.Errorf("got %s %s", provider, model)
			}
			if closer, ok := s.(io.Closer); ok {
				if err := closer.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestInvalidConfigurationErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		testkit.Check(t, os.WriteFile(path, []byte(content), 0o600))
		testkit.Check(t, os.Chmod(path, mode))
		return path
	}
	for name, c := range map[string]struct {
		cfg  summarize.Config
		want string
	}{
		"unknown provider":     {summarize.Config{Provider: "oracle"}, "use extractive, gemini or openai"},
		"gemini without a key": {summarize.Config{Provider: "gemini"}, "set GEMINI_API_KEY"},
		"openai without a key": {summarize.Config{Provider: "openai"}, "set OPENAI_API_KEY"},
		"a file for all":       {summarize.Config{Provider: "gemini", APIKeyFile: file("open", apiKey, 0o644)}, "run chmod 600 "},
		"a file for the group": {summarize.Config{Provider: "openai", APIKeyFile: file("group", apiKey, 0o640)}, "run chmod 600 "},
		"no such file":         {summarize.Config{Provider: "openai", APIKeyFile: filepath.Join(dir, "none")}, "name an existing file"},
		"a folder":             {summarize.Config{Provider: "openai", APIKeyFile: dir}, "is not a regular file"},
		"an empty file":        {summarize.Config{Provider: "openai", APIKeyFile: file("empty", "\n", 0o600)}, "must contain the key and nothing else"},
		"two lines":            {summarize.Config{Provider: "openai", APIKeyFile: file("two", apiKey+"\nmore", 0o600)}, "must contain the key and nothing else"},
		"a URL that is none":   {summarize.Config{Provider: "openai", BaseURL: "localhost:1234"}, "summarizer.base_url"},
		"a key in the URL":     {summarize.Config{Provider: "openai", BaseURL: "https://x.example/v1?key=" + apiKey}, "summarizer.base_url"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := summarize.New(c.cfg, summarize.Deps{Count: count, Getenv: func(string) string { return "" }})
			if session.CodeOf(err) != session.Invalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if err != nil && strings.Contains(err.Error(), apiKey) {
				t.Errorf("the key is in the error: %v", err)
			}
		})
	}
}

func TestKeyIsReadFromPrivateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	testkit.Check(t, os.WriteFile(path, []byte(apiKey+"\n"), 0o600))
	each(t, func(t *testing.T, p provider) {
		s := serve(t, answer{body: p.answer(goodSummary)})
		r, err := summarize.NewRemote(summarize.Config{Provider: p.name, BaseURL: s.URL, APIKeyFile: path}, summarize.Deps{Count: count, Getenv: func(string) string { return "another" }})
		testkit.Check(t, err)
		testkit.Must(r.Summarize(t.Context(), request()))(t)
		if got := p.keyHeader(s.headers[0]); got != apiKey {
			t.Errorf("the server saw the key %q", got)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestLocalServerNeedsNoKey(t *testing.T) {
	p := providers()[0]
	s := serve(t, answer{body: p.answer(goodSummary)})
	r, err := summarize.NewRemote(summarize.Config{Provider: "openai", BaseURL: s.URL}, summarize.Deps{Count: count, Getenv: func(string) string { return "" }})
	testkit.Check(t, err)
	defer r.Close() //nolint:errcheck // it has nothing to say
	testkit.Must(r.Summarize(t.Context(), request()))(t)
	if h := s.headers[0][http.CanonicalHeaderKey("Authorization")]; h != nil {
		t.Errorf("it sent Authorization %q", h)
	}
}
