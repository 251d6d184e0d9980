package api_test

import (
	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize"
	"sessiond/internal/tokens"
)

// manager is the real one, offline: the digest alone, and a catalogue of one model.
func manager(st *store.Store) *contextmgr.Manager {
	return contextmgr.New(st, contextmgr.Config{
		Digest: summarize.NewExtractive(tokens.Reference().Text),
		Models: func(id string) (session.ModelInfo, bool) {
			return session.ModelInfo{ID: id, Window: 128_000, Family: string(tokens.O200k)}, id == "known"
		},
		Counter:   func(family string) contextmgr.Counter { return tokens.ForFamily(tokens.Family(family)) },
		Reference: string(tokens.O200k),
		Flush:     contextmgr.FlushSettings{Enabled: true},
	})
}
