package summarize

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/google/generative-ai-go/genai"
	"google.golang.org/api/option"
	"google.golang.org/api/option/internaloption"
	gtransport "google.golang.org/api/transport/grpc"
	"google.golang.org/grpc"

	"sessiond/internal/session"
)

// gemini asks Google's Gemini through its Go client.
type gemini struct {
	client *genai.Client
	http   *http.Client
	key    string
	model  string
}

// NewGemini makes a summariser for Gemini. Codes: Invalid.
func NewGemini(cfg Config, deps Deps) (*Remote, error) {
	deps = deps.withDefaults()
	key, err := readKey(cfg.APIKeyFile, "GEMINI_API_KEY", deps.Getenv)
	if err != nil {
		return nil, err
	}
	if key == "" {
		return nil, session.Errorf(session.Invalid, "summarizer: Gemini needs an API key: set GEMINI_API_KEY, or name a file with mode 0600 as summarizer.api_key_file")
	}
	model := cfg.Model
	if model == "" {
		model = DefaultGeminiModel
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
	// The client also makes one for cached content, over gRPC, which would connect at once
	// and is never closed. It gets a pool without connections.
	options = append(options, gtransport.WithConnPool(nowhere{}), internaloption.SkipDialSettingsValidation())
	api, err := genai.NewClient(context.Background(), options...)
	if err != nil {
		return nil, session.Errorf(session.Invalid, "summarizer: the Gemini client cannot be made: %s", clean(err.Error(), key))
	}
	return newRemote("gemini", model, cfg, deps, &gemini{client: api, http: client, key: key, model: model}), nil
}

// nowhere is a pool of gRPC connections that has none.
type nowhere struct{}

var errNowhere = errors.New("gRPC is not used here")

func (nowhere) Conn() *grpc.ClientConn { return nil }
func (nowhere) Num() int               { return 0 }
func (nowhere) Close() error           { return nil }

func (nowhere) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return errNowhere
}

func (nowhere) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errNowhere
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
		return out, &Failure{Kind: FailBadAnswer, Message: clean("the answer cannot be read: "+err.Error(), g.key)}
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

// geminiAnswer is what the transport reads of an answer beside the client, which knows
// neither newer finish reasons nor the tokens of thoughts.
type geminiAnswer struct {
	read    bool
	usage   session.JSON
	finish  string
	blocked string
	none    bool // no candidate
}

// failure gives why the answer is no summary, or nil.
func (a *geminiAnswer) failure() *Failure {
	switch {
	case a.blocked != "":
		return &Failure{Kind: FailRefusal, Message: "the prompt was blocked: " + cutRunes(a.blocked, 60)}
	case a.none:
		return &Failure{Kind: FailEmpty, Message: "the answer has no candidate"}
	}
	switch a.finish {
	case "", "STOP", "1", "FINISH_REASON_UNSPECIFIED", "0":
		return nil
	case "MAX_TOKENS", "2":
		return &Failure{Kind: FailTooLongOutput, Message: "the answer was cut off at the output limit"}
	}
	return &Failure{Kind: FailRefusal, Message: "the answer was stopped: " + cutRunes(a.finish, 60)}
}

// geminiTransport stands between the client and the network. It sends the key as a header
// and never in the URL, turns a bad status into a Failure before the client can retry it out
// of our sight, and takes thoughts out of the answer, which the client would give as text.
type geminiTransport struct {
	next http.RoundTripper
	key  string
}

// CloseIdleConnections lets http.Client reach the transport beneath.
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
		raw = seen.take(raw)
	}
	resp.Body = io.NopCloser(bytes.NewReader(raw))
	resp.ContentLength = int64(len(raw))
	return resp, nil
}

// take reads an answer and gives it back without thoughts.
func (a *geminiAnswer) take(raw []byte) []byte {
	a.read = true
	var head struct {
		Candidates []struct {
			FinishReason json.RawMessage `json:"finishReason"`
		} `json:"candidates"`
		PromptFeedback struct {
			BlockReason json.RawMessage `json:"blockReason"`
		} `json:"promptFeedback"`
		UsageMetadata session.JSON `json:"usageMetadata"`
	}
	var whole map[string]any
	if json.Unmarshal(raw, &head) != nil || json.Unmarshal(raw, &whole) != nil {
		return raw // the client says what is wrong with it
	}
	a.usage = head.UsageMetadata
	a.blocked = word(head.PromptFeedback.BlockReason)
	a.none = len(head.Candidates) == 0
	if !a.none {
		a.finish = word(head.Candidates[0].FinishReason)
	}
	candidates, _ := whole["candidates"].([]any)
	for _, c := range candidates {
		candidate, _ := c.(map[string]any)
		content, _ := candidate["content"].(map[string]any)
		parts, _ := content["parts"].([]any)
		kept := make([]any, 0, len(parts))
		for _, p := range parts {
			if part, _ := p.(map[string]any); part["thought"] != true {
				kept = append(kept, p)
			}
		}
		if content != nil {
			content["parts"] = kept
		}
	}
	if clean, err := session.MarshalPlain(whole); err == nil {
		return clean
	}
	return raw
}

// word reads an enum, which comes as a string or as a number.
func word(raw json.RawMessage) string {
	if string(raw) == "null" {
		return ""
	}
	return strings.Trim(string(raw), `"`)
}
