package pi

import (
	"context"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Read implements history.Source. A line that parses is whole, also without its line feed.
func (s *Source) Read(ctx context.Context, found history.Found, cursor *history.Cursor, known history.Known, emit func(history.Batch) error) ([]history.Problem, error) {
	return history.Replay(ctx, session.SourcePi, found, cursor, known, history.AlwaysQuiet, emit, func(in *history.Intake) error {
		r, err := open(in)
		if err == nil && r.forgotten {
			in.Restart()
			r, err = open(in)
		}
		if err != nil {
			return err
		}
		return r.run()
	})
}

// reader adds the entries of one file.
type reader struct {
	*survey
	talk      *history.Conversation
	decoder   decoder
	forked    bool // it begins with copies of its origin's entries
	forgotten bool // what an earlier reading found to be shared is not here any more
	older     bool // everything in the file is here under newer names
	copies    copied
}

// open surveys a file and finds what of its session is here.
func open(in *history.Intake) (*reader, error) {
	s, err := look(in)
	if err != nil {
		return nil, err
	}
	r := &reader{survey: s}
	id := s.header.String("id")
	r.talk, err = in.Conversation(history.NewSession{Source: session.SourcePi, SourceID: id, Directory: s.header.String("cwd")})
	if err != nil {
		return nil, err
	}
	if err := r.recognise(); err != nil {
		return nil, err
	}
	if err := r.describe(); err != nil {
		return nil, err
	}
	r.decoder = decoder{survey: s, directory: r.talk.New.Directory, last: *r.talk.New.CreatedAt}
	return r, r.checkOld()
}

// recognise names the entries as they are stored, here or in an origin.
func (r *reader) recognise() error {
	if err := r.link(); err != nil {
		return err
	}
	here := r.talk.Here
	if r.version < 4 && r.forked {
		if err := r.talk.EachOrigin(func(s *session.Session) error { return r.adopt(s.ID) }); err != nil {
			return err
		}
	}
	if here == nil || r.version == 4 {
		return nil
	}
	if r.version == 1 && here.LastSeq > 0 && !r.forked {
		has, err := r.talk.Has(v1Key(0))
		if err != nil {
			return err
		}
		if r.older = !has && r.places > 0; r.older {
			return nil
		}
	}
	return r.adopt(here.ID)
}

// checkOld reports whether what earlier readings stored of the file is still there.
func (r *reader) checkOld() error {
	for i := r.next() - 1; i >= 0; i-- {
		if n := &r.nodes[i]; n.old {
			_, ok, err := r.talk.Find(n.key)
			r.forgotten = !ok
			return err
		}
	}
	return nil
}

func (r *reader) run() error {
	if r.older {
		r.in.Skip(skipOlder, len(r.nodes))
		return nil
	}
	own := r.in.Continues() && r.talk.Here != nil && r.talk.Here.LastSeq > 0 // a fork goes on by itself
	var failed error
	for i := range r.order {
		if failed = r.add(i, own); failed != nil {
			return failed
		}
	}
	if err := r.shareAside(); err != nil {
		return err
	}
	for _, m := range r.decoder.marks {
		if err := r.talk.Mark(m); err != nil {
			return err
		}
	}
	r.finish()
	return nil
}

func (r *reader) add(i int32, own bool) error {
	n := &r.nodes[i]
	var failed error
	err := r.talk.Add(history.Entry{
		Key: n.key, Parent: r.keyOf(n.parent), At: n.offset, Line: n.line, Own: own, Same: true,
		Decode: func() (history.Decoded, error) {
			line, err := r.raw(i)
			if err != nil {
				return history.Decoded{}, err
			}
			return r.decoder.decode(i, line), nil
		},
		Copied: func(of history.Place, d *history.Decoded) { failed = r.copy(i, of, d) },
	})
	if err == nil {
		err = failed
	}
	return err
}

// finish says what the session is now: its head, its title and what came to be known.
func (r *reader) finish() {
	fresh := r.talk.Fresh() > 0
	// A copy of a fork that has nothing of its own says nothing of where the fork is now.
	if !fresh && r.talk.Here != nil && !r.in.Continues() {
		return
	}
	r.talk.Head = r.keyOf(r.leaf())
	if r.named || !r.in.Continues() {
		if r.title != "" {
			r.talk.Title = r.title
		} else if r.named && r.talk.Here != nil {
			r.talk.Title = r.talk.New.Title
		}
	}
	if here := r.talk.Here; here != nil && here.Model == "" && r.talk.New.Model != "" { // all that it has are copies
		if r.talk.Fields == nil {
			r.talk.Fields = &history.Changes{}
		}
		r.talk.Fields.Provider, r.talk.Fields.Model = r.talk.New.Provider, r.talk.New.Model
	}
}

// describe says what the session is: from the header, the entries and the store.
func (r *reader) describe() error {
	created, err := r.firstTime()
	if err != nil {
		return err
	}
	s := &r.talk.New
	s.CreatedAt, s.Title, s.TitleSource = &created, r.title, "source"
	s.Metadata = history.Object{{Key: "pi", Raw: objectJSON(r.header.Without("type", "id", "cwd"))}}.JSON()
	if s.Title == "" {
		s.Title, s.TitleSource = r.firstUser, "first_message"
	}
	if s.Title == "" {
		s.TitleSource = ""
	}
	s.Provider, s.Model, err = r.model()
	return err
}

// titleRunes is how much of a first message stands for a title.
const titleRunes = 80

// firstLine returns the beginning of the first text that is not blank.
func firstLine(parts []session.Part) string {
	for i := range parts {
		text := strings.TrimSpace(parts[i].Text)
		if parts[i].Kind != session.PartText || text == "" {
			continue
		}
		line, _, _ := strings.Cut(text[:min(len(text), 8*titleRunes)], "\n")
		runes := []rune(strings.TrimSpace(strings.ToValidUTF8(line, "")))
		if len(runes) > titleRunes {
			return string(runes[:titleRunes-1]) + "…"
		}
		return string(runes)
	}
	return ""
}

// firstTime returns the time of the first entry: its day is that of the session.
func (r *reader) firstTime() (session.Time, error) {
	created, ok := r.made()
	if !ok {
		created = session.At(r.in.Found.ModifiedAt)
	}
	for i := range r.next() {
		if r.nodes[i].kind.aside() {
			continue
		}
		o, err := r.reread(i)
		if err != nil {
			return created, err
		}
		d := decoder{survey: r.survey, last: created}
		fields := take(o)
		return d.time(&fields), nil
	}
	return created, nil
}

// made returns the time of the header, in which a fork was made.
func (r *reader) made() (session.Time, bool) {
	if at, ok := parseTime(r.header.String("timestamp")); ok {
		return at, true
	}
	return unixMilli(r.header.Get("createdAt"))
}

// modelSearch is how far back from the leaf the model is looked for.
const modelSearch = 1000

// model returns the newest model on the path of the leaf, else the header's.
func (r *reader) model() (provider, model string, err error) {
	at := r.leaf()
	for range modelSearch {
		if at < 0 {
			break
		}
		o, err := r.reread(at)
		if err != nil {
			return "", "", err
		}
		message, _ := history.Fields(o.Get("message"))
		switch {
		case o.String("type") == lineModel:
			return o.String("provider"), o.String("modelId"), nil
		case message.String("role") == "assistant" && message.String("model") != "":
			return message.String("provider"), message.String("model"), nil
		}
		at = r.nodes[at].parent
	}
	return r.header.String("provider"), r.header.String("modelId"), nil
}
