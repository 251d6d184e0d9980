package codex

import (
	"crypto/sha256"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// survey is what a look over a rollout learns before anything is decoded.
type survey struct {
	header     jsonx.Object // the payload of its first header
	headerLine int
	stamp      session.Time // of the header's line, zero when it has none
	id         string       // of the thread
	history    string       // history_mode

	person    map[int64]bool // offsets of items that an event says a person wrote
	witnesses bool           // there are such events
	items     bool           // there are messages among the items: events only repeat them
	own       int64          // offset of the first record that is no copy in a fork; -1: not known
	sure      bool           // its time, its turn or its number says so
	summaries map[int64]bool // offsets of replies that a compaction has as its summary
	replays   bool           // there are records from before the thread began
	foreign   bool           // it holds headers of other threads
	firstUser string         // what a person said first, by an event
	typed     string         // text of the first item that looks like a person's
	name      string         // the last name that the thread was given in the file
	cwd       string         // of the first era, from what the model was told
	limits    int64          // the model's window, as the first turn says it

	end   int64 // of the last line
	limit int64 // where this reading ends: what lies behind is still being written
	waits bool  // records lie behind it
}

// recent is how many lines a user's item waits for the event that tells who wrote it.
const recent = 12

type surveyor struct {
	*survey
	line  int32
	users []typed // items in the user's role that no event has claimed, newest last
	reply mark    // where the reply that is not finished begins; offset -1: there is none
	says  bool    // that reply has text
	words typed   // the newest text of the model
	calls bool    // and a call without an output
	user  mark    // the newest user's item, while it may be claimed
	early mark    // the first user's item, while no event claimed one
	begun bool    // a line was read
	bare  bool    // no envelopes: nothing claims items
	gap   gap
	timed bool  // copies have the times of their originals
	heard typed // the last item that an event claimed
	first int64 // offset of the first record since a reply, a turn's beginning or a count; -1: none
}

// mark is a line of the file.
type mark struct {
	offset int64
	line   int32
}

// typed is an item in the user's role.
type typed struct {
	line   int32
	offset int64
	text   string // digest
	title  string
}

// look reads a rollout. It fails with Invalid if that is none.
func look(in *history.Intake) *survey {
	s := &surveyor{
		survey: &survey{person: map[int64]bool{}, summaries: map[int64]bool{}, own: -1},
		reply:  mark{offset: -1}, user: mark{offset: -1}, early: mark{offset: -1}, bare: true, first: -1,
	}
	for l := range in.Survey {
		s.line, s.end = int32(l.Number-1), l.End
		rec, ok := parseRecord(l.Bytes)
		if s.id == "" {
			in.Fail(s.readHeader(&rec, ok, l.At, l.Number))
		}
		if ok {
			rec.offset, rec.number = l.At, int32(l.Number)
			s.note(&rec)
		}
	}
	if s.id == "" {
		in.Fail(session.Errorf(session.Invalid, "no rollout: it holds no header"))
	}
	s.line++
	if s.replays && s.own < 0 { // nothing of its own is there yet
		s.begins(s.end, true)
	}
	s.settle(in)
	return s.survey
}

// readHeader reads the header: the first record, or behind fillers and other records of the first
// era. Codes: Invalid.
func (s *surveyor) readHeader(r *record, ok bool, at int64, number int) error {
	first := !s.begun
	s.begun = true
	switch {
	case !ok && first:
		return session.Errorf(session.Invalid, "no rollout: its first line is no JSON object")
	case first && !r.isRollout() && strings.HasPrefix(r.kind, "thread."):
		return session.Errorf(session.Invalid,
			"no rollout, but what `codex exec --json` prints: import the rollout of that run")
	case first && !r.isRollout():
		return session.Errorf(session.Invalid, "no rollout: its first line is no header")
	case r.kind == typeMeta && r.payload.String("id") != "":
		s.header = r.payload
		s.id, s.history = plainText(r.payload.String("id")), r.payload.String("history_mode")
		s.stamp, s.headerLine = r.at, number
	case at > headerScan:
		return session.Errorf(session.Invalid, "no rollout: its first MiB holds no header")
	}
	return nil
}

// headerScan is how far the header is looked for.
const headerScan = 1 << 20

func plainText(s string) string { return history.Plain(s) }

func (s *surveyor) here(at int64) mark { return mark{at, s.line} }

// note notes what a record tells.
func (s *surveyor) note(r *record) {
	if r.line.Get("payload") != nil {
		s.bare = false
	}
	s.boundary(r)
	switch {
	case r.isReply():
		s.items = s.items || r.sub == "message"
		if s.reply.offset < 0 {
			s.reply, s.says, s.calls = s.here(r.offset), false, false
		}
		if text := strings.TrimSpace(joined(r.payload.Get("content"))); r.sub == "message" && text != "" {
			s.says, s.words = true, typed{offset: r.offset, text: text}
		}
		s.calls = s.calls || strings.HasSuffix(r.sub, "_call") && r.payload.Get("call_id") != nil
		return
	case r.isEcho() && r.sub != "item_completed":
		return
	case r.isUser():
		s.items = true
		text := joined(r.payload.Get("content"))
		s.users = append(s.users, typed{r.number, r.offset, digestOf(text), titleOf(text)})
		s.user = s.here(r.offset)
		if s.early.offset < 0 && !s.witnesses {
			s.early = s.user
		}
		s.told(text)
	case r.kind == typeEvent:
		s.event(r)
	case r.kind == typeCompacted:
		if text := s.words.text; text != "" && strings.HasSuffix(strings.TrimSpace(r.payload.String("message")), text) {
			s.summaries[s.words.offset] = true
		}
	}
	if r.kind == typeItem && r.sub == "message" {
		s.items = true
	}
	if !r.isEcho() {
		s.reply.offset = -1
	}
	if len(s.users) > 0 && s.line-s.users[len(s.users)-1].line >= recent ||
		r.kind == typeEvent && strings.HasSuffix(r.sub, "_complete") {
		s.user.offset = -1
	}
}

// told finds the folder in what the model of the first era was told, and the first text that
// looks like a person's, for a title where no event names one.
func (s *surveyor) told(text string) {
	if rest, ok := cutBetween(text, "<cwd>", "</cwd>"); ok && s.cwd == "" {
		s.cwd = plainText(strings.TrimSpace(rest))
	}
	if s.typed == "" && wrapperOf([]string{text}) == "" {
		s.typed = titleOf(text)
	}
}

func cutBetween(text, open, end string) (string, bool) {
	_, rest, ok := strings.Cut(text, open)
	if !ok {
		return "", false
	}
	inner, _, ok := strings.Cut(rest, end)
	return inner, ok
}

func (s *surveyor) event(r *record) {
	switch r.sub {
	case "task_started", "turn_started":
		if s.limits == 0 {
			s.limits = history.Count(r.payload.Get("model_context_window"))
		}
	case "user_message":
		s.claim(r.payload.String("message"), r.number)
	case "item_completed":
		item := r.payload.Inner("item")
		if item.String("type") == "UserMessage" {
			s.claim(joined(item.Get("content")), r.number)
		}
	case "thread_name_updated":
		if thread := r.payload.String("thread_id"); thread == "" || thread == s.id { // a fork repeats its origin's
			s.name = strings.TrimSpace(r.payload.String("thread_name"))
		}
	}
}

// claim assigns an event to the item that it repeats: the nearest with its text, else the one
// on the line before, whose text was changed on its way.
func (s *surveyor) claim(text string, number int32) {
	s.witnesses = true
	says := digestOf(text)
	for i := len(s.users) - 1; i >= 0 && number-s.users[i].line <= recent; i-- {
		if s.users[i].text == says {
			s.claimed(i)
			return
		}
	}
	if last := len(s.users) - 1; last >= 0 && number-s.users[last].line == 1 {
		s.claimed(last)
	} else if s.firstUser == "" {
		s.firstUser = titleOf(text)
	}
}

func (s *surveyor) claimed(i int) {
	s.heard = s.users[i]
	s.person[s.heard.offset] = true
	if s.firstUser == "" {
		s.firstUser = s.heard.title
	}
	s.users = s.users[i+1:]
	s.user.offset = -1
}

// request ends what an editor puts before what the person wrote.
const request = "## My request for Codex:"

func titleOf(text string) string {
	if _, rest, ok := strings.Cut(text, request); ok {
		text = rest
	}
	return session.TitleOf(plainText(text))
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
	return string(sum[:12])
}

// settle decides where this reading ends. A reply whose end is not here, and an item that an
// event may still claim, wait.
func (s *surveyor) settle(in *history.Intake) {
	s.limit = s.end
	var waits []mark
	if s.reply.offset >= 0 && in.ReplyWaits(s.says, s.calls) {
		waits = append(waits, s.reply)
	}
	switch {
	case in.Quiet() || s.bare || s.history == paginated:
	case s.witnesses:
		waits = append(waits, s.user)
	case !in.Found.Last && s.line-s.early.line < beginning:
		waits = append(waits, s.early)
	}
	for _, m := range waits {
		if m.offset >= 0 && m.offset < s.limit {
			s.limit, s.waits = m.offset, true
		}
	}
}

// beginning is how many lines of a file may go by without an event that claims an item before
// it counts as one that has none.
const beginning = 40
