package models

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
)

// longestAnswer is the limit of an answer in bytes.
const longestAnswer = 8 << 20

// openai is a server with OpenAI's chat completions.
type openai struct {
	client  *http.Client
	url     string
	key     string
	model   string
	limitAs string // the field that bounds the output
}

// newOpenAI returns a summariser for OpenAI or a compatible server, whose cfg.BaseURL includes the
// version (http://127.0.0.1:11434/v1). Only OpenAI itself requires a key. Codes: Invalid.
func newOpenAI(cfg Config, deps Deps) (*Remote, error) {
	deps = deps.withDefaults()
	key, err := readKey(cfg.APIKeyFile, "OPENAI_API_KEY", deps.Getenv)
	if err != nil {
		return nil, err
	}
	base := trimURL(cfg.BaseURL)
	// OpenAI's newer models reject max_tokens; other servers know nothing else.
	limitAs := "max_tokens"
	if base == "" || base == DefaultOpenAIURL {
		base, limitAs = DefaultOpenAIURL, "max_completion_tokens"
		if key == "" {
			return nil, session.Errorf(session.Invalid,
				"summarizer: OpenAI needs an API key: set OPENAI_API_KEY, or name a file with mode 0600 as summarizer.api_key_file")
		}
	}
	if err := checkURL(base); err != nil {
		return nil, err
	}
	return makeRemote(cfg, deps, &openai{
		client: httpClient(deps.HTTP), url: base + "/chat/completions", key: key, model: cfg.ModelName(), limitAs: limitAs,
	}), nil
}

func checkURL(base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return session.Errorf(session.Invalid,
			"summarizer.base_url: give a URL like http://127.0.0.1:11434/v1, without a user, a key or a query")
	}
	return nil
}

// httpClient returns a client that follows no redirect, which could send the key to another host.
// Without a transport it has one of its own, so that Close closes no other connections.
func httpClient(rt http.RoundTripper) *http.Client {
	if rt == nil {
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			rt = t.Clone()
		}
	}
	return &http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (o *openai) close() error {
	o.client.CloseIdleConnections()
	return nil
}

// chatAnswer has the needed fields of a chat completion.
type chatAnswer struct {
	Choices []struct {
		Message struct {
			Content *string `json:"content"`
			Refusal *string `json:"refusal"`
		} `json:"message"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage session.JSON `json:"usage"`
}

func (o *openai) ask(ctx context.Context, p prompt, maxTokens int64) (reply, error) {
	body, err := session.MarshalPlain(map[string]any{
		"model": o.model,
		"messages": []map[string]string{
			{"role": "system", "content": p.system},
			{"role": "user", "content": p.user},
		},
		o.limitAs: maxTokens,
	})
	if err != nil {
		return reply{}, fmt.Errorf("encode the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, bytes.NewReader(body))
	if err != nil {
		return reply{}, fmt.Errorf("create the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if o.key != "" {
		req.Header.Set("Authorization", "Bearer "+o.key)
	}
	resp, err := o.client.Do(req)
	if err != nil {
		return reply{}, networkFailure(err, o.key)
	}
	defer resp.Body.Close() //nolint:errcheck // nothing follows from it
	raw, err := io.ReadAll(io.LimitReader(resp.Body, longestAnswer))
	if err != nil {
		return reply{}, networkFailure(err, o.key)
	}
	if resp.StatusCode/100 != 2 {
		return reply{}, statusFailure(resp, raw, o.key)
	}
	var answer chatAnswer
	if err := json.Unmarshal(raw, &answer, jsontext.AllowInvalidUTF8(true)); err != nil {
		return reply{}, &Failure{
			Kind: FailBadAnswer, Message: "the answer is not a chat completion",
			Detail: clean(err.Error(), o.key), cause: err,
		}
	}
	return answer.reply()
}

// reply returns the text of the first choice.
func (a *chatAnswer) reply() (reply, error) {
	out := reply{usage: a.Usage}
	if len(a.Choices) == 0 {
		return out, &Failure{Kind: FailEmpty, Message: "the answer has no choice"}
	}
	c := &a.Choices[0]
	switch {
	case c.Message.Refusal != nil && *c.Message.Refusal != "":
		return out, &Failure{Kind: FailRefusal, Message: "the model declined"}
	case c.FinishReason == "content_filter":
		return out, &Failure{Kind: FailRefusal, Message: "a content filter stopped the answer"}
	case c.FinishReason == "length":
		return out, &Failure{Kind: FailTooLongOutput, Message: "the answer was cut off at the output limit"}
	case c.Message.Content == nil || strings.TrimSpace(*c.Message.Content) == "":
		return out, &Failure{Kind: FailEmpty, Message: "the answer has no text"}
	}
	out.text = *c.Message.Content
	return out, nil
}

// networkFailure returns the failure of a request without an answer. It drops the URL, which may
// contain a secret.
func networkFailure(err error, key string) error {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	cause := err
	var u *url.Error
	if errors.As(err, &u) {
		cause = u.Err
	}
	return &Failure{Kind: FailServer, Message: clean("the server cannot be reached: "+cause.Error(), key), retry: true}
}
