package config

import (
	"slices"
	"strings"

	"sessiond/internal/session"
)

// knownName returns the setting of a file's key: the key itself, or the free-form key above it; ""
// for an unknown key.
func knownName(key string, known []string) string {
	if slices.Contains(known, key) {
		return key
	}
	for _, prefix := range freeForm {
		if strings.HasPrefix(key, prefix+".") {
			return prefix
		}
	}
	return ""
}

func unknownKey(key, where string, known []string) error {
	return session.Errorf(session.Invalid, "%s: there is no setting %q; the most similar one is %q", where, key, nearest(key, known)).
		At(key, "unknown setting")
}

// nearest returns the known key with the smallest edit distance, also to its last word, so that
// "base_url" finds "summarizer.base_url".
func nearest(key string, known []string) string {
	best, bestAt := "", 1<<30
	for _, candidate := range known {
		last := candidate[strings.LastIndexByte(candidate, '.')+1:]
		d := min(Distance(key, candidate), Distance(key, last)+1)
		if d < bestAt {
			best, bestAt = candidate, d
		}
	}
	return best
}

// Distance returns the Levenshtein distance of two short strings, in bytes.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next := min(row[j]+1, row[j-1]+1, diagonal+cost)
			diagonal, row[j] = row[j], next
		}
	}
	return row[len(b)]
}
