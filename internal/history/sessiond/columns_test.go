package sessiond

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sessiond/internal/store"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/storetest"
)

// keysOf lists the names that a line's fields have.
func keysOf(line any) []string {
	var keys []string
	for _, field := range reflect.VisibleFields(reflect.TypeOf(line)) {
		if field.Type == reflect.TypeFor[*struct{}]() {
			continue // takes the place of a field that the line does not have
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		keys = append(keys, name)
	}
	return keys
}

// Every column of what a session is made of is in its lines, under another name there, or made
// anew. Whoever adds a column decides here what becomes of it.
func TestEveryColumnIsWrittenOrMadeAnew(t *testing.T) {
	s := testkit.Must(store.Open(context.Background(), storetest.New(t, filepath.Join(t.TempDir(), "sessions.db")),
		store.Options{}))(t)
	defer s.Close()
	for table, c := range map[string]struct {
		line    any
		renamed []string // a name in the file in the place of a row, or of its session's
		anew    []string
	}{
		"sessions": {store.SavedSession{}, []string{"head_id"}, []string{
			"last_seq", "compaction_id", "message_count", "said_count", "total_tokens", "context_tokens", "compaction_count",
			"input_tokens", "output_tokens",
			"cache_read_tokens", "cache_write_tokens", "cost_nanousd", "cost_usd", "unpriced_calls",
		}},
		"messages": {
			store.SavedMessage{},
			[]string{"session_id", "seq", "parent_id"},
			[]string{"jump", "depth", "path_tokens", "talk"},
		},
		"parts": {store.SavedPart{}, []string{"call_part_id", "id", "message_id", "idx"}, []string{"tokens"}},
		"blobs": {store.SavedBlob{}, []string{"data"}, []string{"size"}},
		"compactions": {
			store.SavedCompaction{},
			[]string{"session_id", "previous_id", "through_id", "first_kept_id"},
			nil,
		},
		"compaction_undos": {store.SavedUndo{}, []string{"session_id", "compaction_id"}, nil},
		"frozen":           {store.SavedFrozen{}, []string{"id", "session_id", "message_id", "compaction_id"}, nil},
		"blocks":           {store.Block{}, nil, nil},
		"contexts": {store.SavedContext{}, []string{
			"session_id", "head_id", "compaction_id", "system_hash",
			"initial_hash", "tools_hash",
		}, nil},
		"calls": {
			store.SavedCall{},
			[]string{"id", "session_id", "message_id", "compaction_id", "context_id"},
			[]string{"cost_usd"},
		},
		"marks":          {store.SavedMark{}, []string{"session_id", "message_id"}, nil},
		"states":         {store.SavedState{}, []string{"session_id"}, nil},
		"purged_sources": {store.PurgedSource{}, nil, nil},
		"purged_days":    {store.PurgedDay{}, nil, nil},
		"session_days":   {store.SessionDay{}, nil, nil},
		"calibrations":   {store.LearnedScale{}, nil, nil},
		"keys":           {store.KeyLabel{}, nil, nil},
		"flushes":        {store.SavedFlush{}, []string{"session_id", "compaction_id"}, nil},
	} {
		rows := testkit.Must(s.Reader().Queryx(`SELECT * FROM ` + table + ` LIMIT 0`))(t)
		columns := testkit.Must(rows.Columns())(t)
		testkit.Check(t, rows.Close())
		known := slices.Concat(keysOf(c.line), c.renamed, c.anew)
		for _, column := range columns {
			if !slices.Contains(known, column) && column != "rowid" { // of sessions on PostgreSQL
				t.Errorf("%s.%s is in no line: write it, or say that it is made anew", table, column)
			}
		}
	}
}
