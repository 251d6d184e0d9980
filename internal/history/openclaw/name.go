package openclaw

import (
	"net/url"
	"strings"
	"time"

	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// fileKind says what a file in a sessions folder is, by its name.
type fileKind uint8

const (
	fileForeign     fileKind = iota // none of OpenClaw's
	fileTranscript                  // also one put away by a reset
	fileBackup                      // an older state of a transcript
	fileDeleted                     // a session that its user, or the retention of jobs, deleted
	fileIndex                       // sessions.json
	fileBookkeeping                 // locks, half-written files, old indexes
	fileTrace                       // what the runtime did, not what was said
)

// fileName is what the name of a file says.
type fileName struct {
	kind  fileKind
	id    string // the session's
	topic string // of a forum
	zstd  bool
	put   session.Time // away, by a reset
}

var created = pattern.New(`^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(-\d+)?Z_`)

var putAway = pattern.New(`^reset\.(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d(?:\.\d+)?Z)`)

// parseName reads a file's name. Source: config/sessions/artifacts.ts of OpenClaw.
func parseName(name string) fileName {
	switch {
	case name == "sessions.json":
		return fileName{kind: fileIndex}
	case strings.HasPrefix(name, "sessions.json."), strings.HasSuffix(name, ".lock"), strings.HasSuffix(name, ".tmp"):
		return fileName{kind: fileBookkeeping}
	case strings.HasSuffix(name, ".trajectory.jsonl"), strings.HasSuffix(name, ".trajectory-path.json"):
		return fileName{kind: fileTrace}
	}
	f := fileName{kind: fileTranscript}
	name, f.zstd = strings.CutSuffix(name, ".zst")
	stem, suffix, put := strings.Cut(name, ".jsonl.")
	switch {
	case put && strings.HasPrefix(suffix, "reset."):
		if m := putAway.FindStringSubmatch(suffix); m != nil {
			at, _ := time.Parse(time.RFC3339, m[1]+":"+m[2]+":"+m[3])
			f.put = session.At(at)
		}
	case put && strings.HasPrefix(suffix, "deleted."):
		f.kind = fileDeleted
	case put && (strings.HasPrefix(suffix, "bak.") || strings.HasPrefix(suffix, "corrupt-") ||
		strings.HasPrefix(suffix, "pre-doctor-") ||
		strings.HasSuffix(suffix, "migrated")):
		f.kind = fileBackup
	case !put && strings.HasSuffix(name, ".jsonl"):
		stem = strings.TrimSuffix(name, ".jsonl")
	default:
		return fileName{}
	}
	for _, mark := range []string{".checkpoint.", ".corrupt-"} {
		if before, _, ok := strings.Cut(stem, mark); ok {
			stem, f.kind = before, fileBackup
		}
	}
	f.id, f.topic, _ = strings.Cut(created.ReplaceAllString(stem, ""), "-topic-")
	if topic, err := url.PathUnescape(f.topic); err == nil {
		f.topic = topic
	}
	return f
}

// baseName returns the last element of a path as any system writes it.
func baseName(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }
