package contextmgr

import (
	"context"
	"slices"
	"strings"

	"sessiond/internal/session"
)

// leadingSystem gives the system messages that the path begins with. An overlay hides them
// from the path that was read, so they are looked up at the root.
func (m *Manager) leadingSystem(ctx context.Context, r *reading) ([]session.Message, error) {
	if len(r.path) > 0 && r.path[0].ParentID == nil {
		var leading []session.Message
		for i := range r.path {
			switch m := &r.path[i]; {
			case !m.InContext:
			case m.Role == session.System:
				leading = append(leading, *m)
			default:
				r.path = r.path[i:]
				return leading, nil
			}
		}
		r.path = nil
		return leading, nil
	}
	if r.sess.HeadID == nil || r.overlay == nil && !r.cutOff {
		return nil, nil
	}
	first, last, err := m.store.Root(ctx, *r.sess.HeadID)
	if err != nil {
		return nil, err
	}
	var leading []session.Message
	for at := first; at.Seq <= min(last.Seq, first.Seq+mostBeforeTalk); at.Seq++ {
		msg, err := m.store.Message(ctx, at)
		if err != nil {
			return nil, err
		}
		if msg.InContext && msg.Role != session.System {
			break
		}
		if msg.InContext {
			leading = append(leading, msg)
		}
	}
	return leading, nil
}

// mostBeforeTalk bounds the search for system messages at the root, in messages: markers of
// a model or a title may stand between them.
const mostBeforeTalk = 64

// settleSystem joins the system text: what the path begins with, what the overlay hides of
// later system messages, the caller's. An overlay that knows the whole of it at its time stands
// for all messages up to then.
func (r *reading) settleSystem() {
	var stored []string
	if !r.told.Whole {
		for i := range r.leading {
			stored = append(stored, r.leading[i].Text())
		}
	}
	r.system = joinSystem(append(stored, r.told.Texts...), r.own)
	if r.told.Whole && r.overlay.Trigger == session.TriggerImport {
		r.path = slices.DeleteFunc(slices.Clone(r.path), func(m session.Message) bool {
			return m.Role == session.System && !m.CreatedAt.After(r.overlay.CreatedAt.Time)
		})
	}
}

// systemShare is the part of the threshold that hidden system messages may fill: a program may
// have said something in each turn.
const systemShare = 20

// hiddenSystem gives what an overlay that keeps the path from first on must tell of system
// messages: they are part of no summary. Of too many the newest stay.
func (r *reading) hiddenSystem(first int) *session.HiddenSystem {
	out := session.HiddenSystem{Texts: slices.Clone(r.told.Texts), Whole: r.told.Whole}
	for i := range r.path[:first] {
		if m := &r.path[i]; m.InContext && m.Role == session.System {
			out.Texts = append(out.Texts, m.Text())
		}
	}
	var sum int64
	for i, text := range slices.Backward(out.Texts) {
		if i == 0 && out.Whole {
			break
		}
		if sum += r.weigh.Text(text); sum > r.numbers.Threshold/systemShare {
			from := 0
			if out.Whole {
				from = 1
			}
			out.Texts = slices.Delete(out.Texts, from, i+1)
			break
		}
	}
	if len(out.Texts) == 0 {
		return nil
	}
	return &out
}

// joinSystem puts stored system texts before the caller's, each once.
func joinSystem(stored []string, own string) string {
	var all []string
	for _, text := range append(stored, own) {
		if text = trimEnd(text); text != "" {
			all = append(slices.DeleteFunc(all, func(s string) bool { return s == text }), text)
		}
	}
	return strings.Join(all, "\n\n")
}

func trimEnd(s string) string {
	for len(s) > 0 && s[len(s)-1] == '\n' {
		s = s[:len(s)-1]
	}
	return s
}
