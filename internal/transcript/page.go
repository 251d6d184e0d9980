package transcript

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's style and templates
	"encoding/base64"
	"html/template"
	"image"
	_ "image/gif" // sizes of images
	_ "image/jpeg"
	_ "image/png"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/yuin/goldmark"

	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

//go:embed page.css
var pageStyle string

//go:embed page.gohtml
var pageTemplates string

// Limits of the images in a page: larger ones, and those beyond the sum, are only named.
const (
	maxImage  = 8 << 20
	maxImages = 48 << 20
)

// Page is a self-contained page: it loads nothing, and nothing in it runs. Stored content is only text; images of
// common formats are embedded. Its prompts are listed in a rail.
type Page struct {
	*Pieces
	Secrets int  // values in it that look like secrets, for its note
	Masked  bool // they are masked

	agent bool // a sub-agent's messages are written
}

// NewPage returns the writer of a page.
func NewPage(w io.Writer, heading Heading, zone *time.Location) *Page {
	p := NewPieces(w, zone)
	heading = heading.lines()
	sum := sha256.Sum256([]byte(pageStyle))
	p.write("head", map[string]any{
		"Title": heading.Title, "Facts": heading.Facts, "Style": template.CSS(pageStyle),
		"Policy": "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; base-uri 'none'; form-action 'none'",
	})
	return &Page{Pieces: p}
}

// Agent begins a sub-agent: its items follow. It is folded.
func (p *Page) Agent(id session.ID, heading Heading) {
	p.flushCalls()
	p.endAgent()
	heading = heading.lines()
	p.agent, p.speaker, p.clock.day = true, "", ""
	p.write("agent", map[string]any{"ID": id, "Title": heading.Title, "Facts": heading.Facts})
}

func (p *Page) endAgent() {
	if p.agent {
		p.raw("</details>\n")
	}
	p.agent = false
}

// Close implements Writer.
func (p *Page) Close() error {
	p.flushCalls()
	p.endAgent()
	note := ""
	switch {
	case p.Masked && p.Secrets > 0:
		note = "Masked on this page, because they looked like secrets: " + Counted(p.Secrets, "value") + "."
	case p.Masked:
		note = "No value looked like a secret."
	case p.Secrets > 0:
		note = "This page has what looks like secrets (keys, tokens, passwords): " + Counted(p.Secrets, "value") +
			". Do not pass it on: sessiond export --redact masks them."
	}
	p.write("tail", map[string]any{"Prompts": p.prompts, "Note": note, "Bad": !p.Masked && p.Secrets > 0})
	return p.Pieces.Close()
}

// Style is the style of the pieces.
func Style() string { return pageStyle }

// Pieces writes items as pieces of a page. Stored content is only text.
type Pieces struct {
	// Cut returns what a compaction offers; may be nil.
	Cut func(*session.Compaction) template.HTML
	// Mark returns a class of a message, and what stands beside its number; may be nil.
	Mark func(*Item) (class string, note template.HTML)
	// Sessions is the address before a session's id: lines that name sessions and messages lead there. "": they do not.
	Sessions string
	// Whole is the address before the names of message and part that leads to a part that is not shown whole; "": none.
	Whole string
	// Opens makes the line of a sub-agent a fold in which a page shows its conversation.
	Opens bool
	// Within are the only sessions to which such lines lead; nil: to all.
	Within map[session.ID]bool
	// Own is the session whose messages are named by their numbers alone; "": that of the first message.
	Own session.ID

	out       *bufio.Writer
	templates *template.Template
	prose     goldmark.Markdown
	clock     clock
	speaker   string // of the last message
	calls     []held // that wait for the next ones
	prompts   []railed
	left      int   // bytes of images that there is room for
	err       error // the first one
}

// NewPieces returns a writer of pieces.
func NewPieces(w io.Writer, zone *time.Location) *Pieces {
	templates, err := template.New("page").Parse(pageTemplates)
	return &Pieces{
		out: bufio.NewWriter(w), templates: templates, prose: newProse(), clock: clock{zone: zone},
		left: maxImages, err: err,
	}
}

// Item implements Writer.
func (p *Pieces) Item(item *Item) error {
	p.item(item)
	return p.err
}

// Close implements Writer.
func (p *Pieces) Close() error {
	p.flushCalls()
	if p.err != nil {
		return p.err
	}
	return p.out.Flush()
}

func (p *Pieces) write(name string, v any) {
	if p.err == nil {
		p.err = p.templates.ExecuteTemplate(p.out, name, v)
	}
}

// render returns a template's output as a piece of another one.
func (p *Pieces) render(name string, v any) template.HTML {
	var b bytes.Buffer
	if err := p.templates.ExecuteTemplate(&b, name, v); err != nil && p.err == nil {
		p.err = err
	}
	return template.HTML(b.String()) //nolint:gosec // it was escaped by its own template
}

func (p *Pieces) item(item *Item) {
	if item.Talk == session.OfProgram {
		p.message(item)
		return
	}
	if item.Kind != ItemMessage {
		p.flushCalls()
	}
	switch item.Kind {
	case ItemCompaction:
		var offers template.HTML
		if p.Cut != nil {
			offers = p.Cut(item.Compaction)
		}
		p.write("cut", map[string]any{
			"Line":    p.linked(OneLine(compactionLine(item.Compaction, &p.clock), headingWidth)),
			"Summary": p.drawn(visible(item.Compaction.Summary)), "Offers": offers, "ID": item.Compaction.ID,
		})
		p.speaker = ""
	case ItemBranch:
		p.write("cut", map[string]any{"Line": p.linked(OneLine(branchLine(item.Branch), headingWidth))})
	case ItemMarker:
		switch line := OneLine(markerLine(item), headingWidth); {
		case item.Hidden:
		case p.Opens && item.Started != "" && (p.Within == nil || p.Within[item.Started]):
			p.write("started", map[string]any{"Line": line, "ID": item.Started, "At": p.Sessions + string(item.Started)})
		default:
			p.write("marker", p.linked(OneLine("· "+markerLine(item), headingWidth)))
		}
	default:
		p.message(item)
	}
}

var sessionName = pattern.New(`\b(\d{8}_\d{3,})(?:\.(\d+))?\b`)

// linked returns a line whose ids of sessions and messages lead to them.
func (p *Pieces) linked(line string) template.HTML {
	text := template.HTMLEscapeString(line)
	if p.Sessions != "" {
		text = sessionName.ReplaceAllStringFunc(text, func(name string) string {
			if in, _, _ := strings.Cut(name, "."); p.Within != nil && !p.Within[session.ID(in)] {
				return name
			}
			to := p.Sessions + name
			if id, seq, message := strings.Cut(name, "."); message {
				to = p.Sessions + id + "?at=" + name + "#m" + seq
			}
			return `<a href="` + to + `">` + name + `</a>`
		})
	}
	return template.HTML(text) //nolint:gosec // escaped; an id has digits alone
}

// Given writes what a context has beside messages.
func (p *Pieces) Given(kind, size, note, text string) {
	p.flushCalls()
	p.write("given", map[string]any{"Kind": kind, "Size": size, "Note": p.linked(note), "Text": p.drawn(visible(text))})
	p.speaker = ""
}

// Edge writes an element without content behind all pieces so far.
func (p *Pieces) Edge() {
	p.flushCalls()
	p.raw("<i class=\"edge\" hidden></i>\n")
}

// anchor is the name of a message's place.
func (p *Pieces) anchor(ref session.MessageRef) string {
	if p.Own == "" {
		p.Own = ref.Session
	}
	if ref.Session != p.Own {
		return ref.String()
	}
	return "m" + strconv.FormatInt(ref.Seq, 10)
}

// message writes what is said as an article. It holds calls, hidden messages and rows of the program: those that
// follow one another are one line.
func (p *Pieces) message(item *Item) {
	anchor, class := p.anchor(item.Ref), string(item.Role)
	if item.Origin == session.Program || class == "" {
		class = string(session.System)
	}
	var note template.HTML
	if p.Mark != nil {
		var more string
		if more, note = p.Mark(item); more != "" {
			class += " " + more
		}
	}
	if item.Hidden || item.Talk == session.OfProgram {
		p.calls = append(p.calls, held{anchor: anchor, class: class, hidden: item, note: note})
		return
	}
	open, named := false, false
	begin := func() {
		p.flushCalls()
		id := anchor
		if named {
			id = ""
		}
		p.begin(item, id, class, note, named)
		open, named = true, true
	}
	end := func(ended string) {
		if open {
			p.write("ended", ended)
		}
		open = false
	}
	worksOnly := worksOnly(item)
	for i := range item.Blocks {
		b := &item.Blocks[i]
		if b.Kind == BlockTool || b.Kind == BlockReasoning && worksOnly {
			end("")
			h := held{class: class, use: b.Tool, thought: b.Text, rest: b.Rest}
			if !named {
				h.anchor, named = anchor, true
			}
			p.calls = append(p.calls, h)
			continue
		}
		if b.Kind == BlockText && strings.TrimSpace(b.Text) == "" {
			continue
		}
		if !open {
			begin()
		}
		p.block(item, b)
	}
	if ended := finishText(item); !named || ended != "" && !open {
		begin()
	}
	end(finishText(item))
}

// railed is a prompt as the rail of a page lists it.
type railed struct{ Anchor, Text string }

// railedWidth is how much of a prompt the rail has, in columns.
const railedWidth = 90

// begin opens an article. A message that goes on after its calls has no name of its own there.
func (p *Pieces) begin(item *Item, id, class string, note template.HTML, goesOn bool) {
	who := speaker(item)
	if id != "" && item.Role == session.User && item.Origin == session.Person && item.Ref.Session == p.Own {
		for i := range item.Blocks {
			if text := OneLine(item.Blocks[i].Text, railedWidth); item.Blocks[i].Kind == BlockText && text != "" {
				p.prompts = append(p.prompts, railed{id, text})
				break
			}
		}
	}
	p.write("message", map[string]any{
		"Class": class, "Anchor": id, "To": p.anchor(item.Ref), "Seq": item.Ref.Seq, "Who": who, "Again": who == p.speaker ||
			goesOn, "Note": note,
		"Clock": p.clock.format(item.At), "Stamp": item.At.In(p.clock.zone).Format(time.RFC3339),
	})
	p.speaker = who
}

func (p *Pieces) block(item *Item, b *Block) {
	switch {
	case b.Kind == BlockTool:
		p.tool(b.Tool)
	case b.Kind == BlockAttachment:
		p.attachment(b.Attachment)
	case b.Kind == BlockReasoning:
		p.put(p.reasoning(b.Text))
	case b.Kind == BlockData:
		p.write("data", visible(b.Text))
	default:
		p.put(p.text(b.Text, item, b.Kind == BlockRefusal))
	}
	p.rest(b.Rest)
}

// rest leads to the whole of a part that is not shown whole.
func (p *Pieces) rest(r *Rest) {
	if r == nil || p.Whole == "" {
		return
	}
	p.write("rest", map[string]any{
		"To":   p.Whole + r.Message.String() + "/" + strconv.FormatInt(r.Part, 10),
		"Size": humanize.Bytes(uint64(r.Bytes)),
	})
}

// put writes rendered HTML.
func (p *Pieces) put(done template.HTML) { p.raw(string(done)) }

func (p *Pieces) raw(s string) {
	if p.err == nil {
		_, p.err = p.out.WriteString(s)
	}
}

func (p *Pieces) reasoning(s string) template.HTML {
	if s = visible(s); s == "" {
		return p.render("note", unreadable)
	}
	return p.render("thought", p.drawn(s))
}

// text renders text of models and programs as Markdown. A person's text stays as typed: __init__ is no
// bold word.
func (p *Pieces) text(s string, item *Item, refusal bool) template.HTML {
	s = visible(s)
	if strings.TrimSpace(s) == "" {
		return ""
	}
	if item.Role == session.User && item.Origin != session.Program {
		return p.renderTyped(s, refusal)
	}
	return p.render("drawn", map[string]any{"Text": p.drawn(s), "Refusal": refusal})
}

// renderTyped renders prose as it is, and its code blocks as code.
func (p *Pieces) renderTyped(s string, refusal bool) template.HTML {
	var pieces template.HTML
	var prose []string
	flush := func() {
		if text := strings.Trim(strings.Join(prose, "\n"), "\n"); strings.TrimSpace(text) != "" {
			pieces += p.render("prose", map[string]any{"Text": text, "Refusal": refusal})
		}
		prose = nil
	}
	lines := strings.Split(s, "\n")
	ends := fenceEnds{lines: lines}
	for i := 0; i < len(lines); i++ {
		indent, fence, info := openingFence(lines[i])
		end := -1
		if indent == "" {
			end = ends.find(i+1, "", fence)
		}
		if end < 0 || end == len(lines) {
			prose = append(prose, lines[i])
			continue
		}
		flush()
		code := strings.Join(lines[i+1:end], "\n")
		pieces += p.render("code", map[string]any{"Code": highlighted(info, code), "Wide": isWide(code)})
		i = end
	}
	flush()
	return pieces
}

func (p *Pieces) drawn(s string) template.HTML {
	if !isProse(s) {
		return p.renderTyped(s, false)
	}
	var b bytes.Buffer
	if err := p.prose.Convert([]byte(s), &b); err != nil && p.err == nil {
		p.err = err
	}
	return template.HTML(b.String()) //nolint:gosec // HTML in it was escaped: see newProse
}

// attachment embeds a picture, and names everything else.
func (p *Pieces) attachment(a *Attachment) {
	kind := a.picture()
	if size := int(a.Size); kind == "" || size > min(maxImage, p.left) {
		p.write("note", a.String())
		return
	}
	p.left -= int(a.Size)
	p.raw(`<img src="data:` + kind + `;base64,`)
	p.raw(base64.StdEncoding.EncodeToString(a.Data))
	size, _, err := image.DecodeConfig(bytes.NewReader(a.Data)) // so that nothing moves once it is drawn
	p.write("image", map[string]any{"Name": a.String(), "Width": size.Width, "Height": size.Height, "Known": err == nil})
}

// picture returns the media type of a picture, told by its first bytes; "" for anything else.
func (a *Attachment) picture() string {
	if len(a.Data) == 0 {
		return ""
	}
	return PictureType(a.Data)
}

// PictureType returns the media type of a picture that begins with these bytes; "" for anything else.
func PictureType(begin []byte) string {
	switch kind := http.DetectContentType(begin); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind
	}
	return ""
}

// visible returns a text without the characters that a page cannot show.
func visible(s string) string { return strings.Trim(Clean(s), "\n") }
