package summarize_test

import (
	"io"
	"testing"

	"sessiond/internal/summarize"
	"sessiond/internal/summarize/models"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/talktest"
)

func TestNewChoosesByProvider(t *testing.T) {
	for name, c := range map[string]struct {
		cfg             summarize.Config
		provider, model string
	}{
		"the zero value": {summarize.Config{}, "extractive", "digest"},
		"extractive":     {summarize.Config{Provider: "extractive"}, "extractive", "digest"},
		"gemini":         {summarize.Config{Provider: "gemini"}, "gemini", models.DefaultGeminiModel},
		"openai":         {summarize.Config{Provider: "openai", Model: "m"}, "openai", "m"},
		"a local server": {
			summarize.Config{Provider: "openai", BaseURL: "http://127.0.0.1:11434/v1/", Model: "llama"},
			"openai", "llama",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := testkit.Must(summarize.New(c.cfg, summarize.Deps{Count: talktest.Count, Getenv: func(string) string {
				return "key"
			}}))(t)
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
