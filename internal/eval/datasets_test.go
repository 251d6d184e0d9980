package eval_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

// chat is one talk of a dialogue, stored as a session.
type chat struct {
	dialogue string // its talks are searched together
	id       string
	at       time.Time
	said     []saying
}

type saying struct {
	id, who, text string
}

// question has the sayings, or else the talks, in which its answer stands.
type question struct {
	dialogue, text string
	evidence       []string // ids of sayings
	chats          []string // ids of talks
}

// dataset is a published set of dialogues with questions.
type dataset struct {
	name      string
	chats     []chat
	questions []question
	skipped   int // questions without evidence, such as those that cannot be answered
}

// readDatasets reads the files of LoCoMo, LongMemEval and REALTALK in a folder, as they are published.
func readDatasets(t testing.TB, dir string) (sets []dataset) {
	realtalk := dataset{name: "REALTALK"}
	files := testkit.Must(filepath.Glob(filepath.Join(dir, "*.json")))(t)
	for _, file := range slices.Sorted(slices.Values(files)) {
		raw := testkit.Must(os.ReadFile(file))(t)
		var set dataset
		var err error
		switch name := strings.ToLower(filepath.Base(file)); {
		case strings.Contains(name, "locomo"):
			set, err = readLoCoMo(raw)
		case strings.Contains(name, "longmemeval"):
			set, err = readLongMemEval(raw)
		case strings.HasPrefix(name, "chat_"):
			err = realtalk.addRealTalk(raw, strings.TrimSuffix(filepath.Base(file), ".json"))
		default:
			t.Logf("%s is none of locomo*.json, longmemeval*.json, Chat_*.json", file)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(set.chats) > 0 {
			sets = append(sets, set)
		}
	}
	if len(realtalk.chats) > 0 {
		sets = append(sets, realtalk)
	}
	return sets
}

var talkKey = regexp.MustCompile(`^session_(\d+)$`)

// turn is a saying in LoCoMo and REALTALK.
type turn struct {
	ID      string `json:"dia_id"`
	Speaker string `json:"speaker"`
	Text    string `json:"text"`
	Clean   string `json:"clean_text"`
	Caption string `json:"blip_caption"` // of a picture
}

// addDialogue adds the lists session_1, session_2 … of an object.
func (d *dataset) addDialogue(name string, fields map[string]jsontext.Value) error {
	numbers := map[int]string{}
	for key := range fields {
		if m := talkKey.FindStringSubmatch(key); m != nil {
			n, _ := strconv.Atoi(m[1])
			numbers[n] = key
		}
	}
	for _, n := range slices.Sorted(maps.Keys(numbers)) {
		var turns []turn
		if err := json.Unmarshal(fields[numbers[n]], &turns); err != nil {
			return fmt.Errorf("%s of %s: %w", numbers[n], name, err)
		}
		var when string
		_ = json.Unmarshal(fields[numbers[n]+"_date_time"], &when) // else the talks are a day apart
		c := chat{dialogue: name, id: fmt.Sprintf("%s/D%d", name, n), at: parseDate(when, n)}
		for _, t := range turns {
			text := t.Text
			if t.Clean != "" {
				text = t.Clean
			}
			if t.Caption != "" {
				text += "\n[" + t.Caption + "]"
			}
			if strings.TrimSpace(text) != "" {
				c.said = append(c.said, saying{name + "/" + sayingID(t.ID), t.Speaker, text})
			}
		}
		d.chats = append(d.chats, c)
	}
	return nil
}

var sayingName = regexp.MustCompile(`D:?(\d+):(\d+)`)

// sayingID writes D2:07 and D:2:7 as D2:7.
func sayingID(id string) string {
	m := sayingName.FindStringSubmatch(id)
	if m == nil {
		return id
	}
	talk, _ := strconv.Atoi(m[1])
	n, _ := strconv.Atoi(m[2])
	return fmt.Sprintf("D%d:%d", talk, n)
}

// addQuestion adds a question; its evidence names sayings, some entries several.
func (d *dataset) addQuestion(name, text string, evidence []string) {
	q := question{dialogue: name, text: text}
	for _, entry := range evidence {
		for _, id := range sayingName.FindAllString(entry, -1) {
			id = sayingID(id)
			talk, _, _ := strings.Cut(id, ":")
			q.evidence = append(q.evidence, name+"/"+id)
			if !slices.Contains(q.chats, name+"/"+talk) {
				q.chats = append(q.chats, name+"/"+talk)
			}
		}
	}
	if len(q.evidence) == 0 {
		d.skipped++
		return
	}
	d.questions = append(d.questions, q)
}

func readLoCoMo(raw []byte) (dataset, error) {
	d := dataset{name: "LoCoMo"}
	var samples []struct {
		ID           string                    `json:"sample_id"`
		Conversation map[string]jsontext.Value `json:"conversation"`
		QA           []struct {
			Question string   `json:"question"`
			Evidence []string `json:"evidence"`
			Category int      `json:"category"` // 5: it has no answer
		} `json:"qa"`
	}
	if err := json.Unmarshal(raw, &samples); err != nil {
		return d, err
	}
	for _, s := range samples {
		if err := d.addDialogue(s.ID, s.Conversation); err != nil {
			return d, err
		}
		for _, q := range s.QA {
			if q.Category == 5 {
				d.skipped++
				continue
			}
			d.addQuestion(s.ID, q.Question, q.Evidence)
		}
	}
	return d, nil
}

func (d *dataset) addRealTalk(raw []byte, name string) error {
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	if err := d.addDialogue(name, fields); err != nil {
		return err
	}
	var qa []struct {
		Question string         `json:"question"`
		Evidence jsontext.Value `json:"evidence"` // a list, or one text
	}
	if err := json.Unmarshal(fields["qa"], &qa); err != nil {
		return fmt.Errorf("qa: %w", err)
	}
	for _, q := range qa {
		d.addQuestion(name, q.Question, []string{string(q.Evidence)})
	}
	return nil
}

// readLongMemEval makes one dialogue of each question's haystack.
func readLongMemEval(raw []byte) (dataset, error) {
	d := dataset{name: "LongMemEval"}
	var rows []struct {
		ID       string   `json:"question_id"`
		Question string   `json:"question"`
		Answers  []string `json:"answer_session_ids"`
		IDs      []string `json:"haystack_session_ids"`
		Dates    []string `json:"haystack_dates"`
		Talks    [][]struct {
			Role    string `json:"role"`
			Content string `json:"content"`
			Answer  bool   `json:"has_answer"`
		} `json:"haystack_sessions"`
	}
	if err := json.Unmarshal(raw, &rows); err != nil {
		return d, err
	}
	for _, row := range rows {
		q := question{dialogue: row.ID, text: row.Question}
		for i, talk := range row.Talks {
			when, id := "", fmt.Sprintf("%s/%d", row.ID, i)
			if i < len(row.Dates) {
				when = row.Dates[i]
			}
			if i < len(row.IDs) && slices.Contains(row.Answers, row.IDs[i]) {
				q.chats = append(q.chats, id)
			}
			c := chat{dialogue: row.ID, id: id, at: parseDate(when, i)}
			for n, said := range talk {
				key := fmt.Sprintf("%s:%d", id, n)
				if said.Answer {
					q.evidence = append(q.evidence, key)
				}
				if strings.TrimSpace(said.Content) != "" {
					c.said = append(c.said, saying{key, said.Role, said.Content})
				}
			}
			d.chats = append(d.chats, c)
		}
		if strings.HasSuffix(row.ID, "_abs") || len(q.chats) == 0 { // it has no answer
			d.skipped++
			continue
		}
		d.questions = append(d.questions, q)
	}
	return d, nil
}

// parseDate reads the dates of the three sets; the n-th talk without one is on the n-th day.
func parseDate(s string, n int) time.Time {
	for _, layout := range []string{
		"3:04 pm on 2 January, 2006", "2006/01/02 (Mon) 15:04", "02.01.2006, 15:04:05",
		"2006-01-02 15:04:05",
	} {
		if at, err := time.Parse(layout, s); err == nil {
			return at
		}
	}
	return time.Date(2023, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, n)
}

// role is whose saying it is in a stored talk: the first to speak is the user.
func (c *chat) role(who string) session.Role {
	if who == "tool" {
		return session.Tool
	}
	if who == "assistant" || who != "user" && who != c.said[0].who {
		return session.Assistant
	}
	return session.User
}
