package touched

import (
	"strings"

	"sessiond/internal/session"
)

// addPatch adds the files of a patch in Codex's form: between *** Begin Patch and *** End Patch,
// lines *** Add File, *** Update File (which *** Move to may follow) and *** Delete File. Lines
// of content begin with +, - or a space, so they cannot look like these.
func (c *collector) addPatch(text, directory string) {
	_, text, ok := strings.Cut(text, "*** Begin Patch")
	if !ok {
		return
	}
	updated := "" // the file of the last *** Update File; a *** Move to may still follow
	addUpdated := func(op session.FileOp) {
		c.addFile(updated, directory, op)
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
			addUpdated(session.OpEdit)
			c.addFile(name, directory, session.OpWrite)
		case "*** Delete File":
			addUpdated(session.OpEdit)
			c.addFile(name, directory, session.OpDelete)
		case "*** Update File":
			addUpdated(session.OpEdit)
			updated = name
		case "*** Move to":
			if updated != "" {
				addUpdated(session.OpDelete)
				c.addFile(name, directory, session.OpWrite)
			}
		}
	}
	addUpdated(session.OpEdit)
}
