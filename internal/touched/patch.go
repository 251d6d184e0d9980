package touched

import (
	"strings"

	"sessiond/internal/session"
)

// patch reads the files that a patch in Codex's form names: between *** Begin Patch and
// *** End Patch, lines *** Add File, *** Update File (which *** Move to may follow) and
// *** Delete File. Lines of content begin with +, - or a space and are never mistaken.
func (c *collector) patch(text, directory string) {
	_, text, ok := strings.Cut(text, "*** Begin Patch")
	if !ok {
		return
	}
	updated := "" // the file of the last *** Update File, until its fate is known
	flush := func(op session.FileOp) {
		c.add(updated, directory, op)
		updated = ""
	}
	for line := range strings.Lines(text) {
		verb, name, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		if !ok {
			if strings.HasPrefix(line, "*** End Patch") {
				break
			}
			continue
		}
		name = strings.TrimSpace(name)
		switch verb {
		case "*** Add File":
			flush(session.OpEdit)
			c.add(name, directory, session.OpWrite)
		case "*** Delete File":
			flush(session.OpEdit)
			c.add(name, directory, session.OpDelete)
		case "*** Update File":
			flush(session.OpEdit)
			updated = name
		case "*** Move to":
			if updated != "" {
				flush(session.OpDelete)
				c.add(name, directory, session.OpWrite)
			}
		}
	}
	flush(session.OpEdit)
}
