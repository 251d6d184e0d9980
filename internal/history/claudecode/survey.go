package claudecode

import (
	"hash/maphash"
	"slices"
	"strings"

	"sessiond/internal/folders"
	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// survey is what a look ahead over a transcript learns before a row is decoded.
type survey struct {
	id      string           // the rows' session, by most of them
	first   session.Time     // of the first row that has a time
	last    session.Time     // of the last one
	said    map[uint64]bool  // of what rows in the user's role say
	replies []string         // ids of responses, as they first occur
	forks   []string         // sessions that rows say they are copied from
	bills   map[string]*bill // by id of the response
	typed   string           // what a person said first
	command string           // the first command that a person ran
	byHand  bool             // a person typed a prompt
	prompts int              // of the session itself
	cwd     string           // of the first row that has one
	branch  string
	project string // the folder from which Claude Code made the worktree that cwd is in; "": none
	version string
	seed    maphash.Seed

	agentMeta jsonx.Object // what the newest row says of the sub-agent that otherwise a file beside this one does

	costs     []costState
	compacted bool // since the newest of them
}

// headLines is how many lines are read to report whether a file is a transcript.
const headLines = 256

// newSurvey surveys a transcript; nil: it is none.
func newSurvey(in *history.Intake) *survey {
	s := &survey{said: map[uint64]bool{}, bills: map[string]*bill{}, seed: maphash.MakeSeed()}
	ids, recognised := map[string]int{}, false
	for l := range in.Survey {
		if !recognised && l.Number > headLines {
			break
		}
		w, ok := parseRow(l)
		if !ok {
			continue
		}
		if !recognised && w.isPrinted() {
			in.Fail(session.Errorf(session.Invalid,
				"no transcript, but what `claude -p --output-format stream-json` prints: import the transcript of that run"))
			return nil
		}
		recognised = recognised || w.isTranscripts()
		ids[plain(w.String("sessionId"))]++
		s.note(w)
	}
	if !recognised {
		in.Fail(session.Errorf(session.Invalid, "no transcript of Claude Code: its first lines hold no row of one"))
		return nil
	}
	most := 0
	for id, n := range ids {
		if id != "" && (n > most || n == most && id < s.id) {
			s.id, most = id, n
		}
	}
	return s
}

// isPrinted reports whether a row is what a run prints.
func (w *row) isPrinted() bool {
	return w.String("session_id") != "" && w.String("sessionId") == "" &&
		slices.Contains([]string{"result", typeSystem, typeUser, typeAssistant}, w.kind)
}

// isTranscripts reports whether a row is one of a chain, or a state that only transcripts have.
func (w *row) isTranscripts() bool {
	return w.String("uuid") != "" && w.String("sessionId") != "" || isState(w.kind)
}

func (s *survey) note(w *row) {
	if s.first.IsZero() && w.timed {
		s.first = w.at
	}
	if w.timed {
		s.last = w.at
	}
	s.noteCost(w)
	first := func(to *string, key string) {
		if *to == "" {
			*to = plain(w.String(key))
		}
	}
	first(&s.cwd, "cwd")
	first(&s.branch, "gitBranch")
	first(&s.version, "version")
	if from, ok := jsonx.ReadFields(w.Get("forkedFrom")); ok {
		if id := plain(from.String("sessionId")); !slices.Contains(s.forks, id) {
			s.forks = append(s.forks, id)
		}
	}
	switch w.kind {
	case typeAgentMeta:
		s.agentMeta = w.Object
	case typeAssistant:
		if first := s.charge(w); first {
			s.replies = append(s.replies, w.reply())
		}
	case typeProgress:
		if _, said, ok := w.ofAgent(); ok && said.kind == typeAssistant {
			s.charge(said)
		}
	case typeUser:
		w.parseContent()
		text := w.text
		if text == "" {
			return
		}
		s.said[s.digest(text)] = true
		says := w.speaker()
		if says == saysPerson && !w.side {
			s.byHand = s.byHand || !w.isBySDK()
			s.prompts++
		}
		switch {
		case w.side:
		case says == saysPerson && session.TitleOf(plain(s.typed)) == "":
			s.typed = text
		case says == saysCommand && s.command == "":
			s.command = session.CommandLine(text)
		}
	case "worktree-state":
		made := w.Inner("worktreeSession")
		if from := plain(made.String("originalCwd")); from != "" &&
			folders.Within(folders.Clean(s.cwd), folders.Clean(plain(made.String("worktreePath")))) {
			s.project = from
		}
	case typeAttachment:
		a := w.Inner("attachment")
		if a.String("type") == "queued_command" {
			s.said[s.digest(promptOf(a))] = true
		}
	}
}

// isBySDK reports whether a program wrote a row in the user's role, with an SDK or `claude -p`.
func (w *row) isBySDK() bool {
	return strings.HasPrefix(w.String("entrypoint"), "sdk-") || w.String("promptSource") == "sdk"
}

// kindOfTrunk returns the kind of the file's session: a program gave the one prompt of an automated one. Who gives more
// is a person with a front end of another maker. A memory plug-in keeps its own sessions in a folder of its own.
func (s *survey) kindOfTrunk() string {
	if s.prompts == 1 && !s.byHand || strings.Contains(strings.ReplaceAll(s.cwd, `\`, "/")+"/", "/.claude-mem/") {
		return session.KindAutomated
	}
	return session.KindChat
}

// charge adds a row to the bill of its response. first reports whether it is the first of that.
func (s *survey) charge(w *row) (first bool) {
	id := w.reply()
	if id == "" || w.made() {
		return false
	}
	b := s.bills[id]
	if first = b == nil; first {
		b = &bill{}
		s.bills[id] = b
	}
	b.add(w)
	return first
}

func (s *survey) digest(text string) uint64 { return maphash.String(s.seed, strings.TrimSpace(text)) }

// isState reports whether a row is one of the states that are no part of the chain.
func isState(kind string) bool {
	switch kind {
	case "summary", "ai-title", "custom-title", "agent-name", "tag", "last-prompt", "mode", "permission-mode",
		"agent-setting",
		"worktree-state", "relocated", "atis-latch", "frame-link", "file-history-snapshot", "queue-operation", "pr-link",
		"content-replacement", "continued-in", "bridge-session", "started", "result", typeAgentMeta:
		return true
	}
	return false
}

// isRecord reports whether a row is a record of the program: of its requests, its tools, its costs. Each of them says
// something of its own moment, so they are kept one by one where states are folded.
func isRecord(kind string) bool {
	switch kind {
	case "api-request", "api-request-shape", "api-request-blob", "tools-used", typeCost:
		return true
	}
	return false
}
