package contextmgr_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessiond/internal/dialect"
	"sessiond/internal/session"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/samples"
)

// recorded reads the lines of a program's history that a provider's form accepts.
func recorded(t *testing.T, path, form string, pick func(line []byte) json.RawMessage) []session.Message {
	t.Helper()
	data := testkit.Must(os.ReadFile(path))(t)
	var raw []json.RawMessage
	for line := range bytes.Lines(data) {
		if r := pick(line); r != nil {
			raw = append(raw, r)
		}
	}
	if all, err := dialect.Decode(form, raw); err == nil {
		return all.Messages
	}
	var log []session.Message
	for _, r := range raw {
		if one, err := dialect.Decode(form, []json.RawMessage{r}); err == nil {
			log = append(log, one.Messages...)
		}
	}
	return log
}

func claudeCode(line []byte) json.RawMessage {
	var l struct {
		Type    string
		Message json.RawMessage
	}
	if json.Unmarshal(line, &l) != nil || l.Type != "user" && l.Type != "assistant" {
		return nil
	}
	return l.Message
}

func codex(line []byte) json.RawMessage {
	var l struct {
		Type    string
		Payload json.RawMessage
	}
	if json.Unmarshal(line, &l) != nil || l.Type != "response_item" {
		return nil
	}
	return l.Payload
}

// Histories of Claude Code and Codex, in their providers' forms, give contexts that every provider
// accepts at each message, and that only grow at their end.
func TestContextsOfOtherProgramsHistories(t *testing.T) {
	for _, program := range []struct {
		name, form string
		pick       func([]byte) json.RawMessage
	}{{"claude-code", dialect.Anthropic, claudeCode}, {"codex", dialect.OpenAIResponses, codex}} {
		found := 0
		err := filepath.WalkDir(filepath.Join(samples.Dir(t), program.name), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".jsonl") {
				return err
			}
			log := recorded(t, path, program.form, program.pick)
			if len(log) == 0 {
				return nil
			}
			found++
			t.Run(program.name+"/"+filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				if most := 120; len(log) > most {
					log = log[:most]
				}
				if testing.Short() && len(log) > 20 {
					log = log[:20]
				}
				d := newDesk(t)
				d.liveEverywhere(log, false)
			})
			return nil
		})
		if err != nil || found < 5 {
			t.Errorf("%d histories of %s: %v", found, program.name, err)
		}
	}
}
