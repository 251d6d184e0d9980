package store

import "sessiond/internal/session"

// calls counts the batch's model calls, each once wherever it was seen before.
func (im *importer) calls() error {
	if len(im.batch.Calls) == 0 {
		return nil
	}
	known, err := im.knownCalls()
	if err != nil {
		return err
	}
	// Which calls are known was looked up.
	rows := bulk{tx: im.tx, table: "calls", columns: callInsertColumns, checked: im.opt.Storable != nil}
	var sum usageDelta
	for i := range im.batch.Calls {
		given := &im.batch.Calls[i]
		c := &given.Call
		c.SessionID = im.sess.ID
		if given.MessageKey != "" {
			id, err := im.mustFind("a call", given.MessageKey)
			if err != nil {
				return err
			}
			c.MessageID = &id
		}
		im.fillCall(c, &im.sess)
		if key := (callKey{c.Source, c.ExternalID}); c.ExternalID != "" {
			if known[key] {
				im.res.Duplicates += given.Records
				continue
			}
			known[key] = true
		}
		rows.values = addCallRow(rows.values, c)
		if err := rows.end(); err != nil {
			return err
		}
		im.usage.at(c.Day, c.Source, c.Model).addCall(c)
		sum.addCall(c)
		im.res.Calls++
	}
	if im.res.Calls == 0 {
		return nil
	}
	if err := rows.flush(); err != nil {
		return err
	}
	return im.countCalls(&im.sess, &sum)
}

// callKey is what makes it one call.
type callKey struct {
	source session.Source
	id     string
}

func (im *importer) knownCalls() (map[callKey]bool, error) {
	ids := map[session.Source][]string{}
	for i := range im.batch.Calls {
		if c := &im.batch.Calls[i].Call; c.ExternalID != "" {
			source := orElse(c.Source, im.sess.Source)
			ids[source] = append(ids[source], c.ExternalID)
		}
	}
	known := make(map[callKey]bool, len(im.batch.Calls))
	for source, list := range ids {
		if err := im.each(im.ctx, func(row scanner) error {
			var id string
			err := row.Scan(&id)
			known[callKey{source, id}] = true
			return err
		}, callsByKeys, string(source), string(session.JSONOf(list))); err != nil {
			return nil, err
		}
	}
	return known, nil
}

const callsByKeys = `
	SELECT c.external_id FROM json_each(?2) k
	CROSS JOIN calls c ON c.source = ?1 AND c.external_id = k.value AND c.external_id <> ''`
