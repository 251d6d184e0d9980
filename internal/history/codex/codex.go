// Package codex reads the rollouts of the Codex CLI, its IDE extension and its app: bare items,
// envelopes, and paginated histories; plain or compressed, live or archived.
//
// Codex writes most of a conversation twice: as items (response_item), which the model sees, and as
// events (event_msg) for its display. The items count. An event that repeats one is skipped, but it
// tells which items in the user's role a person wrote; token counts, roll-backs, aborts and names are
// events only. In a file without items the events are the conversation.
//
// A file is read twice. The survey finds what a line by itself does not say: which of the
// user's messages a person wrote, where the copies of a fork end, and which records at the end
// belong to a reply that is still being written. The second pass turns records into messages.
//
// A record of the conversation is known by a hash of what it says and of all that was said
// before it. So a record has the same key wherever a rollout is moved, compressed or copied
// to, a fork's copies have the keys of their originals, and what follows a changed record has
// keys of its own: it is a branch.
package codex

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Source is the history.Source of Codex.
type Source struct {
	home  string
	state string // the folder of the mirror, where it is another one
	now   func() time.Time
}

// New makes the source, with Codex' usual place from the environment: $CODEX_HOME, else
// ~/.codex, and $CODEX_SQLITE_HOME for its mirror.
func New(env func(string) string, now func() time.Time) *Source {
	home := env("CODEX_HOME")
	if home == "" && env("HOME") != "" {
		home = env("HOME") + "/.codex"
	}
	state := env("CODEX_SQLITE_HOME")
	if !filepath.IsAbs(state) || state == home {
		state = ""
	}
	return &Source{home: home, state: state, now: now}
}

// Name implements history.Source.
func (s *Source) Name() session.Source { return session.SourceCodex }

// Read implements history.Source.
func (s *Source) Read(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	if generation(found.Path) > 0 {
		return s.mirror(ctx, found, known, emit)
	}
	file, err := open(found.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if file.size == 0 {
		return nil, session.Errorf(session.Invalid, "the file is empty")
	}
	found.Size, found.ModifiedAt = file.stored, file.modified
	in, err := history.NewIntake(ctx, session.SourceCodex, found, file, cursor, known, s.now(), emit)
	if err != nil {
		return nil, err
	}
	in.Unpacked(file.size)
	switch filepath.Base(found.Path) {
	case indexName:
		err = readNames(in)
	case promptsName:
		err = readPrompts(in)
	default:
		err = readRollout(in)
	}
	if err != nil {
		return nil, err
	}
	return in.Finish()
}

// rollout is a file that can be read at any place.
type rollout struct {
	*os.File
	size     int64 // of what it says, in bytes
	stored   int64 // of the file itself
	modified time.Time
}

// maxExpanded is the size above which a compressed rollout is not believed.
const maxExpanded = 64 << 30

// open opens a rollout. A compressed one is unpacked into a file that has no name, so that
// memory does not grow with it.
func open(path string) (*rollout, error) {
	file, info, err := history.Open(path)
	if err != nil {
		return nil, err
	}
	r := &rollout{File: file, size: info.Size(), stored: info.Size(), modified: info.ModTime()}
	if !strings.HasSuffix(path, ".zst") || r.size == 0 {
		return r, nil
	}
	defer file.Close()
	r.File, r.size, err = expand(file)
	return r, err
}

func expand(from io.Reader) (*os.File, int64, error) {
	unpack, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return nil, 0, err
	}
	defer unpack.Close()
	file, err := history.TempFile()
	if err != nil {
		return nil, 0, err
	}
	size, err := io.Copy(file, io.LimitReader(unpack, maxExpanded))
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, size, nil
}

// Reasons to skip that only rollouts have.
const (
	skipHeader    = "repeated header"
	skipOrigin    = "header of the session it was forked off"
	skipInherited = "inherited from the session it was forked off"
	skipFiller    = "filler"
	skipCopy      = "event that repeats an item"
	skipTurn      = "beginning or end of a turn"
	skipContext   = "unchanged turn context"
	skipTokens    = "token count that repeats"
	skipNoTokens  = "token count without usage"
	skipName      = "name of a session that is not here"
	skipOldName   = "older name of a session"
	skipNoName    = "no name of a session"
	skipThread    = "state of a session that is not here"
	skipEdge      = "link of a session that is not here"
	skipCircle    = "link in a circle"
	skipPrompt    = "prompt of a session that is here"
	skipLost      = "prompt of a session that is not here"
	skipNoPrompt  = "no prompt of a session"
	skipEmpty     = "item without content"
)

// Outer types of records.
const (
	typeMeta      = "session_meta"
	typeContext   = "turn_context"
	typeItem      = "response_item"
	typeEvent     = "event_msg"
	typeCompacted = "compacted"
	typeUsage     = "token_usage_record"
	typeWorld     = "world_state"
	typeAgents    = "inter_agent_communication"
	typeAgentMeta = "inter_agent_communication_metadata"
	typeFiller    = "state" // of the era before envelopes
)

// paginated is the history_mode of files whose events are few and whose records are numbered.
const paginated = "paginated"
