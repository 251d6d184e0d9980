package vscodecopilot

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// read reads a chat or a transcript.
func read(in *history.Intake) {
	if isTranscript(in.Found.Path) {
		readTranscript(in)
		return
	}
	state, last := replay(in)
	if in.Err() != nil {
		return
	}
	o, ok := jsonx.ReadObject(state)
	if requests := o.Get("requests"); !ok || jsonx.KindOf(requests) != '[' || o.String("sessionId") == "" {
		in.Fail(session.Errorf(session.Invalid, "no chat of VS Code: it has no sessionId and list of requests"))
		return
	}
	if last > 0 {
		in.Problem(last, "a line that is no operation of a chat; the lines before it are imported")
	}
	c := newChat(in, o)
	c.add()
}

// replay applies the lines of a log, or reads the one object of a file. last is the line at which it had to end
// early, 0 if it did not. The last line of a file that its program is writing may be torn.
func replay(in *history.Intake) (state jsontext.Value, last int) {
	var n node
	begun := false
	for l := range in.Lines() {
		line := history.Unmarked(l.Bytes)
		switch {
		case l.Bytes == nil:
			in.Fail(session.Errorf(session.TooLarge, "line %d is over %d MiB", l.Number, history.MaxLine>>20))
			return nil, 0
		case len(strings.TrimSpace(string(line[:min(len(line), 64)]))) == 0 && len(line) < 64:
			continue
		}
		var op operation
		err := jsonx.Unmarshal(line, &op)
		isOperation := err == nil && (op.Value != nil || begun)
		switch {
		case !begun && (!isOperation || op.Kind != opWhole):
			return document(in), 0
		case err != nil && !l.Ended:
			if !in.Quiet() {
				in.LookAgain()
			}
			return n.value(), 0
		case err != nil || n.apply(&op) != nil:
			return n.value(), l.Number
		}
		begun = true
	}
	if !begun {
		return nil, 0
	}
	return n.value(), 0
}

// document reads a file of one object.
func document(in *history.Intake) jsontext.Value {
	if in.Found.Size > history.MaxLine {
		in.Fail(session.Errorf(session.TooLarge, "the file is over %d MiB", history.MaxLine>>20))
		return nil
	}
	return jsontext.Value(history.Unmarked(in.Bytes(0, in.Found.Size)))
}

// chat is one chat on its way into the store.
type chat struct {
	in       *history.Intake
	whole    history.Whole
	requests []jsonx.Object
	names    []string         // that the extension gave to its session
	children []*history.Whole // of sub-agents
	starts   []string         // the items that started them
	spans    []span
}

func newChat(in *history.Intake, o jsonx.Object) *chat {
	c := &chat{in: in, requests: jsonx.ReadObjects(o.Get("requests"))}
	w := &c.whole
	w.Records = 1
	w.New.SourceID, w.New.Directory = o.String("sessionId"), folderOf(in.Found.Path, o)
	w.New.CreatedAt = history.KnownTime(o.Get("creationDate"))
	w.Title = cmp.Or(o.String("customTitle"), o.String("computedTitle"))
	return c
}

// add stores the chat, unless a stored one says as much: VS Code copies the files of chats when a window gets
// another folder.
func (c *chat) add() {
	for _, r := range c.requests {
		if name := r.Inner("result").Inner("metadata").String("sessionId"); name != "" && !slices.Contains(c.names, name) {
			c.names = append(c.names, name)
		}
	}
	c.readSpans()
	for i := range c.requests {
		c.request(i)
	}
	sum := sha256.Sum256([]byte(c.in.Found.Path))
	place, items := hex.EncodeToString(sum[:8]), len(c.whole.Items)
	if here := c.in.Session(history.Plain(c.whole.New.SourceID)); here != nil {
		notes := history.Notes(here, string(session.SourceVSCodeCopilot))
		if before := history.Count(notes.Get("items")); notes.String("file") != place && before >= int64(items) {
			c.in.Skip(skipCopy, len(c.requests)+1)
			return
		}
	}
	c.whole.Notes = jsonx.Object{
		jsonx.MemberOf("file", place), jsonx.MemberOf("items", items), jsonx.MemberOf("copilot_sessions", c.names),
	}
	if credits, ok := history.Number(c.credits()); ok && credits > 0 {
		c.whole.Notes = append(c.whole.Notes, jsonx.MemberOf("copilot_credits", credits))
	}
	talk := c.in.AddWhole(&c.whole)
	for i, child := range c.children {
		if talk == nil {
			return
		}
		child.Parent, child.ParentKey = talk, c.whole.KeyOf(c.starts[i])
		c.in.AddWhole(child)
	}
}

// credits are those of the session as its last request says them, else the sum of the requests'.
func (c *chat) credits() jsontext.Value {
	sum := 0.0
	for i := len(c.requests) - 1; i >= 0; i-- {
		if v := c.requests[i].Get("sessionCopilotCredits"); v != nil {
			return v
		}
		n, _ := history.Number(c.requests[i].Get("copilotCredits"))
		sum += n
	}
	return jsontext.Value(fmt.Sprint(sum))
}

// folderOf finds the folder of a chat: as it says it, else that of its workspace.
func folderOf(path string, o jsonx.Object) string {
	if uri := o.Get("workingDirectory"); !jsonx.IsNull(uri) {
		text, _ := jsonx.Text(uri)
		return cmp.Or(pathOf(text), history.PathOfURI(o.Inner("workingDirectory")))
	}
	workspace := filepath.Dir(filepath.Dir(path))
	text, err := history.ReadFile(filepath.Join(workspace, "workspace.json"))
	if err != nil {
		return ""
	}
	about, _ := jsonx.ReadObject(text)
	if folder := about.String("folder"); folder != "" {
		return pathOf(folder)
	}
	file := pathOf(about.String("workspace"))
	if text, err = history.ReadFile(file); file == "" || err != nil {
		return ""
	}
	of, _ := jsonx.ReadObject(text)
	for _, folder := range jsonx.ReadObjects(of.Get("folders")) { // of several the first
		if at := folder.String("path"); filepath.IsAbs(at) {
			return at
		} else if at != "" {
			return filepath.Join(filepath.Dir(file), at)
		}
	}
	return ""
}

// pathOf returns the path of a URI; one of another host stays a URI.
func pathOf(uri string) string { return unescape(history.FolderOfURI(uri)) }
