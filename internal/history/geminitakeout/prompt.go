package geminitakeout

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"path"
	"slices"
	"strings"
	"time"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// prompt is an activity that is a prompt, with its answer.
type prompt struct {
	at            session.Time
	zone          string // that was not known: the time is read as UTC
	title         string // behind a verb
	text          string
	answer        string   // HTML; "": there is none
	conversations []string // several after a branch
	files         []string
	gem           string
	whole         bool // title, and answer if there is one, could not be told apart
	isOther       bool // its verb is not known: the text is the whole title
}

var conversationURL = pattern.New(`^https://gemini\.google\.com/(?:u/\d+/)?app/([0-9a-f]{8,})`)

func (p *prompt) addConversation(url string) {
	if m := conversationURL.FindStringSubmatch(url); m != nil && !slices.Contains(p.conversations, m[1]) {
		p.conversations = append(p.conversations, m[1])
	}
}

func (p *prompt) addFile(name string) {
	if name = history.Plain(name); name != "" && !slices.Contains(p.files, name) {
		p.files = append(p.files, name)
	}
}

// Verbs in front of a prompt, in some languages. A longer one stands before its beginning.
var asks = []string{
	"Prompted with:", "Prompted", "Asked Gemini:", "Asked Bard:", "Asked", "Said", "Branched", "Answered", "Perguntou:",
	"Fez uma pergunta:", "Preguntó:", "분기된",
}

// Verbs of other actions.
var actions = []string{
	"Created", "Used", "Gave", "Added", "Selected", "Shared", "Deleted", "Viewed", "Edited", "Cleared", "Canvas",
}

// cutVerb cuts a verb off, with the space behind it.
func cutVerb(title string, verbs []string) (rest string, ok bool) {
	for _, verb := range verbs {
		after, is := strings.CutPrefix(title, verb)
		if rest = strings.TrimLeft(after, " \u00a0\u202f"); is && (len(rest) < len(after) || rest == "") {
			return rest, true
		}
	}
	return title, false
}

var attachedTail = pattern.New(`\s*(?:Attached )?\d+ (?:files?|attachments?)\.\s*$`)

// add adds an activity, unless it is none of a prompt or stood before.
func (t *takeout) add(p *prompt) {
	title := strings.TrimSpace(p.title)
	text, isPrompt := cutVerb(title, asks)
	_, isAction := cutVerb(title, actions)
	switch p.isOther = !isPrompt; {
	case isAction, !isPrompt && len(p.conversations) == 0 && p.answer == "":
		t.in.Skip(skipAction, 1)
		return
	case p.at.IsZero():
		t.in.Problem(0, fmt.Sprintf("an activity without a time that could be read: %.60q", history.Plain(title)))
		t.in.Skip(skipBroken, 1)
		return
	}
	if len(p.files) > 0 {
		text = attachedTail.ReplaceAllString(text, "")
	}
	if p.text = text; strings.TrimSpace(text) == "" && p.answer == "" && len(p.files) == 0 {
		t.in.Skip(skipAction, 1)
		return
	}
	key := p.key()
	if at, again := t.seen[key]; again {
		t.in.Skip(history.SkipDuplicate, 1)
		t.prompts[at].merge(p)
		return
	}
	t.seen[key] = len(t.prompts)
	t.prompts = append(t.prompts, *p)
}

// merge takes what another copy of a prompt says more: the HTML beside a JSON names the conversations.
func (p *prompt) merge(other *prompt) {
	p.answer = cmp.Or(p.answer, other.answer)
	for _, id := range other.conversations {
		if !slices.Contains(p.conversations, id) {
			p.conversations = append(p.conversations, id)
		}
	}
	for _, name := range other.files {
		p.addFile(name)
	}
}

// key names a prompt by its second and its words: HTML has no milliseconds, and other spaces.
func (p *prompt) key() string {
	words := strings.Join(strings.Fields(strings.ReplaceAll(p.text, "\u00a0", " ")), " ")
	sum := sha256.Sum256([]byte(words))
	return fmt.Sprintf("%d/%s", p.at.Unix(), hex.EncodeToString(sum[:8]))
}

// together is how close prompts of one conversation follow one another where nothing names it.
const together = 30 * time.Minute

// rebuiltStart begins the id of a conversation that was put together by time.
const rebuiltStart = "t:"

// store stores the conversations.
func (t *takeout) store() {
	slices.SortStableFunc(t.prompts, func(a, b prompt) int { return a.at.Compare(b.at.Time) })
	talks := map[string][]*prompt{}
	var order []string
	put := func(id string, p *prompt) {
		if talks[id] == nil {
			order = append(order, id)
		}
		talks[id] = append(talks[id], p)
	}
	rebuilt, last := "", session.Time{}
	for i := range t.prompts {
		p := &t.prompts[i]
		for _, id := range p.conversations {
			put(id, p)
		}
		if len(p.conversations) > 0 {
			continue
		}
		id := rebuiltStart + p.at.UTC().Format("2006-01-02T15:04:05Z")
		if p.at.Sub(last.Time) >= together || t.in.Session(id) != nil { // one that was the first stays it
			rebuilt = id
		}
		last = p.at
		put(rebuilt, p)
	}
	counted := map[*prompt]bool{}
	for _, id := range order {
		t.talk(id, talks[id], counted)
	}
}

// talk stores a conversation: what is stored of it, and what is new.
func (t *takeout) talk(id string, prompts []*prompt, counted map[*prompt]bool) {
	sum := sha256.New()
	for _, p := range prompts {
		fmt.Fprintf(sum, "%s %q %q\n", p.key(), p.answer, p.files)
	}
	part := t.in.Part(id, fmt.Sprint(reads, hex.EncodeToString(sum.Sum(nil)[:12])))
	if part == nil {
		return
	}
	w := &history.Whole{}
	w.New.SourceID, w.New.Provider = id, "google"
	w.New.CreatedAt = &prompts[0].at
	w.Notes = jsonx.Object{jsonx.MemberOf("usage", "not recorded"), jsonx.MemberOf("model", "not recorded")}
	if strings.HasPrefix(id, rebuiltStart) {
		w.Notes = append(w.Notes, jsonx.MemberOf("rebuilt", "put together by time: the activity names no conversation"))
	}
	here := part.Session(id)
	if here != nil { // what is new follows what is stored, which stays as it is
		w.New.CreatedAt = &here.CreatedAt
		if here.Head != nil {
			if head := part.Load(*here.Head); head != nil {
				w.After = head.ExternalID
			}
		}
	}
	for _, p := range prompts {
		isFirst := !counted[p]
		counted[p] = true
		for i, item := range t.items(p) {
			item.NoRecords = !isFirst || i > 0
			if here == nil || part.Message(here.ID, item.Key) == nil {
				w.Items = append(w.Items, item)
			} else if !item.NoRecords {
				part.Skip(history.SkipKnown, 1)
			}
		}
	}
	part.AddWhole(w)
	t.in.FinishPart(part)
}

// items makes the messages of a prompt and its answer, which have one time.
func (t *takeout) items(p *prompt) (items []history.Item) {
	var extra jsonx.Object
	note := func(key string, value any) { extra = append(extra, jsonx.MemberOf(key, value)) }
	parts := []session.Part{}
	if strings.TrimSpace(p.text) != "" {
		parts = append(parts, session.TextPart(p.text))
	}
	for _, name := range p.files {
		parts = append(parts, t.filePart(name))
	}
	if p.isOther {
		note("title", "whole: the verb before the prompt is not known")
	}
	if p.whole {
		note("title", "prompt and answer could not be told apart")
	}
	if p.zone != "" {
		note("zone", history.Plain(p.zone)+" is not known: the time is read as UTC")
	}
	if p.gem != "" {
		note("gem", p.gem)
	}
	key := p.key()
	if len(parts) > 0 {
		said := history.Say(session.User, p.at, parts...)
		items = append(items, history.Item{Key: key + "/user", Message: said, Extra: extra})
	}
	if p.answer != "" {
		answer := history.Item{Key: key + "/model", Extra: jsonx.Object{jsonx.MemberOf("html", history.Plain(p.answer))}}
		answer.Message = history.Say(session.Assistant, p.at, session.TextPart(markdownOf(p.answer)))
		answer.Message.Provider = "google"
		items = append(items, answer)
	}
	return items
}

// filePart returns an attached file: its bytes where the export has them, else its name.
func (t *takeout) filePart(name string) session.Part {
	data := t.archive.Asset(name)
	if end := path.Ext(name); data == nil && len(name)-len(end) > 8 { // names in archives lack the ending, or have another
		data = t.archive.Asset(strings.TrimSuffix(name, end))
	}
	if len(data) > 0 {
		kind := cmp.Or(mime.TypeByExtension(path.Ext(name)), "application/octet-stream")
		kind, _, _ = strings.Cut(kind, ";")
		p := history.BlobPart(kind, data)
		p.Extra = jsonx.NewObject("attachment", name).Column()
		return p
	}
	p := session.Part{Kind: session.PartData, Text: "attached, and not in the export: " + name}
	p.Extra = jsonx.NewObject("attachment", name).Column()
	return p
}
