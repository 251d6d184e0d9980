package opencode

import "sessiond/internal/history"

// cutRule tells which strings of a part may be cut: what people and models said, and what tools
// gave. The addresses of files, which may hold them, are taken apart in another way.
func cutRule() history.CutRule {
	return history.CutRule{Fields: []string{"text", "output"}}
}
