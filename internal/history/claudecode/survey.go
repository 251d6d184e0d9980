package claudecode

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// survey is what a look over a transcript learns before anything is decoded.
type survey struct {
	id      string          // the rows' session, by most of them
	first   session.Time    // of the first row that has a time
	last    session.Time    // of the last one
	said    map[digest]bool // of what rows in the user's role say, in the part that is new
	replies []string        // ids of responses, as they first occur
	typed   string          // what a person said first
	command string          // the first command that a person ran
	cwd     string          // of the first row that has one
	branch  string
	version string
	lines   int  // in the part that is new
	stale   bool // the bytes before the cursor are not those that were read
	sum     hash.Hash
	cuts    *history.Cuts
	held    history.Held[*row] // the rows, for the second pass
}

// headLines is how many lines are looked at to tell whether a file is a transcript.
const headLines = 256

// look reads a transcript up to size. Codes: Invalid (no transcript).
func look(ctx context.Context, file io.ReaderAt, size int64, cursor *history.Cursor, cuts *history.Cuts) (*survey, error) {
	s := &survey{cuts: cuts, said: map[digest]bool{}, sum: sha256.New()}
	if err := s.recognise(file, size); err != nil {
		return nil, err
	}
	from := int64(0)
	if cursor != nil && cursor.Offset > 0 {
		if cursor.Offset > size {
			return &survey{cuts: cuts, stale: true}, nil
		}
		if _, err := io.Copy(s.sum, io.NewSectionReader(file, 0, cursor.Offset)); err != nil {
			return nil, err
		}
		if hex.EncodeToString(s.sum.Sum(nil)) != cursor.Hash {
			return &survey{cuts: cuts, stale: true}, nil
		}
		from = cursor.Offset
	}
	ids, seen := map[string]int{}, map[string]bool{}
	lines := history.NewLines(file, from, size).Cut(s.cuts)
	for n := 0; ; n++ {
		line, at, ended, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if s.lines++; err == nil && !ended {
			break
		}
		if err != nil {
			return nil, err
		}
		if n%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		own, keeps := line, false
		if lines.Size() == len(line) {
			if copied, ok := s.held.Own(line); ok {
				own, keeps = copied, true
			}
		}
		if t, exact, ok := history.ParseTalk(own); ok {
			w := rowOf(t, lines.Size())
			s.note(w, ids, seen)
			if keeps && exact {
				s.held.Keep(at, own, w)
			}
		}
	}
	most := 0
	for id, n := range ids {
		if n > most || n == most && id < s.id {
			s.id, most = id, n
		}
	}
	return s, nil
}

// maxReplies bounds the responses that are looked up in other sessions.
const maxReplies = 20_000

func (s *survey) note(r *row, ids map[string]int, seen map[string]bool) {
	if id := r.String("sessionId"); id != "" {
		ids[plain(id)]++
	}
	if s.first.IsZero() && r.timed {
		s.first = r.at
	}
	if r.timed {
		s.last = r.at
	}
	for _, f := range []struct {
		to  *string
		key string
	}{{&s.cwd, "cwd"}, {&s.branch, "gitBranch"}, {&s.version, "version"}} {
		if *f.to == "" {
			*f.to = plain(r.String(f.key))
		}
	}
	switch r.kind {
	case typeAssistant:
		if id := r.reply(); id != "" && !r.made() && !seen[id] && len(seen) < maxReplies {
			seen[id] = true
			s.replies = append(s.replies, id)
		}
	case typeUser:
		text := r.text()
		if text == "" {
			return
		}
		s.said[s.digestOf(text)] = true
		if r.side {
			return
		}
		switch r.speaker() {
		case saysPerson:
			if s.typed == "" {
				s.typed = text
			}
		case saysCommand:
			if s.command == "" {
				s.command = commandOf(text)
			}
		}
	case typeAttachment:
		a, _ := history.Fields(r.Get("attachment"))
		if a.String("type") == "queued_command" {
			s.said[s.digestOf(promptOf(a))] = true
		}
	}
}

type digest [12]byte

func (s *survey) digestOf(text string) digest {
	sum := sha256.New()
	s.cuts.Write(sum, []byte(strings.TrimSpace(text)))
	return digest(sum.Sum(nil)[:12])
}

// recognise tells whether the file is a transcript: among its first lines is a row of a chain,
// or a state that only these files have.
func (s *survey) recognise(file io.ReaderAt, size int64) error {
	lines := history.NewLines(file, 0, size).Cut(s.cuts)
	for n := 0; n < headLines; n++ {
		line, _, _, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		o, _, ok := history.ParseLine(line)
		if !ok {
			continue
		}
		kind := o.String("type")
		switch {
		case o.String("session_id") != "" && o.String("sessionId") == "" && (kind == "result" || kind == "system" || kind == typeUser || kind == typeAssistant):
			return session.Errorf(session.Invalid, "no transcript, but what `claude -p --output-format stream-json` prints: import the transcript of that run")
		case o.String("uuid") != "" && o.String("sessionId") != "", isState(kind):
			return nil
		}
	}
	return session.Errorf(session.Invalid, "no transcript of Claude Code: its first lines hold no row of one")
}

// isState tells whether a row is one of the states that are no part of the chain.
func isState(kind string) bool {
	switch kind {
	case "summary", "ai-title", "custom-title", "agent-name", "tag", "last-prompt", "mode", "permission-mode", "agent-setting",
		"worktree-state", "relocated", "atis-latch", "frame-link", "file-history-snapshot", "queue-operation", "pr-link",
		"content-replacement", "continued-in", "bridge-session", "started", "result":
		return true
	}
	return false
}

// commandOf makes a readable line of a command: /init with its arguments.
func commandOf(text string) string {
	name := between(text, "<command-name>", "</command-name>")
	if name == "" {
		name = between(text, "<command-message>", "</command-message>")
	}
	if name == "" {
		return ""
	}
	return strings.TrimSpace(name + " " + between(text, "<command-args>", "</command-args>"))
}

func between(text, open, end string) string {
	_, rest, ok := strings.Cut(text, open)
	if !ok {
		return ""
	}
	inner, _, _ := strings.Cut(rest, end)
	return strings.TrimSpace(inner)
}

// promptOf gives what a person typed while a turn ran.
func promptOf(a history.Object) string {
	if text, _ := history.Text(a.Get("prompt")); text != "" {
		return text
	}
	return (&row{content: a.Get("prompt")}).text()
}
