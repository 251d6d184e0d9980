package pi

import (
	"cmp"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// read reads a transcript.
func read(in *history.Intake) {
	r := open(in)
	if r != nil && r.forgotten {
		in.Restart()
		r = open(in)
	}
	if r != nil {
		r.run()
	}
}

// reader adds the entries of one file.
type reader struct {
	*survey
	talk      *history.Conversation
	last      session.Time   // of the entry before, for lines without a time
	marks     []history.Mark // labels, also of entries that come after them
	forked    bool           // it begins with copies of its origin's entries
	forgotten bool           // what an earlier reading found to be shared is not here any more
	older     bool           // everything in the file is here under newer names
	copies    copied
}

// open surveys a file and finds what of its session is here; nil: the reading has failed.
func open(in *history.Intake) *reader {
	s := look(in)
	if in.Err() != nil {
		return nil
	}
	r := &reader{survey: s, copies: copied{heads: map[session.ID]map[int64]bool{}}}
	r.talk = in.Conversation(history.NewSession{
		Source: in.Source(), SourceID: s.Header.String("id"), Directory: s.Header.String("cwd"),
	})
	r.recognise()
	r.describe()
	r.checkOld()
	return r
}

// recognise names the entries as they are stored, here or in an origin.
func (r *reader) recognise() {
	if r.link(); r.Version == 4 {
		return
	}
	for _, s := range r.talk.Origins() {
		r.Adopt(s.ID)
	}
	here := r.talk.Here
	if here == nil {
		return
	}
	if r.older = !r.forked && r.IsOlder(r.talk); !r.older {
		r.Adopt(here.ID)
	}
}

// checkOld reports whether what earlier readings stored of the file is still there.
func (r *reader) checkOld() {
	for i := r.Len() - 1; i >= 0; i-- {
		if n := &r.Nodes[i]; n.Old {
			_, ok := r.talk.Find(n.Key)
			r.forgotten = !ok
			return
		}
	}
}

func (r *reader) run() {
	if r.older {
		r.In.Skip(skipOlder, len(r.Nodes))
		return
	}
	own := r.In.Continues() && r.talk.Here != nil && r.talk.Here.LastSeq > 0 // a fork goes on by itself
	for i := range r.order {
		n := &r.Nodes[i]
		r.talk.Add(history.Entry{
			Key: n.Key, Parent: cmp.Or(r.KeyOf(n.Parent), r.talk.Base()), At: n.Offset, Line: n.Line, Own: own, Same: true,
			Decode: func() history.Decoded { return r.decode(i) },
			Copied: func(of history.Place, d *history.Decoded) { r.copy(i, of, d) },
		})
	}
	r.shareAside()
	for _, m := range r.marks {
		r.talk.Mark(m)
	}
	r.finish()
}

// decode reads an entry again and turns it into a message.
func (r *reader) decode(i int32) history.Decoded {
	n := &r.Nodes[i]
	raw := r.Raw(i)
	l, why := ParseLine(raw, r.Version, r.last)
	if why != "" {
		return history.KeepRaw(raw, why, session.SourcePi, r.last)
	}
	r.last = l.Message.CreatedAt
	r.OmitPlace(i, l)
	made, note := history.Decoded{Raw: l.Raw}, n.cut
	if i < r.foreign { // the other program's history counts them
		l.Calls = nil
	}
	if n.cut == cutCycle {
		made.Problem = cutCycle + ": the cycle is cut here"
	}
	switch l.Type {
	case lineCompaction:
		if c := r.compaction(i, l); c != nil {
			made.Compactions = []history.Compaction{*c}
		} else {
			note = "nothing stands before what it keeps"
		}
	case lineLabel:
		target, ok := r.Find(l.Fields.String("targetId"))
		if !ok {
			note = "labels an entry that is not in the file"
			break
		}
		text, _ := jsonx.Text(l.Fields.Get("label"))
		r.marks = append(r.marks, history.Mark{MessageKey: r.KeyOf(target), Kind: "label", Text: text})
	case lineContextEdit:
		if target, ok := r.Find(l.Fields.String("targetId")); ok && target < i {
			l.editOf(r.KeyOf(target))
		} else {
			note = "edits an entry that is not in the file before it"
		}
	case lineRecord:
		r.recorded(l)
	}
	hash, says := "", ""
	if r.Version == 1 || len(l.Calls) > 0 {
		says = fingerprint(l.Fields, r.Version)
	}
	if r.Version == 1 {
		hash = says
	}
	for k := range l.Calls {
		c := &l.Calls[k]
		c.ExternalID, c.MessageKey = "pi:"+says, n.Key
		c.Source, c.Directory, c.CreatedAt = r.In.Source(), r.talk.New.Directory, l.Message.CreatedAt
		r.NameModel(i, &c.Call)
	}
	l.Message.Extra = l.Extra(note, hash)
	made.Messages, made.Calls = history.Alone(l.Message).Messages, l.Calls
	return made
}

// recorded adds the usage of a record of version 4, unless the entry that it was for has it itself.
func (r *reader) recorded(l *Line) {
	if l.Fields.String("type") != lineUsage {
		return
	}
	cause := l.Fields.String("cause")
	purpose := session.PurposeOther
	switch cause {
	case "tool":
		purpose = session.PurposeTool
	case "hook", "adjustment":
	default:
		id := l.Fields.String("entryId")
		if _, has := r.Find(id); has || id == "" {
			return
		}
		switch cause {
		case "assistant", "deferred_fetch":
			purpose = session.PurposeChat
		case "compaction":
			purpose = session.PurposeSummary
		case "branch_summary":
			purpose = session.PurposeBranchSummary
		}
	}
	l.bill(l.Fields.Get("usage"), purpose, "", "")
}

// finish sets what the session is now: its head, its title and what came to be known.
func (r *reader) finish() {
	fresh := r.talk.Fresh() > 0
	if r.slot != nil && r.Title != "" {
		r.talk.Title = r.Title
	}
	// A copy of a fork that has nothing of its own says nothing of where the fork is now.
	if !fresh && r.talk.Here != nil && !r.In.Continues() {
		return
	}
	r.talk.Head = r.KeyOf(r.leaf())
	if r.Named || !r.In.Continues() {
		if r.Title != "" {
			r.talk.Title = r.Title
		} else if r.Named && r.talk.Here != nil {
			r.talk.Title = r.talk.New.Title
		}
	}
	if here := r.talk.Here; here != nil && here.Model == "" && r.talk.New.Model != "" { // all that it has are copies
		f := r.talk.Change()
		f.Provider, f.Model = r.talk.New.Provider, r.talk.New.Model
	}
}

// describe sets what the session is: from the header and the entries.
func (r *reader) describe() {
	created := r.firstTime()
	r.last = created
	s := &r.talk.New
	s.CreatedAt = &created
	about := r.Header.Without("type", "id", "cwd")
	if r.origins != nil {
		about = about.With(foreignImport, r.origins)
	}
	s.Metadata = jsonx.Object{{Key: string(r.In.Source()), Value: about.Value()}}.Column()
	s.Title, s.TitleSource = history.Titled(r.Title, session.TitleOf(r.FirstUser))
	if s.Provider, s.Model = r.Model(r.leaf(), nil); s.Model == "" {
		s.Provider, s.Model = r.Header.String("provider"), r.Header.String("modelId")
	}
}

// firstTime returns the time of the first entry: its day is that of the session.
func (r *reader) firstTime() session.Time {
	created, ok := r.made()
	if !ok {
		created = session.At(r.In.Found.ModifiedAt)
	}
	for i := range r.Len() {
		if r.Nodes[i].Kind.aside() {
			continue
		}
		o := r.Reread(i)
		l := Line{Inner: o.Inner("message"), Rest: history.Taker{Object: o}}
		if first, ok := l.time(r.Version); ok {
			created = first
		}
		break
	}
	return created
}

// made returns the time of the header, in which a fork was made.
func (r *reader) made() (session.Time, bool) {
	if at, ok := history.ParseTime(r.Header.String("timestamp")); ok {
		return at, true
	}
	return history.UnixMilli(r.Header.Get("createdAt"))
}
