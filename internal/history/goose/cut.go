package goose

import "sessiond/internal/history"

// cutRule tells which strings of a content may be cut: what people, models and tools said.
func cutRule() history.CutRule {
	return history.CutRule{Fields: []string{"text", "thinking", "data", "blob"}}
}
