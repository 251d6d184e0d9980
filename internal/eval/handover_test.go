package eval_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/summarize/digest"
	"sessiond/internal/testkit"
	"sessiond/internal/testkit/effort"
	"sessiond/internal/testkit/samples"
	"sessiond/internal/tokens"
)

// handedTalk is a real conversation, and the questions that a program must be able to answer that goes on with it.
type handedTalk struct {
	half, source, file string
	questions          []handedQuestion
}

type handedQuestion struct {
	kind, text string
	answers    [][]string // each of words that stand close to each other
}

// near is how far apart the words of an answer may begin, in bytes.
const near = 400

// in reports whether one of the texts answers the question.
func (q *handedQuestion) in(texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return slices.ContainsFunc(q.answers, func(words []string) bool { return standClose(text, words) })
	})
}

// standClose reports whether all words stand around a place where the first one does.
func standClose(text string, words []string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], words[0])
		if at < 0 {
			return false
		}
		at += from
		around := text[max(0, at-near):min(len(text), at+near)]
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(around, w) }) {
			return true
		}
		from = at + 1
	}
}

// handedTalks reads the questions of testdata/handover.txt.
func handedTalks(t testing.TB) (talks []handedTalk) {
	for line := range strings.Lines(string(testkit.Must(os.ReadFile("testdata/handover.txt"))(t))) {
		line = strings.TrimSpace(line)
		if head, is := strings.CutPrefix(line, "= "); is {
			f := strings.Fields(head)
			talks = append(talks, handedTalk{half: f[0], source: f[1], file: f[2]})
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		kind, rest, _ := strings.Cut(line, ": ")
		text, spellings, ok := strings.Cut(rest, " | ")
		if !ok {
			t.Fatalf("no answer in %q", line)
		}
		q := handedQuestion{kind: kind, text: text}
		for answer := range strings.SplitSeq(spellings, " / ") {
			q.answers = append(q.answers, strings.Split(answer, " + "))
		}
		last := &talks[len(talks)-1]
		last.questions = append(last.questions, q)
	}
	return talks
}

// Ways to go on with a conversation in another program, as columns of the table.
const (
	handedDefault = iota // `sessiond to`, for a model that the catalogue does not know
	handedSmall          // for a model with a window of 32,000 tokens
	bareDigest           // sessiond's summary of all messages, and nothing else
	ownSummary           // the newest summary that the first program made, and nothing else
	handedWays
)

// Ten questions each about ten real conversations are answered from what `sessiond to` writes, by the built program.
// Beside it is what a bare summary answers.
func TestHandoverAnswersQuestions(t *testing.T) {
	effort.NotShort(t, "it builds sessiond and imports ten conversations")
	dir := samples.Dir(t)
	binary := filepath.Join(t.TempDir(), "sessiond")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/sessiond").
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fmt.Print("\n| half | conversation | messages | handed over | window 32,000 | digest alone | own summary alone |\n" +
		"|---|---|---|---|---|---|---|\n")
	sums := map[string]*[handedWays]int{"tune": {}, "held": {}}
	asked := map[string]int{}
	for _, talk := range handedTalks(t) {
		t.Run(talk.file, func(t *testing.T) {
			texts, messages := handedTexts(t, binary, &talk, filepath.Join(dir, talk.file))
			var right [handedWays]int
			for _, q := range talk.questions {
				for way, all := range texts {
					if q.in(all) {
						right[way]++
					} else if way <= handedSmall && (*lost || talk.half == "tune") {
						t.Logf("way %d does not answer: %s: %s", way, q.kind, q.text)
					}
				}
			}
			asked[talk.half] += len(talk.questions)
			fmt.Printf("| %s | %s %s | %d |", talk.half, talk.source, strings.TrimSuffix(filepath.Base(talk.file), ".jsonl"),
				messages)
			for way, n := range right {
				sums[talk.half][way] += n
				if way == ownSummary && len(texts[way]) == 0 {
					fmt.Print(" – |")
					continue
				}
				fmt.Printf(" %d |", n)
			}
			fmt.Println()
			if len(talk.questions) != 10 || right[handedDefault] < 9 {
				t.Errorf("%d of %d questions are answered, want 9 of 10", right[handedDefault], len(talk.questions))
			}
		})
	}
	for _, half := range []string{"tune", "held"} {
		fmt.Printf("| %s | all %d | |", half, asked[half])
		for _, n := range sums[half] {
			fmt.Printf(" %d |", n)
		}
		fmt.Println()
	}
}

// handedTexts imports a conversation and returns the texts of each way, in lower case, a text a message.
func handedTexts(t *testing.T, binary string, talk *handedTalk, path string,
) (texts [handedWays][]string, messages int64) {
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	testkit.Check(t, os.Mkdir(bin, 0o755))
	stub := "codex"
	if runtime.GOOS == "windows" {
		stub += ".exe"
	}
	testkit.Check(t, os.WriteFile(filepath.Join(bin, stub), []byte("#!/bin/sh\n"), 0o755))
	config, db := filepath.Join(home, "config.yaml"), filepath.Join(home, "sessions.db")
	testkit.Check(t, os.WriteFile(config, nil, 0o600))
	testkit.Check(t, os.WriteFile(filepath.Join(home, "models.json"),
		[]byte(`{"models":[{"id":"small","window":32000}]}`), 0o600))
	run := func(args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), binary, append(args, "--config", config, "--db", db)...)
		cmd.Dir = home
		cmd.Env = []string{"HOME=" + home, "PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}
		out, err := cmd.Output()
		if err != nil {
			var said []byte
			if exit, is := err.(*exec.ExitError); is { //nolint:errorlint // Output returns it as it is
				said = exit.Stderr
			}
			t.Fatalf("sessiond %s: %v\n%s", strings.Join(args, " "), err, said)
		}
		return out
	}
	run("import", talk.source, path)
	id := session.ID(strings.TrimSpace(strings.TrimPrefix(string(run("query", "--csv",
		"SELECT id FROM sessions ORDER BY message_count DESC LIMIT 1")), "id\n")))
	for way, model := range []string{handedDefault: "", handedSmall: "small"} {
		args := []string{"to", "codex", string(id), "--here", "--json"}
		if model != "" {
			args = append(args, "--model", model)
		}
		var told struct{ File string }
		testkit.Check(t, json.Unmarshal(run(args...), &told, json.MatchCaseInsensitiveNames(true)))
		texts[way] = requestOfCodex(t, told.File)
	}
	s := testkit.Must(store.Open(t.Context(), db, store.Options{ReadOnly: true}))(t)
	defer s.Close() //nolint:errcheck // only read
	sess := testkit.Must(s.Session(t.Context(), id))(t)
	all := testkit.Must(s.Path(t.Context(), *sess.HeadID, 0))(t)
	summary := testkit.Must(digest.NewExtractive(tokens.Reference().Text).Summarize(t.Context(),
		session.SummaryRequest{Messages: all, MaxTokens: digest.DefaultMaxTokens}))(t)
	texts[bareDigest] = []string{plainOf(summary.Text)}
	for _, c := range testkit.Must(s.Compactions(t.Context(), id))(t) {
		if c.Trigger == session.TriggerImport && c.Summary != "" && c.SessionID == id {
			texts[ownSummary] = []string{plainOf(c.Summary)}
		}
	}
	return texts, sess.MessageCount
}

// requestOfCodex returns the texts of the items that Codex sends of a rollout.
func requestOfCodex(t *testing.T, path string) (texts []string) {
	for line := range strings.Lines(string(testkit.Must(os.ReadFile(path))(t))) {
		var row struct {
			Type    string         `json:"type"`
			Payload jsontext.Value `json:"payload"`
		}
		testkit.Check(t, json.Unmarshal([]byte(line), &row))
		if row.Type == "response_item" {
			texts = append(texts, plainOf(strings.Join(stringsIn(row.Payload), "\n")))
		}
	}
	return texts
}

// stringsIn returns all texts of a JSON value.
func stringsIn(value jsontext.Value) (found []string) {
	d := jsontext.NewDecoder(strings.NewReader(string(value)))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return found // the end
		}
		if token.Kind() == '"' {
			found = append(found, token.String())
		}
	}
}

// plainOf returns a text in lower case, with single spaces.
func plainOf(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }
