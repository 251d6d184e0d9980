package demo

import (
	"fmt"
	"strconv"
	"strings"
)

// The history is a text. A conversation begins with a line
//
//	== NAME PROGRAM MODEL PROJECT BEGAN
//
// and lines of its fields: title, branch, star, child (NAME MESSAGE: it is a sub-agent), continues (NAME MESSAGE: it is
// a handover). Then come its entries, which go on in lines that begin with two spaces:
//
//	> a prompt                        < a reply
//	! TOOL {arguments}                = its result   =! its error
//	#NAME of the message before       ^NAME: the conversation goes on from there
//	* the message before is pinned    %N SUMMARY: a compaction that keeps the last N messages
//
// A line `@tides N` or `@tests N` of a result stands for so many lines.
type talk struct {
	name, program, model, project, began string
	title, branch                        string
	star                                 bool
	childOf, continues                   place
	entries                              []entry
}

// place is a message of another talk.
type place struct{ talk, message string }

// kind is what an entry begins with.
type kind string

const (
	prompt     kind = "> "
	reply      kind = "< "
	toolCall   kind = "! "
	result     kind = "= "
	failure    kind = "=! "
	naming     kind = "#"
	goBack     kind = "^"
	pin        kind = "*"
	compaction kind = "%"
)

// kinds are in the order in which they are tried.
var kinds = []kind{failure, prompt, reply, toolCall, result, naming, goBack, pin, compaction}

type entry struct {
	kind kind
	name string // of the message; "": none
	text string
	keep int // of a compaction
}

func parse(text string) ([]talk, error) {
	var talks []talk
	for n, line := range strings.Split(text, "\n") {
		if head, begins := strings.CutPrefix(line, "== "); begins {
			fields := strings.SplitN(head, " ", 5)
			if len(fields) < 5 {
				return nil, fmt.Errorf("line %d: a conversation needs a name, a program, a model, a project and a time", n+1)
			}
			talks = append(talks, talk{
				name: fields[0], program: fields[1], model: fields[2], project: fields[3], began: fields[4],
			})
			continue
		}
		if len(talks) == 0 {
			continue // what is said before the first one
		}
		if err := talks[len(talks)-1].addLine(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	for i := range talks {
		if err := talks[i].finish(); err != nil {
			return nil, err
		}
	}
	return talks, nil
}

func (t *talk) addLine(line string) error {
	if name, value, is := strings.Cut(line, ": "); is && len(t.entries) == 0 && !strings.Contains(name, " ") {
		return t.set(name, value)
	}
	more, goesOn := strings.CutPrefix(line, "  ")
	if line == "" || goesOn {
		if len(t.entries) > 0 {
			t.entries[len(t.entries)-1].text += "\n" + more
		}
		return nil
	}
	for _, k := range kinds {
		text, is := strings.CutPrefix(line, string(k))
		if !is {
			continue
		}
		if k == naming {
			return t.nameLast(text)
		}
		t.entries = append(t.entries, entry{kind: k, text: text})
		return nil
	}
	return fmt.Errorf("%q begins with nothing that is known", line)
}

func (t *talk) set(name, value string) error {
	var at place
	at.talk, at.message, _ = strings.Cut(value, " ")
	switch name {
	case "title":
		t.title = value
	case "branch":
		t.branch = value
	case "star":
		t.star = true
	case "child":
		t.childOf = at
	case "continues":
		t.continues = at
	default:
		return fmt.Errorf("%s is no field of a conversation", name)
	}
	return nil
}

func (t *talk) nameLast(name string) error {
	if len(t.entries) == 0 {
		return fmt.Errorf("no message is before #%s", name)
	}
	t.entries[len(t.entries)-1].name = name
	return nil
}

// finish writes out what stands for more.
func (t *talk) finish() (err error) {
	for i := range t.entries {
		e := &t.entries[i]
		e.text = strings.TrimSpace(e.text)
		switch e.kind {
		case compaction:
			keep, summary, _ := strings.Cut(e.text, " ")
			if e.keep, err = strconv.Atoi(keep); err != nil {
				return fmt.Errorf("%s: a compaction keeps a number of messages: %w", t.name, err)
			}
			e.text = summary
		case result, failure:
			lines := strings.Split(e.text, "\n")
			for i, line := range lines {
				var count int
				if n, _ := fmt.Sscanf(line, "@tides %d", &count); n == 1 {
					lines[i] = tides(count)
				} else if n, _ := fmt.Sscanf(line, "@tests %d", &count); n == 1 {
					lines[i] = tests(count)
				}
			}
			e.text = strings.Join(lines, "\n")
		}
	}
	return nil
}
