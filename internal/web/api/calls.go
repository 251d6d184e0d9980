package api

import (
	"cmp"
	"context"
	"encoding/json"
	"math"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/usage"
)

// Catalogue is what the routes need of the catalogue of models.
type Catalogue interface {
	// Price sets the call's cost by the price in force when it was made, if the price is known.
	Price(call *session.Call)
	// Model returns the info of a model, and false with a default if the model is unknown.
	Model(id string) (session.ModelInfo, bool)
}

// callBody is a model call that a caller reports: tokens by kind, or the provider's own usage object,
// which is converted by that provider's rules.
type callBody struct {
	Provider         name            `json:"provider,omitempty"`
	Model            name            `json:"model,omitempty"`
	Purpose          session.Purpose `json:"purpose,omitempty" enum:"chat,summary,title,branch_summary,tool,other"`
	Status           string          `json:"status,omitempty" enum:"ok,failed"`
	Error            text            `json:"error,omitempty"`
	ContextID        string          `json:"context_id,omitempty" doc:"The context that the call was made with, like ctx_12"`
	InputTokens      int64           `json:"input_tokens,omitempty" doc:"Input tokens without cached tokens"`
	CacheReadTokens  int64           `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens int64           `json:"cache_write_tokens,omitempty"`
	CacheWrite1h     int64           `json:"cache_write_1h_tokens,omitempty" doc:"The part of cache_write_tokens that stays in the cache for an hour"`
	OutputTokens     int64           `json:"output_tokens,omitempty" doc:"Output tokens including reasoning"`
	ReasoningTokens  int64           `json:"reasoning_tokens,omitempty"`
	ServiceTier      name            `json:"service_tier,omitempty" doc:"The provider's tier of service, as fast, priority, flex or batch; default: the standard one"`
	Requests         int64           `json:"requests,omitempty" doc:"Of the model web_search: how many searches the call stands for"`
	LatencyMS        *int64          `json:"latency_ms,omitempty"`
	CostUSD          *float64        `json:"cost_usd,omitempty" doc:"Cost in US dollars, as the provider charged it; default: by the catalogue's price"`
	Usage            jsontext.Value  `json:"usage,omitempty" doc:"The usage object of the provider's reply, as it is, instead of the numbers"`
	ExternalID       name            `json:"external_id,omitempty" doc:"The caller's id of the call; a call with the same id is counted once"`
	CreatedAt        *moment         `json:"created_at,omitempty"`
	Metadata         object          `json:"metadata,omitempty"`
}

// toCall checks a reported call and prices it. Codes: Invalid.
func (s *Server) toCall(ctx context.Context, id session.ID, b *callBody) (*session.Call, error) {
	if err := cmp.Or(
		oneOf("purpose", string(b.Purpose), "", "chat", "summary", "title", "branch_summary", "tool", "other"),
		oneOf("status", b.Status, "", session.CallOK, session.CallFailed),
	); err != nil {
		return nil, err
	}
	call := session.Call{
		InputTokens: b.InputTokens, CacheReadTokens: b.CacheReadTokens, CacheWriteTokens: b.CacheWriteTokens,
		CacheWrite1h: b.CacheWrite1h,
		OutputTokens: b.OutputTokens, ReasoningTokens: b.ReasoningTokens,
	}
	if len(b.Usage) > 0 && string(b.Usage) != "null" {
		if b.InputTokens+b.CacheReadTokens+b.CacheWriteTokens+b.CacheWrite1h+b.OutputTokens+b.ReasoningTokens != 0 {
			return nil, session.Errorf(session.Invalid,
				"usage and numbers of tokens exclude each other: send one of the two").At("usage", "excludes numbers of tokens")
		}
		var err error
		if call, err = usage.FromProvider(string(b.Provider), session.JSON(b.Usage)); err != nil {
			return nil, err
		}
	}
	call.SessionID, call.Provider, call.Purpose = id, string(b.Provider), b.Purpose
	if b.ServiceTier != "" {
		call.ServiceTier = usage.ServiceTier(string(b.ServiceTier))
	}
	call.Requests = b.Requests
	if b.Model != "" {
		call.Model = string(b.Model)
	}
	call.Status, call.Error, call.ExternalID = b.Status, string(b.Error), string(b.ExternalID)
	call.Metadata, call.LatencyMS = session.JSON(b.Metadata), b.LatencyMS
	call.CreatedAt = session.At(s.Now())
	if b.CreatedAt != nil {
		call.CreatedAt = b.CreatedAt.Time
		if err := call.CreatedAt.CheckDate("created_at", s.Now()); err != nil {
			return nil, err
		}
	}
	if err := cmp.Or(
		notNegative("input_tokens", &call.InputTokens),
		notNegative("cache_read_tokens", &call.CacheReadTokens),
		notNegative("cache_write_tokens", &call.CacheWriteTokens),
		notNegative("cache_write_1h_tokens", &call.CacheWrite1h),
		notNegative("output_tokens", &call.OutputTokens),
		notNegative("reasoning_tokens", &call.ReasoningTokens),
		notNegative("requests", &call.Requests),
		notNegative("latency_ms", call.LatencyMS),
	); err != nil {
		return nil, err
	}
	if err := s.linkContext(ctx, id, b.ContextID, &call); err != nil {
		return nil, err
	}
	return &call, s.price(&call, b.CostUSD)
}

// replyCall is toCall of a call that stands beside its reply. A usage that cannot be converted must
// not lose the reply: it is kept in the call's metadata, as it came, and the warning says so. The
// call's cost is then unknown. Codes: Invalid.
func (s *Server) replyCall(ctx context.Context, id session.ID,
	b *callBody,
) (call *session.Call, warning string, err error) {
	if len(b.Usage) == 0 || string(b.Usage) == "null" {
		call, err = s.toCall(ctx, id, b)
		return call, "", err
	}
	_, odd := usage.FromProvider(string(b.Provider), session.JSON(b.Usage))
	if odd == nil {
		call, err = s.toCall(ctx, id, b)
		return call, "", err
	}
	kept := map[string]jsontext.Value{}
	if len(b.Metadata) > 0 {
		if err := json.Unmarshal(b.Metadata, &kept); err != nil {
			return nil, "", err
		}
	}
	kept["usage"] = b.Usage
	known := *b
	known.Usage, known.Metadata = nil, object(session.JSONOf(kept))
	if call, err = s.toCall(ctx, id, &known); err != nil {
		return nil, "", err
	}
	if call.PromptTokens()+call.OutputTokens == 0 && b.CostUSD == nil {
		call.CostNanoUSD, call.PriceSource = nil, ""
	}
	return call, "call." + odd.Error() +
		"; the usage is kept as it came in the call's metadata, and no tokens are counted", nil
}

// linkContext sets the context that the call was made with. Codes: Invalid.
func (s *Server) linkContext(ctx context.Context, id session.ID, given string, call *session.Call) error {
	if given == "" {
		return nil
	}
	n, err := session.ParseName("ctx", given)
	if err == nil {
		_, err = s.Store.Context(ctx, id, n)
	}
	switch session.CodeOf(err) {
	case "":
		call.ContextID = &n
		return nil
	case session.Invalid, session.NotFound:
		return session.Errorf(session.Invalid,
			"context_id names no context of this session: a turn answers it as context.context_id, like ctx_12").
			At("context_id", "no context of this session")
	}
	return err
}

// maxCost is the maximum in dollars; a larger number has the wrong unit.
const maxCost = 1e6

func (s *Server) price(call *session.Call, reported *float64) error {
	if reported == nil {
		s.Catalogue.Price(call)
		return nil
	}
	if !(*reported >= 0 && *reported <= maxCost) {
		return session.Errorf(session.Invalid, "cost_usd must be between 0 and %d dollars", int64(maxCost)).
			At("cost_usd", "must be between 0 and %d", int64(maxCost))
	}
	nano := int64(math.Round(*reported * 1e9))
	call.CostNanoUSD, call.PriceSource = &nano, "reported"
	return nil
}

type addCallInput struct {
	InSession
	Keyed
	body[callBody]
}

func (s *Server) recordCall(ctx context.Context, in *addCallInput) (*output[session.Call], error) {
	call, err := s.toCall(ctx, in.ID, &in.value)
	if err != nil {
		return nil, err
	}
	call.Idem = in.idem
	return reply(s.Store.AddCall(ctx, *call))
}

type listCallsInput struct {
	InSession
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" doc:"Items per answer; default 50"`
	Cursor string `query:"cursor" doc:"next_cursor of the previous answer"`
}

func (s *Server) listCalls(ctx context.Context, in *listCallsInput) (*listOutput[session.Call], error) {
	return replyList(s.Store.Calls(ctx, in.ID, store.Page{Limit: in.Limit, Cursor: in.Cursor, Ascending: true}))
}
