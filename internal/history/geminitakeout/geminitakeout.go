// Package geminitakeout reads what Google Takeout has of Gemini's apps: their activity, and the conversations of Google
// Workspace.
//
// The activity is a list of prompts with answers, in JSON or HTML. Most prompts name their conversation; those that do
// not are put together by their time. Every export repeats everything, and lacks what was deleted: messages of several
// are a union. There is no model in it and no usage.
package geminitakeout

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// New makes the source.
func New(now func() time.Time) *history.Program {
	p := history.ExportOf(session.SourceGeminiTakeout, fileName.MatchString, read, now)
	lists := p.Search
	p.Search = func(f *history.Finder, folder string) {
		lists(f, folder)
		f.Found = slices.DeleteFunc(f.Found, func(found history.Found) bool { // it is read with its JSON
			return filepath.Ext(found.Path) == pageEnd && twinOf(found.Path) != ""
		})
	}
	return p
}

// Endings of the two forms of an activity.
const (
	listEnd = ".json"
	pageEnd = ".html"
)

// twinOf returns the other form of an activity that lies beside it, "" if there is none.
func twinOf(path string) string {
	for end, other := range map[string]string{listEnd: pageEnd, pageEnd: listEnd} {
		if stem, ok := strings.CutSuffix(path, end); ok && fileName.MatchString(filepath.Base(path)) {
			if info, err := os.Stat(stem + other); err == nil && info.Mode().IsRegular() {
				return stem + other
			}
		}
	}
	return ""
}

// fileName matches files that may hold activity, whose names are in the language of the account, and conversations of
// Workspace. What they hold decides.
var fileName = pattern.New(`(?i)^(.*(activit|actividad|atividade|aktivit|attivit|aktywno|активн|アクティビティ|활동|活動|活动).*\.(json|html)|` +
	`conversation_\d+\.txt|gemini_(gems|scheduled_actions)_data\.html)$`)

const (
	gemsStart = "gemini_"
	reads     = 1 // the version of this reader
)

// Reasons to skip that only these exports have.
const (
	skipProduct = "activity of another product"
	skipAction  = "activity that is no prompt"
	skipBroken  = "activity that was not understood"
)

// takeout is an export that is read.
type takeout struct {
	in      *history.Intake
	archive *history.Archive
	prompts []prompt
	seen    map[string]int // places of prompts, by name
	found   int            // activities of Gemini, and conversations
	hasGems bool
	another bool // it has activities of other products
}

// read reads an export.
func read(in *history.Intake) {
	t := &takeout{in: in, archive: in.OpenArchive(), seen: map[string]int{}}
	if t.archive == nil {
		return
	}
	visit := func(name string, text io.Reader) {
		if base := name[strings.LastIndexByte(name, '/')+1:]; strings.HasPrefix(base, gemsStart) {
			t.hasGems = true
			return
		}
		if err := t.file(text); err != nil && t.found > 0 {
			in.Problem(0, history.Plain(name)+": "+history.Reason(err))
		}
	}
	twin := twinOf(in.Found.Path)
	if filepath.Ext(twin) == listEnd {
		visitFile(twin, visit) // its times are exact
	}
	t.archive.EachFile(fileName.MatchString, visit)
	if filepath.Ext(twin) == pageEnd {
		visitFile(twin, visit) // it may name conversations
	}
	switch {
	case in.Err() != nil || t.found > 0:
		t.store()
	case t.hasGems:
		in.Fail(session.Errorf(session.Invalid, "gems and scheduled actions alone: choosing \"Gemini\" in Takeout gives no "+
			"conversations; choose \"My Activity\", and in it \"Gemini Apps\""))
	case t.another:
		in.Fail(session.Errorf(session.Invalid,
			"activity of other products alone: choose \"Gemini Apps\" in \"My Activity\""))
	default:
		in.Fail(session.Errorf(session.Invalid,
			"no activity of Gemini: no record has `header`, `title` and `time`, or `conversation_turns`"))
	}
}

// visitFile visits a file beside the one that is read, if it can be read.
func visitFile(path string, visit func(name string, text io.Reader)) {
	file, _, err := history.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	visit(filepath.Base(path), file)
}

// file reads a file: HTML, or JSON whatever its name ends in.
func (t *takeout) file(text io.Reader) error {
	buffered := bufio.NewReader(text)
	head, _ := buffered.Peek(512) // as much as there is
	if bytes.HasPrefix(bytes.TrimSpace(history.Unmarked(head)), []byte("<")) {
		return eachCard(buffered, t.card)
	}
	return history.EachObject(buffered, func(raw jsontext.Value) {
		o, ok := jsonx.ReadFields(raw)
		deep := jsonx.DeeperThan(raw, history.MaxDepth)
		switch {
		case ok && !deep && jsonx.KindOf(o.Get("conversation_turns")) == '[':
			t.found++
			t.conversation(o, raw)
		case !ok || deep || !o.Has("header") && !o.Has("products") || !o.Has("title") || !o.Has("time"):
			t.in.Skip("no activity", 1)
		default:
			t.activity(o)
		}
	})
}

// activity reads a record of activity.
func (t *takeout) activity(o jsonx.Object) {
	if !isGemini(o.String("header") + " " + string(o.Get("products"))) {
		t.another = true
		t.in.Skip(skipProduct, 1)
		return
	}
	t.found++
	p := prompt{at: history.TimeOf(o.Get("time")), title: o.String("title")}
	for _, item := range jsonx.ReadObjects(o.Get("safeHtmlItem")) {
		p.answer += item.String("html")
	}
	p.answer += o.Inner("safeHtmlItem").String("htmlValue")
	for _, detail := range jsonx.ReadObjects(o.Get("details")) {
		p.addConversation(detail.String("url"))
	}
	files, _ := jsonx.ReadArray(o.Get("attachedFiles"))
	for _, raw := range append(files, o.Get("imageFile")) {
		if name, ok := jsonx.Text(raw); ok {
			p.addFile(name)
		}
	}
	for _, part := range jsonx.ReadObjects(o.Get("subtitles")) {
		if strings.Contains(part.String("url"), "/gems/") {
			p.gem = history.Plain(part.String("name"))
		}
	}
	t.add(&p)
}

func isGemini(names string) bool {
	return strings.Contains(names, "Gemini") || strings.Contains(names, "Bard")
}
