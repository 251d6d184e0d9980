package export

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"sessiond/internal/contextmgr"
	"sessiond/internal/dialect"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// writeOpenAI writes a line {"messages": […]} for each session: its path as OpenAI's Chat
// Completions takes it, and as files of examples have it. Nothing is compacted. Calls that never
// got a result are answered with one that says so, and replies that failed lose their calls.
func writeOpenAI(ctx context.Context, out io.Writer, s *store.Store, ids []session.ID, opt *Options) (Report, error) {
	ids, err := named(ctx, s, ids)
	if err != nil {
		return Report{}, err
	}
	report := Report{Sessions: ids, LeftOut: map[string]int{}}
	for _, id := range ids {
		sess, msgs, _, err := path(ctx, s, id, opt)
		if err != nil {
			return report, err
		}
		said := make([]session.Message, 0, len(msgs))
		for i := range msgs {
			if msgs[i].InContext {
				said = append(said, msgs[i])
			} else {
				report.LeftOut["messages that no model was given"]++
			}
		}
		repaired := contextmgr.Repair(said, nil, true)
		request := dialect.Request{Model: sess.Model}
		for i := range repaired.Items {
			request.Messages = append(request.Messages, repaired.Items[i].Message)
		}
		sent, err := dialect.Send(dialect.OpenAIChat, request)
		if err != nil {
			return report, err
		}
		if n := len(sent.Losses) + len(repaired.Losses) + len(repaired.Dropped); n > 0 {
			report.LeftOut["pieces of messages"] += n
		}
		report.Messages += len(said)
		var line bytes.Buffer
		if err := json.Compact(&line, sent.Request); err != nil {
			return report, err
		}
		line.WriteByte('\n')
		if _, err := out.Write(line.Bytes()); err != nil {
			return report, err
		}
	}
	return report, nil
}
