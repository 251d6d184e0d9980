package claudecode

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// stateRow takes a row that is no part of the chain: titles, settings, snapshots, what was
// typed while a turn ran. They hang where they came up, and are passed by what follows.
func (r *reader) stateRow(id string, st *stream, w *row) error {
	if w.kind == "queue-operation" {
		if done, err := r.queued(id, st, w); done || err != nil {
			return err
		}
	}
	if err := r.titled(id, st, w); err != nil {
		return err
	}
	if !isState(w.kind) {
		return r.keep(id, st, w, session.KindUnknown)
	}
	if r.state.States == nil {
		r.state.States = map[string]string{}
	}
	if w.kind != "queue-operation" && w.kind != "summary" {
		print := r.cuts.Fingerprint(w.Object, "timestamp")
		if r.state.States[w.kind] == print {
			r.records.Skip(skipRepeated, 1)
			return nil
		}
		r.state.States[w.kind] = print
	}
	return r.keep(id, st, w, session.KindCustom)
}

// keep puts a row without a name behind the tip. It is known by what it says and by how often
// that was said before in the file.
func (r *reader) keep(id string, st *stream, w *row, kind session.Kind) error {
	at := st.Tip
	w.uuid = r.nameOf(w.Object.JSON())
	m := aside(kind, "")
	if kind == session.KindCustom && w.kind == "pr-link" {
		m = aside(session.KindMarker, "pull request "+plain(w.String("prUrl")))
	}
	r.pass(st, at, w.uuid)
	r.put(id, st, w, history.Message{Message: m}, at, "", kind == session.KindUnknown)
	return nil
}

// nameOf names what has no name of its own.
func (r *reader) nameOf(line []byte) string {
	sum := sha256.New()
	r.cuts.Write(sum, line)
	key := "row:" + hex.EncodeToString(sum.Sum(nil)[:10])
	if r.state.Repeats == nil {
		r.state.Repeats = map[string]int{}
	}
	r.state.Repeats[key]++
	if n := r.state.Repeats[key]; n > 1 {
		return key + "#" + strconv.Itoa(n)
	}
	return key
}

// titled takes a title. One that the person gave wins over one that the model made; a summary
// counts where the row that it names is in this file.
func (r *reader) titled(id string, st *stream, w *row) error {
	clean := func(key string) string { return plain(strings.TrimSpace(w.String(key))) }
	switch w.kind {
	case "custom-title":
		r.state.Custom = clean("customTitle")
	case "ai-title":
		r.state.Given = clean("aiTitle")
	case "summary":
		_, here, err := r.resolve(id, st, plain(w.String("leafUuid")))
		if err != nil {
			return err
		}
		if here {
			r.state.Summary = clean("summary")
		}
	}
	return nil
}

// queued follows what a person typed while a turn ran. What was delivered inside the turn has
// no row of its own in older versions: its text becomes a message.
func (r *reader) queued(id string, st *stream, w *row) (done bool, err error) {
	text := w.String("content")
	switch w.String("operation") {
	case "enqueue":
		if len(r.state.Queue) < 1000 {
			r.state.Queue = append(r.state.Queue, plain(text))
		}
		return false, nil
	case "dequeue", "popAll":
		if text != "" {
			r.unqueue(plain(text))
		} else if len(r.state.Queue) > 0 {
			r.state.Queue = r.state.Queue[1:]
		}
		return false, nil
	case "remove":
	default:
		return false, nil
	}
	if text == "" && len(r.state.Queue) > 0 {
		text = r.state.Queue[0]
		r.state.Queue = r.state.Queue[1:]
	} else {
		r.unqueue(plain(text))
	}
	text = plain(text)
	if strings.TrimSpace(text) == "" || r.said[r.digestOf(text)] || speakerOf(text) != saysPerson {
		return false, nil
	}
	at := st.Tip
	m := session.Message{Kind: session.KindMessage, Role: session.User, Origin: session.Person, InContext: true, Display: true, Parts: []session.Part{session.TextPart(text)}}
	w.uuid = r.nameOf(w.Object.JSON())
	r.pass(st, at, w.uuid)
	r.put(id, st, w, history.Message{Message: m}, at, "typed while the turn ran", false)
	return true, nil
}

func (r *reader) unqueue(text string) {
	for i, queued := range r.state.Queue {
		if queued == text {
			r.state.Queue = append(r.state.Queue[:i:i], r.state.Queue[i+1:]...)
			return
		}
	}
}

// revision keeps a row whose name another one has.
func (r *reader) revision(w *row) error {
	st := r.state.stream("")
	if err := r.flush(); err != nil {
		return err
	}
	at := st.Tip
	w.uuid = r.nameOf(w.Object.JSON())
	r.pass(st, at, w.uuid)
	r.put("", st, w, history.Message{Message: aside(session.KindUnknown, "")}, at, "another row has its name", true)
	return nil
}

// verbatim keeps a line that is no row.
func (r *reader) verbatim(line []byte, why string) error {
	if err := r.flush(); err != nil {
		return err
	}
	st := r.state.stream("")
	r.problem(why + "; kept raw")
	at := st.Tip
	p := r.pending("", st)
	m := history.Message{Message: history.Verbatim(line, why), ParentKey: at.Key, ParentSession: at.Session}
	m.ExternalID, m.CreatedAt, m.Dialect = r.nameOf(line), r.state.LastAt, string(session.SourceClaudeCode)
	p.batch.Messages = append(p.batch.Messages, m)
	p.keys[m.ExternalID] = true
	r.waiting++
	r.bytes += history.Size(&m)
	p.batch.Records.KeepRaw(1)
	r.pass(st, at, m.ExternalID)
	st.Tip = place{Key: m.ExternalID}
	return nil
}

// agentProgress takes what a sub-agent said from the progress of the call that runs it.
func (r *reader) agentProgress(w *row, data history.Object) error {
	agent := plain(data.String("agentId"))
	inner, ok := history.Fields(data.Get("message"))
	if _, looked := r.agents[agent]; !looked {
		r.agents[agent] = hasAgentFile(r.path, agent)
	}
	switch {
	case !ok || agent == "" || inner.String("uuid") == "":
		r.records.Skip(skipProgress, 1)
		return nil
	case r.agents[agent]:
		r.records.Skip(skipSubagent, 1)
		return nil
	}
	id := "agent-" + agent
	st := r.state.stream(id)
	told := rowOf(history.TalkOf(inner), w.size)
	told.number = w.number
	if !told.timed {
		told.at = w.at
	}
	told.Object = told.Object.With("from", []byte(`"progress"`)).With("version", rawOf(w.String("version")))
	told.parent = st.Tip.Key // in the order in which they came
	if len(st.reply.rows) > 0 && told.reply() == st.reply.id {
		told.parent = st.reply.rows[len(st.reply.rows)-1].uuid
	} else if err := r.close(id, st); err != nil {
		return err
	} else {
		told.parent = st.Tip.Key
	}
	if told.kind != typeUser && told.kind != typeAssistant {
		r.records.Skip(skipProgress, 1)
		return nil
	}
	return r.handle(id, st, told)
}
