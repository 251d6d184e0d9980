package pi

import (
	"strconv"

	"sessiond/internal/history"
	"sessiond/internal/session"
)

// Files of version 4, which only the SDK's harness wrote, hold four kinds of lines beside
// the header: entries as in version 3; facts, which are names and labels; lanes, which move
// a named leaf; and records of the harness's own work. Only entries are on the tree. The
// others are kept beside it, as children of the entry before them on which nothing hangs.

const mainLane = "main"

// typeOf returns the kind of a line in the words of version 3.
func typeOf(o history.Object, version int) string {
	if version < 4 {
		return o.String("type")
	}
	switch o.String("kind") {
	case "entry":
		return o.String("type")
	case "fact":
		switch o.String("fact") {
		case "name":
			return lineInfo
		case "label":
			return lineLabel
		}
	case "lane":
		return lineLane
	case "record":
		return lineRecord
	}
	return "unknown" // no kind of any version
}

// harness reads a line of version 4.
func (s *survey) harness(o history.Object, raw []byte, at int64, line int) {
	kind := o.String("kind")
	if kind == "header" && o.String("id") == s.header.String("id") {
		s.in.Skip(skipHeader, 1)
		return
	}
	n := node{offset: at, size: int64(len(raw)), line: line, kind: entrySide, id: o.String("id"), target: o.String("targetId")}
	if kind == "entry" {
		n.kind, n.link = kindOfLine(o.String("type")), o.String("parentId")
	}
	if n.id == "" {
		n.key = "seq:" + strconv.FormatInt(count(o, "seq"), 10) + ":" + s.byContent("", raw)
	} else if !s.name(&n, raw) {
		s.in.Skip(history.SkipDuplicate, 1)
		return
	}
	i := s.next()
	s.add(n)
	switch {
	case kind == "entry" && o.String("lane") == mainLane:
		s.lane = i
	case kind == "lane" && o.String("lane") == mainLane:
		s.lane = -1
		if leaf, ok := s.find(o.String("leafId")); ok {
			s.lane = leaf
		}
	}
	s.notice(o, typeOf(o, 4))
}

// recorded adds the usage of a record, unless the entry that it was for tells it itself.
func (d *decoder) recorded(rest *taker, e *entry) {
	if rest.String("type") != lineUsage {
		return
	}
	purpose := session.PurposeOther
	switch rest.String("cause") {
	case "tool":
		purpose = session.PurposeTool
	case "hook", "adjustment":
	default:
		entryID := rest.String("entryId")
		if _, told := d.find(entryID); told || entryID == "" {
			return
		}
		purpose = map[string]session.Purpose{
			"assistant": session.PurposeChat, "deferred_fetch": session.PurposeChat,
			"compaction": session.PurposeSummary, "branch_summary": session.PurposeBranchSummary,
		}[rest.String("cause")]
		if purpose == "" {
			purpose = session.PurposeOther
		}
	}
	e.bill(rest.Get("usage"), purpose, "", "")
}
