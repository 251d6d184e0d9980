package models

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/generative-ai-go/genai"
	"google.golang.org/api/option"
	"google.golang.org/api/option/internaloption"
	gtransport "google.golang.org/api/transport/grpc"

	"sessiond/internal/session"
	"sessiond/internal/summarize/digest"
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
		return nil, session.Errorf(session.Invalid,
			"summarizer: Gemini needs an API key: set GEMINI_API_KEY, or name a file with mode 0600 as summarizer.api_key_file")
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
		return nil, session.Errorf(session.Invalid, "summarizer: the Gemini client cannot be created: %s",
			clean(err.Error(), key))
	}
	return makeRemote(cfg, deps, &gemini{client: api, http: client, key: key, model: cfg.ModelName()}), nil
}

// noConnections is an empty pool of gRPC connections, of which nothing is asked but to close.
type noConnections struct{ gtransport.ConnPool }

func (noConnections) Close() error { return nil }

func (g *gemini) close() error {
	err := g.client.Close()
	g.http.CloseIdleConnections()
	return err
}

func (g *gemini) ask(ctx context.Context, p prompt, maxTokens int64) (reply, error) {
	model := g.client.GenerativeModel(g.model)
	model.SystemInstruction = genai.NewUserContent(genai.Text(p.system))
	model.SetMaxOutputTokens(int32(min(maxTokens, 65536)))
	var raw []byte
	_, err := model.GenerateContent(context.WithValue(ctx, answerKey{}, &raw), genai.Text(p.user))
	if raw == nil {
		return reply{}, networkFailure(err, g.key)
	}
	var answer geminiAnswer
	if err := json.Unmarshal(raw, &answer, jsontext.AllowInvalidUTF8(true)); err != nil {
		return reply{}, &Failure{
			Kind: FailBadAnswer, Message: "the answer cannot be decoded",
			Detail: clean(err.Error(), g.key),
		}
	}
	return answer.reply()
}

// answerKey is the key under which a request's context has a *[]byte for the answer's body.
type answerKey struct{}

// geminiAnswer has the needed fields of an answer. The client does not read it, because it knows neither newer finish
// reasons nor the tokens of thoughts, and returns thoughts as text. Enums come as strings or as numbers.
type geminiAnswer struct {
	Candidates []struct {
		FinishReason jsontext.Value `json:"finishReason"`
		Content      struct {
			Parts []struct {
				Text    string `json:"text"`
				Thought bool   `json:"thought"`
			} `json:"parts"`
		} `json:"content"`
	} `json:"candidates"`
	PromptFeedback struct {
		BlockReason jsontext.Value `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage session.JSON `json:"usageMetadata"`
}

// reply returns the text of the first candidate.
func (a *geminiAnswer) reply() (reply, error) {
	out := reply{usage: a.Usage}
	switch blocked := enumName(a.PromptFeedback.BlockReason); {
	case blocked != "":
		return out, &Failure{Kind: FailRefusal, Message: "the prompt was blocked", Detail: digest.CutText(blocked, 60)}
	case len(a.Candidates) == 0:
		return out, &Failure{Kind: FailEmpty, Message: "the answer has no candidate"}
	}
	switch finish := enumName(a.Candidates[0].FinishReason); finish {
	case "", "STOP", "1", "FINISH_REASON_UNSPECIFIED", "0":
	case "MAX_TOKENS", "2":
		return out, &Failure{Kind: FailTooLongOutput, Message: "the answer was cut off at the output limit"}
	default:
		return out, &Failure{Kind: FailRefusal, Message: "the answer was stopped", Detail: digest.CutText(finish, 60)}
	}
	for _, part := range a.Candidates[0].Content.Parts {
		if !part.Thought {
			out.text += part.Text
		}
	}
	if strings.TrimSpace(out.text) == "" {
		return out, &Failure{Kind: FailEmpty, Message: "the answer has no text"}
	}
	return out, nil
}

// geminiTransport is the client's transport. It sends the key as a header and never in the URL,
// returns a Failure for a bad status before the client retries by itself, and keeps the answer's body.
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
	if body, ok := req.Context().Value(answerKey{}).(*[]byte); ok {
		*body = raw
	}
	resp.Body = io.NopCloser(bytes.NewReader(raw))
	return resp, nil
}

// enumName returns an enum, which comes as a string or as a number.
func enumName(raw jsontext.Value) string {
	if string(raw) == "null" {
		return ""
	}
	return strings.Trim(string(raw), `"`)
}
