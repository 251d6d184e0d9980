package transcript

import (
	"bytes"
	"encoding/json"
	"html/template"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sessiond/internal/session"
)

// held is a call, a thought before one, a hidden message, or a row of the program, that may be in one line with others.
type held struct {
	anchor, class string
	use           *ToolUse
	thought       string
	rest          *Rest         // of the thought
	hidden        *Item         // or the row of the program
	note          template.HTML // of the hidden message
}

// worksOnly reports whether a message says nothing but calls tools.
func worksOnly(item *Item) bool {
	calls := 0
	for i := range item.Blocks {
		switch b := &item.Blocks[i]; {
		case b.Kind == BlockTool:
			calls++
		case b.Kind != BlockReasoning && strings.TrimSpace(b.Text) != "" || b.Attachment != nil:
			return false
		}
	}
	return calls > 0
}

// flushCalls writes what is held: a call alone as it is, several calls, and hidden messages, behind a line that counts
// them.
func (p *Pieces) flushCalls() {
	all := p.calls
	p.calls = nil
	uses := 0
	for i := range all {
		if all[i].use != nil {
			uses++
		}
	}
	if uses > 1 {
		p.group(all)
		return
	}
	for len(all) > 0 {
		n := 0
		for n < len(all) && all[n].hidden != nil {
			n++
		}
		if n > 0 {
			p.group(all[:n])
			all = all[n:]
			continue
		}
		p.writeHeld(&all[0])
		all = all[1:]
	}
}

func (p *Pieces) group(all []held) {
	p.write("calls", countHeld(all))
	for i := range all {
		p.writeHeld(&all[i])
	}
	p.raw("</details>\n")
}

func (p *Pieces) writeHeld(h *held) {
	if h.hidden != nil {
		p.writeHidden(h)
		return
	}
	p.write("call", map[string]any{"Anchor": h.anchor, "Class": h.class})
	if h.use != nil {
		p.tool(h.use)
	} else {
		p.put(p.reasoning(h.thought))
		p.rest(h.rest)
	}
	p.raw("</div>\n")
}

// Limits of what a line says of the calls behind it.
const (
	mostTools = 5
	mostFiles = 2
)

// countHeld describes what is behind a line: Read 3 · Edit hooks.go +3 −1 · 1 error · 2 hidden messages · +7 rows of
// the program.
func countHeld(all []held) string {
	var failed, hidden, ofProgram int64
	var edits []Change // one for each file
	editor := ""
	type used struct {
		tool  string
		times int64
	}
	var tools []used
	for i := range all {
		h := &all[i]
		switch {
		case h.hidden == nil:
		case h.hidden.Talk == session.OfProgram:
			ofProgram++
		default:
			hidden++
		}
		if h.use == nil {
			continue
		}
		if h.use.IsError {
			failed++
		}
		name := h.use.toolName(30)
		if changes := changesBy(h.use); len(changes) > 0 {
			for _, c := range changes {
				at := slices.IndexFunc(edits, func(e Change) bool { return e.Path == c.Path })
				if at < 0 {
					at, edits = len(edits), append(edits, Change{Path: c.Path, tool: name})
				}
				edits[at].Added += c.Added
				edits[at].Removed += c.Removed
			}
			if editor == "" {
				editor, tools = name, append(tools, used{tool: ""})
			}
			continue
		}
		at := slices.IndexFunc(tools, func(u used) bool { return u.tool == name })
		if at < 0 {
			at, tools = len(tools), append(tools, used{tool: name})
		}
		tools[at].times++
	}
	var words []string
	for _, u := range tools[:min(len(tools), mostTools)] {
		switch {
		case u.tool == "" && len(edits) > mostFiles:
			sum := Change{}
			for _, e := range edits {
				sum.Added, sum.Removed = sum.Added+e.Added, sum.Removed+e.Removed
			}
			words = append(words, editor+" "+Counted(len(edits), "file")+sum.Size())
		case u.tool == "":
			for _, e := range edits {
				words = append(words, e.tool+" "+OneLine(LastFolder(e.Path), 40)+e.Size())
			}
		case u.times == 1:
			words = append(words, u.tool)
		default:
			words = append(words, u.tool+" "+Count(u.times))
		}
	}
	if more := len(tools) - mostTools; more > 0 {
		words = append(words, Counted(more, "other tool"))
	}
	add := func(n int64, noun, more string) {
		if n > 0 {
			words = append(words, Counted(n, noun)+more)
		}
	}
	add(failed, "error", "")
	add(hidden, "hidden message", "")
	if ofProgram > 0 {
		words = append(words, "+"+Counted(ofProgram, "row")+" of the program")
	}
	return strings.Join(words, " · ")
}

// writeHidden writes a message that is not meant for people, or a row of the program.
func (p *Pieces) writeHidden(h *held) {
	p.speaker = ""
	p.begin(h.hidden, h.anchor, h.class, h.note, false)
	for i := range h.hidden.Blocks {
		p.block(h.hidden, &h.hidden.Blocks[i])
	}
	p.write("ended", finishText(h.hidden))
	p.speaker = ""
}

func (p *Pieces) tool(use *ToolUse) {
	edit := editOf(use)
	took, short := "", ""
	if use.DurationMS != nil && *use.DurationMS >= 1000 {
		took = (time.Duration(*use.DurationMS) * time.Millisecond).Round(100 * time.Millisecond).String()
	}
	if edit != nil && edit.path != "" {
		short = shortValueText(edit.path, 100)
	} else {
		short = use.shortArguments(100)
	}
	p.write("tool", map[string]any{
		"Name": use.toolName(60), "Short": short, "Outcome": use.outcome(80), "Failed": use.IsError, "Took": took,
		"Open": edit != nil && len(edit.lines) <= openDiff,
	})
	if edit != nil {
		p.write("diff", edit.lines)
	} else {
		p.arguments(use.Arguments)
	}
	p.write("result", visible(use.Result))
	for _, r := range use.Rests {
		p.rest(r)
	}
	p.raw("</details>\n")
}

// mostArguments is the longest argument that is coloured.
const mostArguments = 8 << 10

// arguments writes the arguments of a call: short ones as lines, commands and long ones as code.
func (p *Pieces) arguments(all string) {
	fields, ok := topFields(all)
	if !ok {
		p.write("arguments", visible(all))
		return
	}
	var lines []string
	path := ""
	for _, f := range fields {
		isCommand := f.name == "command" || f.name == "cmd"
		if !isCommand && len(f.value) <= 200 && !strings.Contains(f.value, "\n") {
			lines = append(lines, f.name+": "+f.value)
			if strings.HasSuffix(strings.ToLower(f.name), "path") {
				path = f.value
			}
		}
	}
	p.write("arguments", visible(strings.Join(lines, "\n")))
	for _, f := range fields {
		code, language := f.value, strings.TrimPrefix(filepath.Ext(path), ".")
		switch {
		case f.name == "command" || f.name == "cmd":
			language = "bash"
		case len(f.value) <= 200 && !strings.Contains(f.value, "\n"):
			continue
		case strings.HasPrefix(code, "{") || strings.HasPrefix(code, "["):
			var indented bytes.Buffer
			if json.Indent(&indented, []byte(code), "", "  ") == nil {
				code, language = indented.String(), "json"
			}
		}
		if len(code) > mostArguments {
			language = ""
		}
		p.write("argument", map[string]any{"Name": f.name, "Code": highlighted(language, visible(code))})
	}
}
