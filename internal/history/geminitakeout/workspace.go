package geminitakeout

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// conversation stores a conversation of Google Workspace. Its turns are numbered; a number that comes again is an
// edited prompt, or another answer.
func (t *takeout) conversation(o jsonx.Object, raw jsontext.Value) {
	id := o.String("creation_time")
	if id != "" {
		id = "w:" + history.Plain(id)
	}
	part, id := t.in.RecordPart(id, raw, reads)
	if part == nil {
		return
	}
	w := &history.Whole{Records: 1, Title: o.String("title")}
	w.New.SourceID, w.New.Provider = id, "google"
	w.New.CreatedAt = history.KnownTime(o.Get("creation_time"))
	w.Notes = jsonx.Object{jsonx.MemberOf("usage", "not recorded"), jsonx.MemberOf("model", "not recorded")}
	keys, latest := history.Repeats{}, map[int64]string{} // keys of items, by number
	for _, turn := range jsonx.ReadObjects(o.Get("conversation_turns")) {
		item, number, ok := turnItem(turn)
		if !ok {
			part.Skip("turn without words", 1)
			continue
		}
		item.Key = keys.Key(item.Key)
		item.Parent, item.Root = latest[number-1], latest[number-1] == ""
		if latest[number] = item.Key; !item.Aside {
			w.Head = item.Key
		}
		w.Items = append(w.Items, item)
	}
	w.Items = history.Ordered(w.Items)
	part.AddWhole(w)
	t.in.FinishPart(part)
}

// turnItem makes the message of a turn. Its time is that of its last change.
func turnItem(o jsonx.Object) (item history.Item, number int64, ok bool) {
	user, model := o.Inner("user_turn"), o.Inner("system_turn")
	turn, role := user, session.User
	var parts []session.Part
	if user == nil {
		turn, role = model, session.Assistant
		for _, thought := range jsonx.ReadObjects(model.Get("model_thoughts")) {
			text := strings.TrimSpace(thought.String("headline") + "\n" + thought.String("description"))
			parts = append(parts, session.Part{Kind: session.PartReasoning, Text: text})
		}
		for _, piece := range jsonx.ReadObjects(model.Get("text")) {
			texts := []string{piece.String("data")}
			for _, card := range jsonx.ReadObjects(piece.Get("cards")) {
				texts = append(texts, card.String("content"))
			}
			if text := strings.TrimSpace(strings.Join(texts, "\n")); text != "" {
				parts = append(parts, session.TextPart(text))
			}
		}
		item.Extra = turn.Only("images")
	} else if text := user.String("prompt"); text != "" {
		parts = append(parts, session.TextPart(text))
	}
	number = history.Count(turn.Get("turn_index"))
	item.Key = fmt.Sprintf("%s %d", cmp.Or(string(role), "turn"), number)
	item.Message = history.Say(role, history.TimeOf(turn.Get("turn_last_modified")), parts...)
	item.Message.Provider = ""
	if role == session.Assistant {
		item.Message.Provider = "google"
	}
	item.Aside = turn.String("turn_deleted_time") != ""
	return item, number, len(parts) > 0
}
