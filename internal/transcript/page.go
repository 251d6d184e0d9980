package transcript

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's style and templates
	"encoding/base64"
	"encoding/json"
	"html/template"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/yuin/goldmark"

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

// NewHTML returns a writer of a self-contained page: it loads nothing, and nothing in it runs. Stored
// content is only text; images of common formats are embedded.
func NewHTML(w io.Writer, heading Heading, zone *time.Location) Writer {
	templates, err := template.New("page").Parse(pageTemplates)
	p := &page{out: bufio.NewWriter(w), templates: templates, prose: newProse(), clock: clock{zone: zone}, left: maxImages, err: err}
	heading = heading.lines()
	sum := sha256.Sum256([]byte(pageStyle))
	p.write("head", map[string]any{
		"Title": heading.Title, "Facts": heading.Facts, "Style": template.CSS(pageStyle),
		"Policy": "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'",
	})
	return p
}

// Item implements Writer.
func (p *page) Item(item *Item) error {
	p.item(item)
	return p.err
}

// Close implements Writer.
func (p *page) Close() error {
	p.write("tail", "")
	if p.err != nil {
		return p.err
	}
	return p.out.Flush()
}

type page struct {
	out       *bufio.Writer
	templates *template.Template
	prose     goldmark.Markdown
	clock     clock
	own       session.ID // of the first message: others are named with their session
	left      int        // bytes of images that there is room for
	err       error      // the first one
}

func (p *page) write(name string, v any) {
	if p.err == nil {
		p.err = p.templates.ExecuteTemplate(p.out, name, v)
	}
}

// render returns a template's output as a piece of another one.
func (p *page) render(name string, v any) template.HTML {
	var b bytes.Buffer
	if err := p.templates.ExecuteTemplate(&b, name, v); err != nil && p.err == nil {
		p.err = err
	}
	return template.HTML(b.String()) //nolint:gosec // it was escaped by its own template
}

func (p *page) item(item *Item) {
	switch item.Kind {
	case ItemCompaction:
		p.write("cut", map[string]any{"Line": OneLine(compactionLine(item.Compaction), headingWidth), "Summary": p.drawn(visible(item.Compaction.Summary))})
	case ItemBranch:
		p.write("cut", map[string]string{"Line": OneLine(branchLine(item.Branch), headingWidth)})
	case ItemMarker:
		if !item.Hidden {
			p.write("marker", OneLine("· "+markerLine(item), headingWidth))
		}
	default:
		p.message(item)
	}
}

func (p *page) message(item *Item) {
	if p.own == "" {
		p.own = item.Ref.Session
	}
	anchor := "m" + strconv.FormatInt(item.Ref.Seq, 10)
	if item.Ref.Session != p.own {
		anchor = item.Ref.String()
	}
	class := string(item.Role)
	if item.Origin == session.Program || class == "" {
		class = string(session.System)
	}
	p.write("message", map[string]any{
		"Class": class, "Anchor": anchor, "Seq": item.Ref.Seq, "Who": speaker(item), "Clock": p.clock.format(item.At), "Stamp": item.At.In(p.clock.zone).Format(time.RFC3339), "Hidden": item.Hidden,
	})
	for i := range item.Blocks {
		p.block(item, &item.Blocks[i])
	}
	p.write("ended", map[string]any{"Hidden": item.Hidden, "Ended": finishText(item)})
}

func (p *page) block(item *Item, b *Block) {
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
}

// put writes rendered HTML.
func (p *page) put(done template.HTML) { p.raw(string(done)) }

func (p *page) raw(s string) {
	if p.err == nil {
		_, p.err = p.out.WriteString(s)
	}
}

func (p *page) reasoning(s string) template.HTML {
	if s = visible(s); s == "" {
		return p.render("note", unreadable)
	}
	return p.render("thought", p.drawn(s))
}

// text renders text of models and programs as Markdown. A person's text stays as typed: __init__ is no
// bold word.
func (p *page) text(s string, item *Item, refusal bool) template.HTML {
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
func (p *page) renderTyped(s string, refusal bool) template.HTML {
	var pieces template.HTML
	var prose []string
	flush := func() {
		if text := strings.Trim(strings.Join(prose, "\n"), "\n"); strings.TrimSpace(text) != "" {
			pieces += p.render("prose", map[string]any{"Text": text, "Refusal": refusal})
		}
		prose = nil
	}
	lines := strings.Split(s, "\n")
	for i := 0; i < len(lines); i++ {
		fence, _ := openingFence(lines[i])
		end := closingFence(lines, i+1, fence)
		if end < 0 {
			prose = append(prose, lines[i])
			continue
		}
		flush()
		pieces += p.render("code", strings.Join(lines[i+1:end], "\n"))
		i = end
	}
	flush()
	return pieces
}

func (p *page) drawn(s string) template.HTML {
	if !isProse(s) {
		return p.renderTyped(s, false)
	}
	var b bytes.Buffer
	if err := p.prose.Convert([]byte(s), &b); err != nil && p.err == nil {
		p.err = err
	}
	return template.HTML(b.String()) //nolint:gosec // HTML in it was escaped: see newProse
}

func (p *page) tool(use *ToolUse) {
	arguments := use.Arguments
	var indented bytes.Buffer
	if json.Indent(&indented, []byte(arguments), "", "  ") == nil {
		arguments = indented.String()
	}
	p.write("tool", map[string]any{
		"Name": use.toolName(60), "Short": use.shortArguments(100), "Outcome": use.outcome(80), "Failed": use.IsError, "Arguments": visible(arguments),
	})
	p.write("result", visible(use.Result))
	p.raw("</details>\n")
}

// attachment embeds a picture, and names everything else.
func (p *page) attachment(a *Attachment) {
	kind := a.picture()
	if size := int(a.Size); kind == "" || size > min(maxImage, p.left) {
		p.write("note", a.String())
		return
	}
	p.left -= int(a.Size)
	p.raw(`<img src="data:` + kind + `;base64,`)
	p.raw(base64.StdEncoding.EncodeToString(a.Data))
	p.write("image", a.String())
}

// picture returns the media type of a picture, told by its first bytes; "" for anything else.
func (a *Attachment) picture() string {
	if len(a.Data) == 0 {
		return ""
	}
	switch kind := http.DetectContentType(a.Data); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind
	}
	return ""
}

// visible returns a text without the characters that a page cannot show.
func visible(s string) string { return strings.Trim(Clean(s), "\n") }
