package summarize

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/generative-ai-go/genai"
	"google.golang.org/api/option"
	"google.golang.org/api/option/internaloption"
	gtransport "google.golang.org/api/transport/grpc"
	"google.golang.org/grpc"

	"sessiond/internal/session"
)

// gemini is Google's Gemini behind its Go client.
type gemini struct {
	client *genai.Client
	http   *http.Client
	key    string
	model  string
}

// newGemini returns a summariser for Gemini. Codes: Invalid.
func newGemini(cfg Config, deps Deps) (*Remote, error) {
	deps = deps.withDefaults()
	key, err := readKey(cfg.APIKeyFile, "GEMINI_API_KEY", deps.Getenv)
	if err != nil {
		return nil, err
	}
	if key == "" {
		return nil, session.Errorf(session.Invalid, "summarizer: Gemini needs an API key: set GEMINI_API_KEY, or name a file with mode 0600 as summarizer.api_key_file")
	}
	client := httpClient(deps.HTTP)
	client.Transport = &geminiTransport{next: client.Transport, key: key}
	options := []option.ClientOption{option.WithAPIKey(key), option.WithHTTPClient(client)}
	if base := trimURL(cfg.BaseURL); base != "" {
		if err := checkURL(base); err != nil {
			return nil, err
		}
		options = append(options, option.WithEndpoint(base))
	}
	// The client creates another one for cached content over gRPC, which connects at once and never
	// closes. It gets a pool without connections.
	options = append(options, gtransport.WithConnPool(noConnections{}), internaloption.SkipDialSettingsValidation())
	api, err := genai.NewClient(context.Background(), options...)
	if err != nil {
		return nil, session.Errorf(session.Invalid, "summarizer: the Gemini client cannot be created: %s", clean(err.Error(), key))
	}
	return makeRemote(cfg, deps, &gemini{client: api, http: client, key: key, model: cfg.ModelName()}), nil
}

// noConnections is an empty pool of gRPC connections.
type noConnections struct{}

var errNoConnections = errors.New("gRPC is not used here")

func (noConnections) Conn() *grpc.ClientConn { return nil }
func (noConnections) Num() int               { return 0 }
func (noConnections) Close() error           { return nil }

func (noConnections) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return errNoConnections
}

func (noConnections) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errNoConnections
}

func (g *gemini) close() error {
	err := g.client.Close()
	g.http.CloseIdleConnections()
	return err
}

func (g *gemini) ask(ctx context.Context, p prompt, maxTokens int64) (reply, error) {
	model := g.client.GenerativeModel(g.model)
	model.SystemInstruction = genai.NewUserContent(genai.Text(p.system))
	model.SetMaxOutputTokens(int32(min(maxTokens, 65536)))
	seen := &geminiAnswer{}
	resp, err := model.GenerateContent(context.WithValue(ctx, answerKey{}, seen), genai.Text(p.user))
	out := reply{usage: seen.usage}
	if f := seen.failure(); f != nil {
		return out, f
	}
	var f *Failure
	var blocked *genai.BlockedError
	switch {
	case errors.As(err, &f):
		return out, f
	case errors.As(err, &blocked):
		return out, &Failure{Kind: FailRefusal, Message: "the prompt or the answer was blocked"}
	case err != nil && seen.read:
		return out, &Failure{Kind: FailBadAnswer, Message: "the answer cannot be decoded", Detail: clean(err.Error(), g.key)}
	case err != nil:
		return out, networkFailure(err, g.key)
	}
	var b strings.Builder
	for _, c := range resp.Candidates {
		if c.Content == nil {
			continue
		}
		for _, part := range c.Content.Parts {
			if t, ok := part.(genai.Text); ok {
				b.WriteString(string(t))
			}
		}
		break
	}
	if strings.TrimSpace(b.String()) == "" {
		return out, &Failure{Kind: FailEmpty, Message: "the answer has no text"}
	}
	out.text = b.String()
	return out, nil
}

type answerKey struct{}

// geminiAnswer holds the fields that the transport reads beside the client, which knows neither newer
// finish reasons nor the tokens of thoughts.
type geminiAnswer struct {
	read    bool
	usage   session.JSON
	finish  string
	blocked string
	empty   bool // no candidate
}

// failure returns the reason why the answer is no summary, or nil.
func (a *geminiAnswer) failure() *Failure {
	switch {
	case a.blocked != "":
		return &Failure{Kind: FailRefusal, Message: "the prompt was blocked", Detail: cutRunes(a.blocked, 60)}
	case a.empty:
		return &Failure{Kind: FailEmpty, Message: "the answer has no candidate"}
	}
	switch a.finish {
	case "", "STOP", "1", "FINISH_REASON_UNSPECIFIED", "0":
		return nil
	case "MAX_TOKENS", "2":
		return &Failure{Kind: FailTooLongOutput, Message: "the answer was cut off at the output limit"}
	}
	return &Failure{Kind: FailRefusal, Message: "the answer was stopped", Detail: cutRunes(a.finish, 60)}
}

// geminiTransport is the client's transport. It sends the key as a header and never in the URL,
// returns a Failure for a bad status before the client retries by itself, and removes thoughts from
// the answer, which the client would return as text.
type geminiTransport struct {
	next http.RoundTripper
	key  string
}

// CloseIdleConnections closes those of the next transport.
func (t *geminiTransport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
func (t *geminiTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("X-Goog-Api-Key", t.key)
	query := req.URL.Query()
	query.Del("key")
	req.URL.RawQuery = query.Encode()
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, longestAnswer))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, statusFailure(resp, raw, t.key)
	}
	if seen, ok := req.Context().Value(answerKey{}).(*geminiAnswer); ok {
		raw = seen.decode(raw)
	}
	resp.Body = io.NopCloser(bytes.NewReader(raw))
	resp.ContentLength = int64(len(raw))
	return resp, nil
}

// decode reads an answer and returns it without thoughts.
func (a *geminiAnswer) decode(raw []byte) []byte {
	a.read = true
	type content struct {
		Parts []map[string]jsontext.Value `json:"parts"`
		Rest  jsontext.Value              `json:",embed"`
	}
	type candidate struct {
		FinishReason jsontext.Value `json:"finishReason,omitzero"`
		Content      *content       `json:"content,omitzero"`
		Rest         jsontext.Value `json:",embed"`
	}
	var whole struct {
		Candidates     []candidate `json:"candidates"`
		PromptFeedback struct {
			BlockReason jsontext.Value `json:"blockReason,omitzero"`
			Rest        jsontext.Value `json:",embed"`
		} `json:"promptFeedback,omitzero"`
		UsageMetadata jsontext.Value `json:"usageMetadata,omitzero"`
		Rest          jsontext.Value `json:",embed"`
	}
	if json.Unmarshal(raw, &whole, jsontext.AllowInvalidUTF8(true)) != nil {
		return raw // the client reports the error
	}
	a.usage = session.JSON(whole.UsageMetadata)
	a.blocked = enumName(whole.PromptFeedback.BlockReason)
	a.empty = len(whole.Candidates) == 0
	if !a.empty {
		a.finish = enumName(whole.Candidates[0].FinishReason)
	}
	for _, c := range whole.Candidates {
		if c.Content != nil {
			c.Content.Parts = slices.DeleteFunc(c.Content.Parts, func(part map[string]jsontext.Value) bool { return string(part["thought"]) == "true" })
		}
	}
	if clean, err := json.Marshal(whole); err == nil {
		return clean
	}
	return raw
}

// enumName returns an enum, which comes as a string or as a number.
func enumName(raw jsontext.Value) string {
	if string(raw) == "null" {
		return ""
	}
	return strings.Trim(string(raw), `"`)
}
