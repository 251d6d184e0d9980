//go:build unix

package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/tools/real/scripted"
)

// turnsOf returns the exchanges of conversations that were answered.
func (t *trial) turnsOf(kinds ...scripted.Kind) (found []scripted.Exchange) {
	for _, x := range t.model.Log() {
		if slices.Contains(kinds, x.Kind) && x.Error == "" {
			found = append(found, x)
		}
	}
	return found
}

func (t *trial) number(query string, args ...any) (n int) {
	if err := t.db.QueryRow(query, args...).Scan(&n); err != nil {
		return -1
	}
	return n
}

// subAgent looks for the session of the sub-agent.
func (t *trial) subAgent() error {
	if t.program.noAgents != "" {
		return noted{noResult, t.program.noAgents}
	}
	for _, x := range t.turnsOf(scripted.Turn) {
		said := x.Text
		for _, c := range x.Calls {
			if result, is := c.Arguments["result"].(map[string]any); is { // a reply that is a call
				said, _ = result["response"].(string)
			}
		}
		if said == "" || !strings.Contains(x.Prompt, "(shell: printf pier)") {
			continue
		}
		n := t.number(`SELECT COUNT(DISTINCT c.id) FROM sessions c JOIN messages m ON m.session_id = c.id JOIN parts p ON p.message_id = m.id
			WHERE c.parent_kind = 'child' AND c.parent_id = ? AND INSTR(p.text || p.arguments, ?) > 0`,
			t.session, said)
		if n != 1 {
			return fmt.Errorf("the sub-agent's reply is in %d children of the session", n)
		}
		return nil
	}
	return errors.New("the model was asked by no sub-agent")
}

// summary looks for the overlay of the compaction.
func (t *trial) summary() error {
	for _, x := range t.turnsOf(scripted.Summary) {
		text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(x.Text, "")
		if t.number(`SELECT COUNT(*) FROM compactions WHERE INSTR(summary || COALESCE(replacement, ''), ?) > 0`, text) > 0 {
			return nil
		}
	}
	return errors.New("no overlay has the summary that the server made")
}

// messages compares the talk with the prompts and replies.
func (t *trial) messages() error {
	var faults []string
	once := func(what, role, text string) {
		n := t.number(`SELECT COUNT(*) FROM messages m JOIN parts p ON p.message_id = m.id JOIN sessions s ON s.id = m.session_id
			WHERE s.source = ? AND m.role = ? AND m.talk = 'said' AND TRIM(p.text, ' "' || CHAR(10)) = ?`, t.program.name, role, text)
		if n != 1 {
			faults = append(faults, fmt.Sprintf("%s %q is there %d times", what, text, n))
		}
	}
	for _, prompt := range t.prompts {
		once("the prompt", "user", prompt)
	}
	replies := map[string]bool{}
	for _, x := range t.turnsOf(scripted.Turn) {
		if x.Text != "" {
			if x.Text != scripted.Decision {
				once("the reply", "assistant", x.Text)
			}
			replies[x.Text] = true
		}
	}
	rows, err := t.db.Query(`SELECT p.text FROM messages m JOIN parts p ON p.message_id = m.id JOIN sessions s ON s.id = m.session_id
		WHERE s.source = ? AND m.role = 'assistant' AND m.talk = 'said' AND p.kind = 'text'`, t.program.name)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		if !replies[strings.TrimSpace(text)] {
			faults = append(faults, fmt.Sprintf("a reply that the server did not make: %.80q", text))
		}
	}
	return some(errors.Join(rows.Err()), faults)
}

// some joins an error with the first faults of a list.
func some(err error, faults []string) error {
	if len(faults) == 0 {
		return err
	}
	text := strings.Join(faults[:min(4, len(faults))], "; ")
	if len(faults) > 4 {
		text += fmt.Sprintf("; and %d more", len(faults)-4)
	}
	return errors.Join(err, errors.New(text))
}

// calls looks for each call that the server made, and its result.
func (t *trial) calls() error {
	var faults []string
	made := 0
	for _, x := range t.turnsOf(scripted.Turn) {
		for _, c := range x.Calls {
			made++
			given := c.Input
			if given == "" {
				given = canonical(c.Arguments)
			}
			n, answered := t.callsLike(c, given)
			if n != 1 || answered != 1 {
				faults = append(faults, fmt.Sprintf("%s (%s) is there %d times, with %d results", c.Name, c.ID, n, answered))
			}
		}
	}
	stored := t.number(`SELECT COUNT(*) FROM parts p JOIN messages m ON m.id = p.message_id JOIN sessions s ON s.id = m.session_id
		WHERE s.source = ? AND p.kind = 'tool_call'`, t.program.name)
	if stored != made {
		faults = append(faults, fmt.Sprintf("%d calls are stored, and %d were made", stored, made))
	}
	return some(nil, faults)
}

// callsLike counts the calls with the id of a call, or its arguments where the program makes ids of its own.
func (t *trial) callsLike(c scripted.Call, given string) (n, answered int) {
	rows, err := t.db.Query(`SELECT p.call_id, p.arguments, p.text,
			(SELECT COUNT(*) FROM parts r WHERE r.call_part_id = p.id)
		FROM parts p JOIN messages m ON m.id = p.message_id JOIN sessions s ON s.id = m.session_id
		WHERE s.source = ? AND p.kind = 'tool_call'`, t.program.name)
	if err != nil {
		return -1, -1
	}
	defer rows.Close()
	for rows.Next() {
		var id, arguments, text string
		var results int
		if rows.Scan(&id, &arguments, &text, &results) != nil {
			return -1, -1
		}
		if id == c.ID || canonical(jsontext.Value(arguments)) == given {
			n, answered = n+1, answered+results
		}
	}
	return n, answered
}

func canonical(v any) string {
	b, err := json.Marshal(v)
	value := jsontext.Value(b)
	if err != nil || value.Canonicalize() != nil {
		return fmt.Sprint(v)
	}
	return string(value)
}

type tokens struct{ input, read, write, output int64 }

// ledger returns the tokens of each call that the import counts, their cost, and what they cost at the prices here.
func (t *trial) ledger() (rows []tokens, cost, want float64, err error) {
	found, err := t.db.Query(`SELECT model, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens,
		COALESCE(cost_usd, -1000) FROM calls WHERE source = ?`, t.program.name)
	if err != nil {
		return nil, 0, 0, err
	}
	defer found.Close()
	for found.Next() {
		var u tokens
		var model string
		var dollars float64
		if err := found.Scan(&model, &u.input, &u.read, &u.write, &u.output, &dollars); err != nil {
			return nil, 0, 0, err
		}
		p, known := prices[model]
		if !known {
			return nil, 0, 0, fmt.Errorf("a call of %q, whose price is not among those of this command", model)
		}
		want += (float64(u.input)*p.input + float64(u.read)*p.read + float64(u.write)*p.write +
			float64(u.output)*p.output) / 1e6
		rows, cost = append(rows, u), cost+dollars
	}
	return rows, cost, want, found.Err()
}

// usage compares the ledger with what the server reported. A request may be missing if the program's files do not have
// its numbers.
func (t *trial) usage() error {
	ledger, _, _, err := t.ledger()
	if err != nil {
		return err
	}
	var faults []string
	missing := map[scripted.Kind]int{}
	recorded := t.recorded()
	for _, x := range t.turnsOf(scripted.Turn, scripted.Summary, scripted.Aside) {
		u := tokens{x.Usage.Input, x.Usage.CacheRead, x.Usage.CacheWrite, x.Usage.Output}
		at := slices.Index(ledger, u)
		switch {
		case at >= 0:
			ledger = slices.Delete(ledger, at, at+1)
		case x.Kind == scripted.Turn || recorded(u):
			faults = append(faults, fmt.Sprintf("request %d (%s, %+v) is not in the ledger", x.Number, x.Kind, u))
		default:
			missing[x.Kind]++
		}
	}
	for _, u := range ledger {
		faults = append(faults, fmt.Sprintf("the ledger has %+v, which the server did not report", u))
	}
	if len(faults) == 0 && len(missing) > 0 {
		return noted{rightResult, fmt.Sprintf("the program does not record the usage of %d compactions and %d other requests",
			missing[scripted.Summary], missing[scripted.Aside])}
	}
	return some(nil, faults)
}

// recorded returns a function that says whether the program's files have a usage.
func (t *trial) recorded() func(tokens) bool {
	var all strings.Builder
	for name, text := range t.homeFiles() {
		if !strings.HasPrefix(name, "proj") && text != "folder" {
			all.WriteString(text)
		}
	}
	return func(u tokens) bool {
		return regexp.MustCompile(fmt.Sprintf(`\D%d\D`, u.output)).MatchString(all.String()) &&
			regexp.MustCompile(fmt.Sprintf(`\D(%d|%d)\D`, u.input, u.input+u.read)).MatchString(all.String())
	}
}

// cost compares the sum of the ledger with the price of its tokens.
func (t *trial) cost() error {
	_, cost, want, err := t.ledger()
	if err != nil {
		return err
	}
	if math.Abs(cost-want) > 1e-6 {
		return fmt.Errorf("the ledger says $%.6f, and its tokens cost $%.6f", cost, want)
	}
	return nil
}

// unknown counts the rows of kinds that sessiond does not know.
func (t *trial) unknown() error {
	const size = `LENGTH(COALESCE(m.extra, '')) + (SELECT COALESCE(SUM(LENGTH(p.text) + LENGTH(p.arguments)), 0)
			FROM parts p WHERE p.message_id = m.id)`
	rows, err := t.db.Query(`SELECT COALESCE(json_extract(m.extra, '$.line.type'), json_extract(m.extra, '$.type'),
				(SELECT p.text ->> '$.type' FROM parts p WHERE p.message_id = m.id AND json_valid(p.text)), m.external_id),
			COALESCE(json_extract(m.extra, '$.line.subtype'), json_extract(m.extra, '$.line.payload.type'), ''),
			COUNT(*), SUM(`+size+`)
		FROM messages m JOIN sessions s ON s.id = m.session_id WHERE s.source = ? AND m.kind = 'unknown' GROUP BY 1, 2 ORDER BY 4 DESC`,
		t.program.name)
	if err != nil {
		return err
	}
	defer rows.Close()
	var kinds []string
	bytes := 0
	for rows.Next() {
		var kind, more string
		var n, size int
		if err := rows.Scan(&kind, &more, &n, &size); err != nil {
			return err
		}
		bytes += size
		kinds = append(kinds, fmt.Sprintf("%d × %s %d B", n, strings.TrimSuffix(kind+"/"+more, "/"), size))
	}
	total := t.number(`SELECT SUM(`+size+`)
		FROM messages m JOIN sessions s ON s.id = m.session_id WHERE s.source = ?`, t.program.name)
	if bytes == 0 {
		return rows.Err()
	}
	share := 100 * float64(bytes) / float64(max(1, total))
	note := fmt.Sprintf("%.2f %% of %d bytes: %s", share, total, strings.Join(kinds, ", "))
	if bytes*100 > total {
		return errors.New(note)
	}
	return noted{rightResult, note}
}
