package config

import (
	"fmt"
	"slices"
	"strings"

	"sessiond/internal/contextmgr"
	"sessiond/internal/session"
	"sessiond/internal/spelling"
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
	if below := settingsBelow(key, known); len(below) > 0 {
		return session.Errorf(session.Invalid, "%s: %q has no value of its own: write one of its settings, %s",
			where, key, shortList(below)).
			At(key, "has no value of its own")
	}
	return session.Errorf(session.Invalid, "%s: there is no setting %q; the most similar one is %q", where, key,
		nearest(key, known)).
		At(key, "unknown setting")
}

// settingsBelow returns the settings of a group, such as budget.
func settingsBelow(group string, known []string) (below []string) {
	for _, k := range known {
		if strings.HasPrefix(k, group+".") {
			below = append(below, k)
		}
	}
	return below
}

// shortList names the first three.
func shortList(names []string) string {
	if more := len(names) - 3; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), more)
	}
	return strings.Join(names, ", ")
}

// nearest returns the known key that key resembles most: the setting of compaction whose other name it is, or
// the one with the smallest edit distance, also to its last word, so that "base_url" finds "summarizer.base_url".
func nearest(key string, known []string) string {
	if name := contextmgr.SettingCalled(lastWord(key)); name != "" {
		return "compaction." + name
	}
	best, bestAt := "", 1<<30
	for _, candidate := range known {
		d := min(spelling.Distance(key, candidate), spelling.Distance(key, lastWord(candidate))+1)
		if d < bestAt {
			best, bestAt = candidate, d
		}
	}
	return best
}

func lastWord(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }
