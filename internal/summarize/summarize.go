// Package summarize chooses who makes the text that stands for the hidden part of a conversation: the digest, which
// needs no model and no network, or a model, whose failures the caller covers with a digest. It never writes to a
// store; what it was asked and what it cost comes back with the text.
package summarize

import (
	"sessiond/internal/summarize/digest"
	"sessiond/internal/summarize/models"
)

// What a summariser is made of.
type (
	Config     = models.Config
	Deps       = models.Deps
	Summarizer = models.Summarizer
)

// New returns the summariser of cfg, without a provider the digest. A model has a circuit breaker; after its failures
// the caller uses a digest. Call Close if the summariser has it. Codes: Invalid.
func New(cfg Config, deps Deps) (Summarizer, error) {
	if cfg.Provider == "" || cfg.Provider == digest.ExtractiveProvider {
		return digest.NewExtractive(deps.Count), nil
	}
	return models.New(cfg, deps)
}
