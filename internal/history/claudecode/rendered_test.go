package claudecode_test

import (
	"path/filepath"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit/samples"
)

// attached is an attachment of a version that writes what it sent for it.
func attached(uuid, parent, attachment, rendered string) string {
	return `{"parentUuid":` + link(parent) + `,"isSidechain":false,"sessionId":"` + id +
		`","version":"2.1.332","type":"attachment","attachment":` + attachment + `,` + rendered + `"uuid":"` + uuid +
		`","timestamp":"2026-02-08T05:00:00.000Z"}`
}

// The context is what the program sent for its attachments, in the role that it sent them in, and
// not the bare texts that these hold. What nothing was sent for is not in it.
func TestRenderedRowsAreTheContext(t *testing.T) {
	h := newHouse(t)
	h.Import(h.Write(id+".jsonl",
		user("1", "", "read it"),
		attached("2", "1", `{"type":"file","filename":"/a.txt","content":{"type":"text","file":{"content":"alpha"}}}`,
			`"rendered":[{"content":"<system-reminder>\nCalled Read\n</system-reminder>"},{"content":[{"type":"text","text":"<system-reminder>\nalpha\n</system-reminder>"}]}],"renderedRole":"user",`),
		attached("3", "2", `{"type":"skill_listing","content":"- draw"}`, `"rendered":[{"content":"<system-reminder>\n- draw\n</system-reminder>"}],"renderedRole":"system",`),
		attached("4", "3", `{"type":"novel_kind","x":1}`, `"rendered":[{"content":"<system-reminder>\nnovel\n</system-reminder>"}],"renderedRole":"system",`),
		attached("5", "4", `{"type":"date_change","content":"never sent"}`, `"rendered":[],`),
		attached("6", "5", `{"type":"prompt_snapshot","systemPrompt":["x"]}`, ``),
		attached("7", "6", `{"type":"queued_command","prompt":"also b","commandMode":"prompt"}`, `"rendered":[{"content":"also b"}],"renderedRole":"user",`),
		attached("8", "7", `{"type":"nested_memory","content":"of an older version"}`, ``),
		answer("9", "8", "m1", "done"),
	))
	s := h.Session(id)
	h.BeginsWith(s.ID, []string{
		"user: read it", "user: <system-reminder>\nCalled Read\n</system-reminder> <system-reminder>\nalpha",
		"system: <system-reminder>\n- draw",
		"system: <system-reminder>\nnovel", "user: also b", "user: of an older version", "assistant: done",
	})
	for _, m := range h.Path(s) {
		if queued := m.ExternalID == "7"; m.Role != session.Assistant && m.ExternalID != "1" &&
			queued != (m.Origin == session.Person) {
			t.Errorf("%s is of %s", m.ExternalID, m.Origin)
		}
	}
	h.Examine()
}

// Rows that version 2.1.332 writes beside the talk are known, and each is kept, also one that says the same again.
func TestRecordsOfTheProgramAreKnownAndKept(t *testing.T) {
	h := newHouse(t)
	own := func(kind, fields string) string {
		return `{"type":"` + kind + `","sessionId":"` + id + `",` + fields + `}`
	}
	h.Import(h.Write(id+".jsonl",
		user("1", "", "read it"),
		attached("2", "1", `{"type":"session_context","context":{}}`, ``),
		attached("3", "2", `{"type":"prompt_snapshot","systemPrompt":["x"]}`, ``),
		attached("4", "3", `{"type":"deferred_tools_record","tools":["x"]}`, ``),
		own("api-request-shape", `"shapeHash":"a1","shape":{"tools":[]}`),
		own("api-request-blob", `"hash":"b1","message":{"role":"user","content":"read it"}`),
		own("api-request", `"id":"r1","shapeHash":"a1","thread":"main","tail":["b1"]`),
		own("tools-used", `"tools":["Bash"]`),
		own("tools-used", `"tools":["Bash"]`),
		answer("5", "4", "m1", "done"),
		costState(1, 1, 0),
		own("novel-state", `"x":1`),
	))
	rows := map[session.Kind]int{}
	for _, m := range h.Path(h.Session(id)) {
		rows[m.Kind]++
	}
	if rows[session.KindUnknown] != 1 || rows[session.KindCustom] != 9 || rows[session.KindMessage] != 2 {
		t.Errorf("the rows are of the kinds %v", rows)
	}
	h.Examine()
}

// A real transcript of 2.1.332 after its /compact: the summary, the reply that the program kept, and
// what it sent since, row by row.
func TestContextOfARealTranscriptIsWhatWasSent(t *testing.T) {
	h := newHouse(t)
	h.Import(filepath.Join(samples.Case(t, "49-claude-code-2.1.332-real"), "projects"))
	reminder := "system: <system-reminder>\n"
	h.BeginsWith(h.Session("cbc5c75e-a6ae-4676-a740-1c7ba0674bac").ID, []string{
		"user: <conversation_summary>", "assistant: <reasoning> Done: the answer is forty-two-8.",
		"user: <local-command-caveat>", "user: <command-name>/compact",
		"user: <local-command-stdout>Compacted", "user: <system-reminder>\nCalled the Read tool",
		reminder + "The following deferred tools", reminder + "Available agent types",
		reminder + "The following skills", reminder + "# Environment",
		reminder + "You are powered by the model named Opus 5.5", "user: and what is the answer?",
		reminder + "You are powered by the model named Sonnet 5", reminder + "<total_tokens>",
		"user: <system-reminder>\nAs you answer", reminder + "Today's date", "user: <system-reminder>\nAttribution",
		"assistant: <reasoning> Done: the answer is forty-two-11.",
	})
	h.Examine()
}
