package session

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"sessiond/internal/pattern"
)

const (
	titleRunes = 80
	titleBytes = 64 << 10 // of a prompt: what programs put before the person's words is shorter
)

// TitleOf makes a title of a prompt: the first line that the person wrote, at most 80 runes, cut between words. It
// skips what programs put around that: tagged blocks, caveats, pasted files and images. Of a plan to implement it takes
// the heading. It is "" for a command (/init), for a prompt without words, and for one that says nothing of the work:
// 1, hi, ok.
func TitleOf(prompt string) string {
	text := strings.ToValidUTF8(WithoutEcho(prompt[:min(len(prompt), titleBytes)]), "")
	for {
		text = strings.TrimLeftFunc(text, blank)
		rest, skipped := withoutPreamble(text)
		if !skipped {
			break
		}
		text = rest
	}
	if IsCommand(text) {
		return ""
	}
	lines := titleLines(text)
	switch {
	case len(lines) == 0:
		return ""
	case len(lines) > 1 && asksForPlan.MatchString(lines[0]):
		return CutTitle(planWord.ReplaceAllString(lines[1], ""))
	}
	return CutTitle(lines[0])
}

// TitleOfCommand makes a title of a command with words behind it, /review the parser, without its slash; "" for any
// other one and for other texts.
func TitleOfCommand(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	words := strings.FieldsFunc(line, blank)
	if !IsCommand(line) || len(words) < 3 {
		return ""
	}
	return CutTitle(strings.ToValidUTF8(strings.Join(words, " ")[1:], ""))
}

// saysNothing reports whether a line is a number, a greeting, an answer of one word or a test of the line.
func saysNothing(line string) bool {
	words := strings.FieldsFunc(strings.ToLower(line), func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.N, unicode.S, unicode.M)
	})
	digits := !strings.ContainsFunc(line, func(r rune) bool {
		return !unicode.IsDigit(r) && !unicode.IsPunct(r) && !unicode.IsSpace(r)
	})
	return digits || len(words) <= 3 && smallTalk[strings.Join(words, " ")]
}

var smallTalk = func() map[string]bool {
	all := map[string]bool{}
	for _, text := range strings.Split("hi,hi there,hey,hey there,hello,hello there,"+
		"hello world,hallo,moin,servus,hola,bonjour,salut,ciao,ola,yo,"+
		"good morning,good evening,guten morgen,guten tag,y,yes,yes please,yep,yeah,n,no,nope,ok,okay,k,sure,fine,go,go "+
		"on,go ahead,continue,"+
		"please continue,proceed,next,do it,ja,nein,bitte,weiter,mach weiter,danke,thanks,thank "+
		"you,thx,test,testing,ping,help,quit,exit,"+
		"你好,您好,こんにちは,안녕하세요,привет,merhaba", ",") {
		all[text] = true
	}
	return all
}()

// IsCommand reports whether a text is a command of an agent's program, like /init or /review the parser.
func IsCommand(text string) bool { return command.MatchString(text) }

var (
	command     = pattern.New(`^/[a-zA-Z][\w:.-]*(\s|$)`)
	asksForPlan = pattern.New(`(?i)^(please )?(implement|execute|follow|carry out)\b[^.]{0,30}\bplan\b[^.]{0,30}$`)
	planWord    = pattern.New(`(?i)^(implementation )?plan:\s*`)
	openingTag  = pattern.New(`^<([A-Za-z][\w-]*)[^<>]*>`)
	taggedName  = pattern.New(`[_-]|^[A-Z]+$`) // not an element of HTML that the person asks about
	attachment  = pattern.New(`^\[(Image|Pasted text)[^\]\n]*\]|^\[Request interrupted[^\]\n]*\]`)
	programLine = pattern.New("^(Caveat: The messages below|# AGENTS\\.md instructions|```)[^\n]*(\n|$)")
	marks       = pattern.New(`^([#>*•❯$+-]+\s+)+|^[❯>•]`)
)

// withoutPreamble removes one thing before the person's words. A block without an end takes the rest with it.
func withoutPreamble(text string) (rest string, skipped bool) {
	if tag := openingTag.FindStringSubmatch(text); tag != nil && taggedName.MatchString(tag[1]) {
		_, rest, _ := strings.Cut(text, "</"+tag[1]+">")
		return rest, true
	}
	for _, skip := range []*pattern.Pattern{attachment, programLine} {
		if at := skip.FindStringIndex(text); at != nil {
			return text[at[1]:], true
		}
	}
	return text, false
}

// titleLines returns the first two lines that say something, without marks of Markdown and prompts before them.
func titleLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if len(line) > 4096 { // holds a title, however its words are spaced
			line = strings.ToValidUTF8(line[:4096], "")
		}
		line = strings.Join(strings.FieldsFunc(line, blank), " ")
		line = strings.TrimSpace(marks.ReplaceAllString(line, ""))
		if strings.IndexFunc(line, func(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.S) }) < 0 {
			continue
		}
		if len(lines) == 0 && saysNothing(line) {
			continue
		}
		if lines = append(lines, line); len(lines) == 2 {
			break
		}
	}
	return lines
}

func blank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// CutTitle cuts a line to the length of a title, between words.
func CutTitle(line string) string {
	if line = strings.TrimRight(line, ": "); utf8.RuneCountInString(line) <= titleRunes {
		return line
	}
	runes := []rune(line)[:titleRunes]
	cut := string(runes[:titleRunes-1])
	if at := strings.LastIndexByte(string(runes), ' '); at > len(cut)/2 {
		cut = cut[:min(at, len(cut))]
	}
	return strings.TrimRight(cut, " ,;:") + "…"
}
