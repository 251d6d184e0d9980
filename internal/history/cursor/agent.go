package cursor

import (
	"encoding/hex"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// Fields of the root of an agent's state, which the maker's SDK numbers so.
const (
	rootMessages = 1
	rootGauge    = 5
	rootTurns    = 8
	rootArchive  = 11 // of older versions: one
	rootArchives = 13
	rootAgents   = 16 // states of sub-agents, by id
)

// blobs returns the blob of a hexadecimal id; nil: it is not there.
type blobs func(id string) []byte

// state is the state of an agent: the messages that the model sees now, in order, with those in front of them that
// summaries replaced. Other blobs of the store are older states and abandoned branches.
type state struct {
	root  history.Proto
	blob  blobs
	model string // where no message says it
	lost  int    // blobs that are not there

	turns map[string]turn // by the id of a request
	keys  history.Repeats // of blobs: equal messages share one
	items []history.Item
	tip   string
	turn  turn
}

// turn says when the pieces of a turn were said, and by which model.
type turn struct {
	begun session.Time
	model string
	steps map[string]session.Time // by what was said
}

func parse(text []byte) history.Proto {
	all, _ := history.ParseProto(text)
	return all
}

// newState parses a root. ok is false for bytes that are none.
func newState(root []byte, blob blobs, model string) (s *state, ok bool) {
	all, ok := history.ParseProto(root)
	if !ok || len(all) == 0 {
		return nil, false
	}
	s = &state{root: all, blob: blob, model: model, turns: map[string]turn{}, keys: history.Repeats{}}
	for _, id := range s.root.All(rootTurns) {
		s.readTurn(hex.EncodeToString(id))
	}
	return s, true
}

// readTurn reads the times of a turn.
func (s *state) readTurn(id string) {
	agent := parse(parse(s.blob(id)).Bytes(1))
	request := agent.Text(3)
	if request == "" {
		return
	}
	user := parse(s.blob(hex.EncodeToString(agent.Bytes(1))))
	t := turn{begun: milli(user.Number(25)), model: modelOf(agent.Text(7)), steps: map[string]session.Time{}}
	for _, id := range agent.All(2) {
		said := parse(parse(s.blob(hex.EncodeToString(id))).Bytes(1))
		if text := said.Text(1); text != "" {
			t.steps[text] = milli(said.Number(2))
		}
	}
	s.turns[request] = t
}

func milli(ms uint64) session.Time {
	at, _ := history.UnixMilli([]byte(strconv.FormatUint(ms, 10)))
	return at
}

// read makes the items of all messages: the prompts of the program that the list begins with, then what summaries
// replaced, then the rest.
func (s *state) read() []history.Item {
	ids := s.root.All(rootMessages)
	archives := slices.Concat(s.root.All(rootArchives), s.root.All(rootArchive))
	first := slices.IndexFunc(ids, s.isSummary)
	if len(archives) == 0 || first < 0 {
		first = 0
	}
	for _, id := range ids[:first] {
		s.add(id)
	}
	for _, id := range archives {
		for _, id := range parse(s.blob(hex.EncodeToString(id))).All(1) {
			s.add(id)
		}
	}
	for _, id := range ids[first:] {
		s.add(id)
	}
	return s.items
}

func (s *state) isSummary(id []byte) bool {
	o, _ := jsonx.ReadObject(s.blob(hex.EncodeToString(id)))
	return string(optionsOf(o).Get("isSummary")) == "true"
}

func optionsOf(o jsonx.Object) jsonx.Object { return o.Inner("providerOptions").Inner("cursor") }

// add adds the message of a blob.
func (s *state) add(id []byte) {
	name := hex.EncodeToString(id)
	raw := s.blob(name)
	if raw == nil {
		s.lost++
		return
	}
	key := s.keys.Key(name[:min(len(name), 32)])
	item := history.Item{Key: key}
	o, ok := jsonx.ReadObject(raw)
	switch role := o.String("role"); {
	case !ok:
		item = history.RawItem(key, raw, "a message of Cursor's agent that is no JSON object", session.Time{})
	case role == "system":
		item.Message = history.Say(session.System, session.Time{}, history.Blocks(o.Get("content"))...)
	case string(optionsOf(o).Get("isSummary")) == "true":
		text := history.TextOf(o.Get("content"))
		item.Message = history.Note(session.Time{}, text)
		if s.tip != "" {
			item.Summary = &history.Compaction{Key: key, ThroughKey: s.tip, Record: history.Place{Key: key}}
			item.Summary.Summary = text
		}
	case role == "user":
		s.turn = s.turns[optionsOf(o).String("requestId")]
		m, context := promptOf(s.turn.begun, history.Blocks(o.Get("content")))
		item.Message = m
		if context != "" {
			item.Extra = jsonx.Object{jsonx.MemberOf("context", history.Plain(context))}
		}
	case role == "assistant":
		m := history.Say(session.Assistant, session.Time{}, history.Blocks(o.Get("content"))...)
		m.CreatedAt, m.Model = s.turn.steps[m.Text()], modelOf(optionsOf(o).String("modelName"))
		if m.Model == "" {
			m.Model = s.turn.model
		}
		if m.Model == "" {
			m.Model = s.model
		}
		item.Message = m
	case role == "tool":
		item.Message = history.Say(session.Tool, session.Time{}, history.Blocks(o.Get("content"))...)
	default:
		item = history.RawItem(key, raw, "a message of an unknown role", session.Time{})
	}
	s.tip = key
	s.items = append(s.items, item)
}

// gauge returns how large the context is, and how large it may be: no usage.
func (s *state) gauge() (used, most uint64) {
	g := parse(s.root.Bytes(rootGauge))
	return g.Number(1), g.Number(2)
}

// readAgent reads the store of one session of the CLI agent.
func readAgent(in *history.Intake, db *history.SQLite) {
	var text string
	db.Get(&text, `SELECT CAST(value AS TEXT) FROM meta WHERE key = '0'`)
	if err := db.TakeErr(); err != nil {
		in.Fail(session.Errorf(session.Invalid, "no store of Cursor's agent: it has no row `0` in its table meta"))
		return
	}
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	meta, ok := jsonx.ReadObject(raw)
	if err != nil || !ok || meta.String("agentId") == "" {
		in.Fail(session.Errorf(session.Invalid, "no store of Cursor's agent: its meta names no agentId"))
		return
	}
	blob := func(id string) (data []byte) {
		var found [][]byte
		db.Select(&found, `SELECT CAST(data AS BLOB) FROM blobs WHERE id = ?`, id)
		if len(found) > 0 {
			return found[0]
		}
		return nil
	}
	w := aboutAgent(in.Found.Path, meta)
	s, ok := newState(blob(meta.String("latestRootBlobId")), blob, modelOf(meta.String("lastUsedModel")))
	if !ok {
		in.Skip(skipNoStore, 1)
		return
	}
	addState(in, w, s)
	in.Fail(db.TakeErr())
}

// aboutAgent says what a session of the CLI agent is, from its store and the file beside that.
func aboutAgent(path string, meta jsonx.Object) *history.Whole {
	w := &history.Whole{Records: 1}
	w.New.SourceID, w.New.CreatedAt = meta.String("agentId"), history.KnownTime(meta.Get("createdAt"))
	if w.Title = meta.String("name"); w.Title == "New Agent" {
		w.Title = ""
	}
	if agent := meta.Inner("subagentInfo"); agent != nil {
		w.New.Kind, w.ParentID, w.ParentCall = "subagent", agent.String("parentAgentId"), agent.String("toolCallId")
	}
	if text, err := history.ReadFile(filepath.Join(filepath.Dir(path), "meta.json")); err == nil {
		beside, _ := jsonx.ReadObject(text)
		w.New.Directory = beside.String("cwd")
		if title := beside.String("title"); title != "" {
			w.Title = title
		}
		if at := history.TimeOf(beside.Get("updatedAtMs")); !at.IsZero() {
			w.Written = at.Time
		}
	}
	if mode := meta.String("mode"); mode != "" {
		w.Notes = append(w.Notes, jsonx.MemberOf("mode", history.Plain(mode)))
	}
	w.Notes = append(w.Notes, jsonx.MemberOf("store", "agent"), jsonx.MemberOf("usage", "not recorded"))
	return w
}

// into puts the messages into a session, and what the program says of their size.
func (s *state) into(w *history.Whole) {
	w.Items = s.read()
	if used, most := s.gauge(); used > 0 {
		w.Notes = append(w.Notes, jsonx.MemberOf("context_tokens", used), jsonx.MemberOf("context_limit", most))
	}
}

func (s *state) lostText() string {
	return strconv.Itoa(s.lost) + " messages are not in the store any more; the rest is imported"
}

// addState stores the session of an agent's state, and those of the sub-agents in it that have no store of their own.
func addState(in *history.Intake, w *history.Whole, s *state) {
	if s.into(w); s.lost > 0 {
		in.Problem(0, s.lostText())
	}
	talk := in.AddWhole(w)
	if talk == nil {
		return
	}
	for _, entry := range s.root.All(rootAgents) {
		pair := parse(entry)
		id, value := pair.Text(1), parse(pair.Bytes(2))
		inner, ok := newState(value.Bytes(1), s.blob, modelOf(value.Text(5)))
		if !ok || id == "" || in.Session(history.Plain(id)) != nil {
			continue
		}
		child := &history.Whole{Parent: talk, Written: w.Written}
		child.New.SourceID, child.New.Kind = id, "subagent"
		if at := milli(value.Number(2)); !at.IsZero() {
			child.New.CreatedAt = &at
		}
		child.Items = inner.read()
		in.AddWhole(child)
	}
}
