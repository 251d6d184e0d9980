// Package connect writes sessiond into the configurations of the agent programs on this host: its MCP server,
// its hooks and a skill. How a file changes is a pure function from old to new bytes (form); write.go reads and
// writes the files.
package connect

import (
	"bytes"
	"errors"
	"maps"
	"reflect"
	"slices"
)

// Wanted are the settings that sessiond writes into a file.
type Wanted struct {
	Binary string   // the absolute path of sessiond
	Events []string // that run its hooks, in the order of Events
}

// events lists the events that can run a hook, in the order in which connect writes them: Claude Code's name of the
// event, and its matcher after a colon.
var events = []string{atCompact, "PreCompact", "PostCompact", "SessionEnd", atStart, forPrompts, beforeEdits}

const (
	atCompact   = "SessionStart:compact"
	atStart     = "SessionStart:startup"
	forPrompts  = "UserPromptSubmit"
	beforeEdits = "PreToolUse:Edit|Write"
)

// Events returns the events whose hooks connect writes: compactions, the end of a session, and the chosen ones.
func Events(start, prompts, edits bool) []string {
	chosen := map[string]bool{atStart: start, forPrompts: prompts, beforeEdits: edits}
	return slices.DeleteFunc(slices.Clone(events), func(e string) bool {
		on, optional := chosen[e]
		return optional && !on
	})
}

// merged adds the events that a file has already. Only `connect --remove` removes hooks.
func (w Wanted) merged(have Wanted) Wanted {
	w.Events = slices.DeleteFunc(slices.Clone(events), func(e string) bool {
		return !slices.Contains(w.Events, e) && !slices.Contains(have.Events, e)
	})
	return w
}

// form edits one kind of file. A nil text means that the file does not exist. Each edit keeps the text of others byte
// for byte. Texts are as decodeText returns them.
type form interface {
	// place names what the form adds, within a file: two forms of the same place add the same.
	place() string
	// find returns sessiond's settings in the text, and whether the text has any.
	find(old []byte) (Wanted, bool, error)
	// add returns the text with these settings; old itself if it has them.
	add(old []byte, w Wanted) ([]byte, error)
	// cut removes sessiond's settings from the text.
	cut(old []byte) ([]byte, error)
}

// configFile is a file with what all programs may have in it: programs share files, by links or by variables.
type configFile struct {
	forms  []form // one for each place
	text   []byte // nil: the file does not exist
	backup []byte // the text before sessiond's first change; nil: there was no file, or there is no backup
	kept   string // the backup's path
	isRead bool
}

// addForm adds a form, unless the file has one of that place.
func (c *configFile) addForm(f form) {
	if !slices.ContainsFunc(c.forms, func(g form) bool { return g.place() == f.place() }) {
		c.forms = append(c.forms, f)
	}
}

// found returns the settings of the forms that the text has, by place.
func (c *configFile) found(raw []byte) (map[string]Wanted, error) {
	text, _, err := decodeText(raw)
	if err != nil {
		return nil, err
	}
	have := map[string]Wanted{}
	for _, f := range c.forms {
		w, found, err := f.find(text)
		if err != nil {
			return nil, err
		}
		if found {
			have[f.place()] = w
		}
	}
	return have, nil
}

// with returns a text with settings added, by place.
func (c *configFile) with(raw []byte, wanted map[string]Wanted) ([]byte, error) {
	text, as, err := decodeText(raw)
	for _, f := range c.forms {
		if w, ok := wanted[f.place()]; ok && err == nil {
			text, err = f.add(text, w)
		}
	}
	return as.encode(text), err
}

// untouched reports whether the text is the backup with these settings added: nobody else changed it since.
func (c *configFile) untouched(have map[string]Wanted) bool {
	again, err := c.with(c.backup, have)
	return err == nil && (again == nil) == (c.text == nil) && bytes.Equal(again, c.text)
}

// edited is a file's text after an edit.
type edited struct {
	text   []byte
	ours   bool // it has settings that sessiond wrote
	backup bool // the text before has to be kept
	done   bool // the backup is not needed any more
}

// edit adds the settings of some forms, or with remove cuts them. As long as nobody else changes the file, the text is
// always made from the backup: a removal gives back the same bytes, whatever was added when.
func (c *configFile) edit(chosen []form, w Wanted, remove bool) (edited, error) {
	have, err := c.found(c.text)
	if err != nil {
		return edited{}, err
	}
	untouched := c.untouched(have)
	wanted, all := map[string]Wanted{}, maps.Clone(have)
	for _, f := range chosen {
		if remove {
			delete(all, f.place())
			continue
		}
		wanted[f.place()] = w.merged(have[f.place()])
		all[f.place()] = wanted[f.place()]
	}
	var e edited
	switch {
	case untouched:
		e.text, err = c.with(c.backup, all)
	case remove:
		e.text, err = c.without(c.text, slices.DeleteFunc(slices.Clone(chosen), func(f form) bool {
			_, found := have[f.place()]
			return !found
		}))
	default:
		e.text, err = c.with(c.text, wanted)
	}
	e.ours = len(all) > 0
	// The text before the first change stays the backup. That of an earlier connection is replaced.
	e.backup = !remove && c.text != nil && (len(have) == 0 || c.backup == nil && !untouched)
	e.done = remove && !e.ours || c.text == nil
	return e, err
}

// without cuts the settings of some forms from a text.
func (c *configFile) without(raw []byte, chosen []form) ([]byte, error) {
	text, as, err := decodeText(raw)
	for _, f := range chosen {
		if err == nil && text != nil {
			text, err = f.cut(text)
		}
	}
	return as.encode(text), err
}

// sameElse reports whether the changed text parses, has sessiond below the key exactly if wanted, and has the same
// values as old everywhere else.
func sameElse(f form, parse func([]byte) (map[string]any, error), key string, old, changed []byte, wanted bool) bool {
	without := func(text []byte) (map[string]any, bool) {
		all, err := parse(text)
		servers, _ := all[key].(map[string]any)
		delete(servers, serverName)
		if len(servers) == 0 {
			delete(all, key)
		}
		return all, err == nil
	}
	_, found, _ := f.find(changed)
	before, _ := without(old)
	after, ok := without(changed)
	return ok && found == wanted && (len(before)+len(after) == 0 || reflect.DeepEqual(before, after))
}

// textEncoding is how a file's text is written, apart from its characters.
type textEncoding struct{ mark, crlf bool }

var byteOrderMark = []byte("\ufeff")

// decodeText returns the text of a file without a byte order mark, and with LF where each line ends in CRLF.
func decodeText(raw []byte) ([]byte, textEncoding, error) {
	var as textEncoding
	if bytes.HasPrefix(raw, []byte("\xff\xfe")) || bytes.HasPrefix(raw, []byte("\xfe\xff")) {
		return nil, as, errors.New("the file is UTF-16; save it as UTF-8 and connect again")
	}
	text := bytes.TrimPrefix(raw, byteOrderMark)
	as.mark = len(text) < len(raw)
	lines := bytes.Count(text, []byte("\n"))
	if as.crlf = lines > 0 && bytes.Count(text, []byte("\r\n")) == lines; as.crlf {
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	}
	return text, as, nil
}

// encode is the inverse of decodeText.
func (e textEncoding) encode(text []byte) []byte {
	if text == nil {
		return nil
	}
	if e.crlf {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	if e.mark {
		text = append(bytes.Clone(byteOrderMark), text...)
	}
	return text
}
