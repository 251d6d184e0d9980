package models

import (
	"context"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"sessiond/internal/session"
	"sessiond/internal/usage"
)

// Summarizer makes summaries. The caller stores the Calls of a Summary also after a failure.
type Summarizer interface {
	Summarize(ctx context.Context, req session.SummaryRequest) (session.Summary, error)
	Name() (provider, model string)
}

// Config chooses and configures a summariser. Its zero value is the digest.
type Config struct {
	Provider   string        // extractive, gemini or openai (any compatible server)
	Model      string        // "": the provider's default
	BaseURL    string        // "": the provider's own
	APIKeyFile string        // 0600; "": GEMINI_API_KEY or OPENAI_API_KEY in the environment
	Timeout    time.Duration // of one answer with all its attempts; 0: DefaultTimeout
	Window     int64         // of the model, in tokens; 0: unknown, the server reports when it is too small
}

// ModelName returns the configured model, else the provider's default; "" for the digest.
func (c Config) ModelName() string {
	switch {
	case c.Model != "":
		return c.Model
	case c.Provider == "gemini":
		return DefaultGeminiModel
	case c.Provider == "openai":
		return DefaultOpenAIModel
	}
	return ""
}

// The defaults of a Config.
const (
	DefaultTimeout     = 60 * time.Second
	DefaultGeminiModel = "gemini-3.5-flash-lite"
	DefaultOpenAIModel = "gpt-4.1-mini"
	DefaultOpenAIURL   = "https://api.openai.com/v1"
)

// Deps are the dependencies of a summariser. Only Count is required.
type Deps struct {
	Count  func(string) int64                                            // the reference counter
	Usage  func(provider string, raw session.JSON) (session.Call, error) // nil: usage.FromProvider
	Now    func() time.Time                                              // nil: time.Now
	Getenv func(string) string                                           // nil: os.Getenv
	Wait   func(ctx context.Context, d time.Duration) error              // nil: a timer
	HTTP   http.RoundTripper                                             // nil: http.DefaultTransport's settings
	Log    zerolog.Logger                                                // the zero value logs nothing
}

func (d Deps) withDefaults() Deps {
	if d.Usage == nil {
		d.Usage = usage.FromProvider
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Getenv == nil {
		d.Getenv = os.Getenv
	}
	if d.Wait == nil {
		d.Wait = wait
	}
	return d
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// The settings of a remote model's circuit breaker.
const (
	breakerThreshold = 3
	breakerCoolDown  = 5 * time.Minute
)

// New returns the model of cfg behind a circuit breaker. Call Close if the summariser has it. Codes: Invalid.
func New(cfg Config, deps Deps) (Summarizer, error) {
	deps = deps.withDefaults()
	remote, err := NewRemote(cfg, deps)
	if err != nil {
		return nil, err
	}
	if remote == nil {
		return nil, session.Errorf(session.Invalid, "summarizer.provider: %q is unknown; use extractive, gemini or openai",
			cfg.Provider)
	}
	return NewBreaker(remote, breakerThreshold, breakerCoolDown, deps), nil
}

// NewRemote returns the remote model of cfg, nil if it names none. Codes: Invalid.
func NewRemote(cfg Config, deps Deps) (*Remote, error) {
	switch cfg.Provider {
	case "gemini":
		return newGemini(cfg, deps)
	case "openai":
		return newOpenAI(cfg, deps)
	}
	return nil, nil
}

func trimURL(s string) string { return strings.TrimRight(strings.TrimSpace(s), "/") }
