package usage

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// Sources of models that are no lists of other programs.
const (
	SourceBuiltIn = "built in"
	SourceOwn     = "your models.json"
)

// sinceRelease is the first day of a price when a list says neither the model's release nor a change.
const sinceRelease = "2000-01-01"

// List is a list of models that another program keeps, or that the user named, in the catalogue's form.
type List struct {
	Source string  `json:"source"`          // models.dev, opencode, pi, …
	Path   string  `json:"path,omitempty"`  // the file or address that it was read from
	Date   string  `json:"date"`            // YYYY-MM-DD: what it says is as of that day
	Stamp  string  `json:"stamp,omitempty"` // size and time of the file when it was read
	Count  int     `json:"count,omitempty"`
	Models []Entry `json:"models,omitempty"`
	Added  bool    `json:"added,omitempty"` // it only adds models: its windows are its program's own choice

	Skipped []string `json:"-"` // models whose numbers make no sense, with the reason
}

// mergeList adds the models that are not known, and the prices that changed since. A list that is older
// than what is known of a model says nothing about it.
func (c *Catalogue) mergeList(l *List) error {
	known := "" // the newest day of the lists before
	for _, before := range c.lists {
		known = max(known, before.Date)
	}
	for i := range l.Models {
		e := l.Models[i]
		id, isKnown := c.names[normalizeName(e.ID)]
		switch {
		case !isKnown:
			for j := range e.Prices {
				e.Prices[j].ValidFrom = cmp.Or(e.Prices[j].ValidFrom, sinceRelease)
			}
		case l.Added || l.Date <= known || !c.isMakers(&e, id):
			continue
		default:
			e = changedPrice(e, c.prices[id], l.Date)
			e.ID = id
		}
		if err := c.addEntry(&e, FromCatalogue, l.Source); err != nil {
			return err
		}
	}
	head := *l
	head.Models, head.Count = nil, max(l.Count, len(l.Models))
	c.lists = append(c.lists, head)
	return nil
}

// isMakers reports whether an entry is a known model's own, with the price of its maker and not of a gateway.
func (c *Catalogue) isMakers(e *Entry, id string) bool {
	return e.Provider == c.models[id].Provider && normalizeName(e.ID) == normalizeName(id)
}

// changedPrice returns an entry with the price of a list alone, dated, if it differs from the newest known one.
func changedPrice(e Entry, known []session.Price, day string) Entry {
	changed := Entry{ID: e.ID}
	if len(e.Prices) == 0 {
		return changed
	}
	now := e.Prices[len(e.Prices)-1]
	newest := ""
	for i := range known {
		newest = max(newest, known[i].ValidFrom)
	}
	if now.ValidFrom <= newest || now.ValidFrom > day { // the day of release, or one that never came
		now.ValidFrom = day
	}
	last := priceAt(known, newest, "", 0)
	if newest >= now.ValidFrom || last == nil {
		return changed
	}
	// A list that knows no price of the cache says nothing about it.
	keep := func(to **float64, nano, unstated int64) {
		if *to == nil && nano != unstated {
			*to = new(float64(nano) / 1000)
		}
	}
	keep(&now.CacheRead, last.CacheRead, last.Input)
	keep(&now.CacheWrite, last.CacheWrite, last.Input)
	keep(&now.CacheWrite1h, last.CacheWrite1h, last.CacheWrite)
	rows, err := now.parse(e.ID, FromCatalogue)
	if err != nil {
		return changed
	}
	isKnown := func(row session.Price) bool {
		row.ValidFrom = newest
		return slices.ContainsFunc(known, func(k session.Price) bool {
			k.Model, k.Origin = row.Model, row.Origin
			return k == row
		})
	}
	if !slices.ContainsFunc(rows, func(r session.Price) bool { return r.Mode == "" && !isKnown(r) }) {
		return changed
	}
	changed.Prices = []Rates{now}
	return changed
}

// ParseList reads a list of models in the form of models.dev, in one that pi keeps, or in the catalogue's own.
// day is when the list was made. Codes: Malformed, Invalid.
func ParseList(text []byte, source, day string) (*List, error) {
	var top map[string]jsontext.Value
	if err := json.Unmarshal(text, &top, jsontext.AllowDuplicateNames(true)); err != nil {
		if v := jsontext.Value(bytes.TrimSpace(text)); v.IsValid() {
			return nil, session.Errorf(session.Malformed, "it begins with %q, and a list of models is a JSON object",
				string(v[:1]))
		}
		return nil, session.Errorf(session.Malformed, "it is no JSON object: %w", err)
	}
	l := &List{Source: source, Date: day}
	if raw, ok := top["providers"]; ok && len(top["models"]) == 0 {
		var providers map[string]jsontext.Value
		if err := json.Unmarshal(raw, &providers); err != nil {
			return nil, session.Errorf(session.Malformed, "its \"providers\" are no JSON object: %w", err)
		}
		top = providers
	} else if _, ok := top["models"]; ok && top["id"] == nil {
		var f file
		if err := json.Unmarshal(text, &f, json.RejectUnknownMembers(true)); err != nil {
			return nil, session.Errorf(session.Malformed, "it does not have the form {\"models\":[…]}: %w", err)
		}
		for i := range f.Models {
			l.add(&f.Models[i])
		}
		l.Date = cmp.Or(f.Date, day)
		return l, l.check()
	}
	names := slices.Collect(maps.Keys(top))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(rankOf(a), rankOf(b)), strings.Compare(a, b))
	})
	taken := map[string]bool{}
	for _, provider := range names {
		for _, m := range listedModels(top[provider]) {
			e, why := m.entry(provider)
			switch {
			case e == nil && why != "":
				l.Skipped = append(l.Skipped, provider+"/"+m.ID+": "+why)
			case e != nil && !taken[normalizeName(e.ID)]:
				taken[normalizeName(e.ID)] = true
				l.add(e)
			}
		}
	}
	return l, l.check()
}

func rankOf(provider string) int {
	if at := slices.Index(makers, provider); at >= 0 {
		return at
	}
	if provider == "openrouter" {
		return len(makers)
	}
	return len(makers) + 1
}

// add checks an entry as the catalogue does, so that a list that was read can be merged.
func (l *List) add(e *Entry) {
	probe := *e
	probe.Prices = slices.Clone(e.Prices)
	for i := range probe.Prices {
		probe.Prices[i].ValidFrom = cmp.Or(probe.Prices[i].ValidFrom, sinceRelease)
	}
	c := &Catalogue{
		models: map[string]session.ModelInfo{}, prices: map[string][]session.Price{},
		names: map[string]string{},
	}
	if err := c.addEntry(&probe, FromCatalogue, l.Source); err != nil {
		l.Skipped = append(l.Skipped, err.Error())
		return
	}
	l.Models = append(l.Models, *e)
}

// check rejects a list without a model. Codes: Invalid.
func (l *List) check() error {
	if len(l.Models) == 0 && len(l.Skipped) > 0 {
		return session.Errorf(session.Invalid, "none of its models can be read: %s",
			strings.Join(l.Skipped[:min(len(l.Skipped), 3)], "; "))
	}
	if len(l.Models) == 0 {
		return session.Errorf(session.Invalid,
			"it holds no model: a list has the form of models.dev, "+
				"{\"provider\":{\"models\":{\"model\":{\"limit\":…,\"cost\":…}}}}")
	}
	slices.SortFunc(l.Models, func(a, b Entry) int { return strings.Compare(a.ID, b.ID) })
	l.Count = len(l.Models)
	return nil
}

// listed is a model as models.dev or pi describe it.
type listed struct {
	ID          string `json:"id"`
	Type        string `json:"type"` // pi: chat, image, classifier
	ReleaseDate string `json:"release_date"`
	LastUpdated string `json:"last_updated"`
	Modalities  struct {
		Input  []string `json:"input"`
		Output []string `json:"output"`
	} `json:"modalities"`
	Limit struct {
		Context float64 `json:"context"`
		Input   float64 `json:"input"`
		Output  float64 `json:"output"`
	} `json:"limit"`
	Cost         *listedCost `json:"cost"`
	Experimental struct {
		Modes map[string]struct {
			Cost *listedCost `json:"cost"`
		} `json:"modes"`
	} `json:"experimental"`

	Input         []string `json:"input"` // pi
	ContextWindow float64  `json:"contextWindow"`
	MaxTokens     float64  `json:"maxTokens"`
}

type listedCost struct {
	Input        *float64 `json:"input"`
	Output       *float64 `json:"output"`
	CacheRead    *float64 `json:"cache_read"`
	CacheWrite   *float64 `json:"cache_write"`
	CacheReadPi  *float64 `json:"cacheRead"`
	CacheWritePi *float64 `json:"cacheWrite"`
	Tiers        []struct {
		listedCost
		Above float64 `json:"inputTokensAbove"`
		Tier  struct {
			Type string  `json:"type"`
			Size float64 `json:"size"`
		} `json:"tier"`
	} `json:"tiers"`
}

// listedModels returns the models of a provider: an object by id or an array under "models", or pi's by kind of
// API. What is no model is left out.
func listedModels(raw []byte) []listed {
	var provider struct {
		Models jsontext.Value `json:"models"`
	}
	if json.Unmarshal(raw, &provider) != nil {
		return nil
	}
	var models []listed
	add := func(raw []byte, id string) {
		var m listed
		if err := json.Unmarshal(raw, &m); err != nil {
			m = listed{ID: id, Type: "unreadable"}
		}
		if m.ID = cmp.Or(m.ID, id); m.ID != "" {
			models = append(models, m)
		}
	}
	each := func(raw []byte) {
		var byID map[string]jsontext.Value
		var all []jsontext.Value
		switch {
		case json.Unmarshal(raw, &byID) == nil:
			for _, id := range slices.Sorted(maps.Keys(byID)) {
				add(byID[id], id[strings.LastIndexByte(id, ':')+1:])
			}
		case json.Unmarshal(raw, &all) == nil:
			for _, raw := range all {
				add(raw, "")
			}
		}
	}
	if provider.Models != nil {
		each(provider.Models)
		return models
	}
	var apis map[string]jsontext.Value
	if json.Unmarshal(raw, &apis) == nil {
		for _, api := range slices.Sorted(maps.Keys(apis)) {
			each(apis[api])
		}
	}
	return models
}

// entry converts a model; nil for one that does not chat, and with the reason for one that cannot be right.
func (m *listed) entry(provider string) (e *Entry, why string) {
	window := cmp.Or(m.Limit.Input, m.Limit.Context, m.ContextWindow)
	output := cmp.Or(m.Limit.Output, m.MaxTokens)
	speaks := len(m.Modalities.Output) == 0 || slices.Equal(m.Modalities.Output, []string{"text"})
	switch {
	case m.Type == "unreadable":
		return nil, "its fields have other types than those of models.dev"
	case m.Type != "" && m.Type != "chat" || !speaks || strings.Contains(m.ID, "embed"):
		return nil, ""
	case window < 0 || output < 0 || window > 1e9 || output > 1e9 || window != math.Trunc(window):
		return nil, "its limits are no numbers of tokens"
	case window < 1000:
		return nil, ""
	}
	e = &Entry{
		ID: m.ID, Provider: provider, Family: tokenizerOf(m.ID), Window: int64(window),
		MaxOutput:  int64(cmp.Or(output, UnknownMaxOutput)),
		Modalities: modalities(cmp.Or(strings.Join(m.Modalities.Input, " "), strings.Join(m.Input, " "))),
	}
	if m.Cost == nil || m.Cost.Input == nil || m.Cost.Output == nil || *m.Cost.Input == 0 && *m.Cost.Output == 0 {
		return e, "" // a plan or a trial is no price
	}
	price := Rates{rates: m.Cost.rates(m.ID)}
	if _, err := time.Parse(time.DateOnly, m.ReleaseDate); err == nil {
		price.ValidFrom = m.ReleaseDate
	}
	for _, t := range m.Cost.Tiers {
		if above := int64(cmp.Or(t.Above, t.Tier.Size)); above > 0 && cmp.Or(t.Tier.Type, "context") == "context" &&
			t.Input != nil && t.Output != nil {
			price.Tiers = append(price.Tiers, tier{above, t.rates(m.ID)})
		}
	}
	slices.SortFunc(price.Tiers, func(a, b tier) int { return cmp.Compare(a.Above, b.Above) })
	if fast := m.Experimental.Modes[ModeFast].Cost; fast != nil && fast.Input != nil && fast.Output != nil {
		rates := fast.rates(m.ID)
		price.Fast = &rates
	}
	e.Prices = []Rates{price}
	return e, ""
}

// rates converts dollars per million tokens to what whole nano-dollars can hold. A cache price of 0 beside a price of
// input is one that the list does not know. Anthropic charges twice the input for a write of an hour.
func (c *listedCost) rates(model string) rates {
	round := func(v *float64) *float64 {
		if v == nil {
			return nil
		}
		return new(math.Round(*v*1000) / 1000)
	}
	cache := func(v *float64) *float64 {
		if v = round(v); v == nil || *v == 0 && *c.Input > 0 {
			return nil
		}
		return v
	}
	r := rates{
		Input: round(c.Input), Output: round(c.Output),
		CacheRead: cache(cmp.Or(c.CacheRead, c.CacheReadPi)), CacheWrite: cache(cmp.Or(c.CacheWrite, c.CacheWritePi)),
	}
	if r.CacheWrite != nil && strings.Contains(model, "claude") {
		r.CacheWrite1h = round(new(2 * *c.Input))
	}
	return r
}

// tokenizerOf returns the family of tokenizers that a model's name tells.
func tokenizerOf(id string) string {
	name := normalizeName(id)
	for _, of := range []struct{ family, prefixes string }{
		{"claude", "claude"}, {"o200k", "gpt chatgpt codex o1 o3 o4"}, {"gemini", "gemini gemma"},
	} {
		for prefix := range strings.FieldsSeq(of.prefixes) {
			if strings.HasPrefix(name, prefix) {
				return of.family
			}
		}
	}
	return UnknownFamily
}

// modalities returns the kinds of input that the store names.
func modalities(said string) []string {
	kept := []string{"text"}
	for _, kind := range []struct{ said, kept string }{{"image", "image"}, {"audio", "audio"}, {"pdf", "file"}} {
		if strings.Contains(said, kind.said) {
			kept = append(kept, kind.kept)
		}
	}
	return kept
}

// renew adds the price of a list. What the newest known price does not say of the cache and the fast mode is added to
// it where the rest is the same.
func (e *Entry) renew(now *Entry, known []session.Price, day string) {
	if len(now.Prices) == 0 {
		return
	}
	listed := &now.Prices[len(now.Prices)-1]
	if n := len(e.Prices); n > 0 && *e.Prices[n-1].Input == *listed.Input && *e.Prices[n-1].Output == *listed.Output {
		last := &e.Prices[n-1]
		last.Fast = cmp.Or(last.Fast, listed.Fast)
		if last.CacheRead == nil {
			last.CacheRead = listed.CacheRead
			return
		}
	}
	e.Prices = append(e.Prices, changedPrice(*now, known, day).Prices...)
}

var dateEnding = pattern.New(`-20[0-9]{2}-?[01][0-9]-?[0-3][0-9]$`)

// withoutSnapshots drops the models whose name is another one's with a date, if they cost the same.
func withoutSnapshots(models []Entry) []Entry {
	newest := map[string]*Rates{}
	for i := range models {
		if n := len(models[i].Prices); n > 0 {
			newest[normalizeName(models[i].ID)] = &models[i].Prices[n-1]
		}
	}
	return slices.DeleteFunc(models, func(e Entry) bool {
		name := normalizeName(e.ID)
		base, own := newest[dateEnding.ReplaceAllString(name, "")], newest[name]
		return base != nil && own != nil && base != own && *base.Input == *own.Input && *base.Output == *own.Output
	})
}

// Stored is the file that keeps the lists which were read, in the catalogue's form.
type Stored struct {
	Form  int    `json:"form"` // storedForm
	Lists []List `json:"lists"`
}

// storedForm counts the changes of the file's form that older versions cannot read.
const storedForm = 1

// NoLists returns the file's content before a list was read.
func NoLists() *Stored { return &Stored{Form: storedForm} }

// ParseStored reads the file of lists; an empty one has none. Codes: Malformed.
func ParseStored(text []byte) (*Stored, error) {
	s := NoLists()
	if len(bytes.TrimSpace(text)) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, session.Errorf(session.Malformed, "it is damaged: %w", err)
	}
	if s.Form != storedForm {
		return nil, session.Errorf(session.Malformed, "it has form %d; this version of sessiond reads form %d", s.Form,
			storedForm)
	}
	return s, nil
}

// Text returns the file of lists.
func (s *Stored) Text() ([]byte, error) { return json.Marshal(s) }

// Put stores a list in the place of an earlier one of the same path, without the models that the built-in catalogue
// has just so. It returns how many models and prices the list adds to the built-in catalogue.
func (s *Stored) Put(l List) (models, prices int, err error) {
	c, err := Load(nil)
	if err != nil {
		return 0, 0, err
	}
	l.Count = len(l.Models)
	l.Models = slices.DeleteFunc(slices.Clone(l.Models), func(e Entry) bool {
		id, known := c.names[normalizeName(e.ID)]
		if !known {
			models++
			return false
		}
		if l.Added || l.Date <= c.lists[0].Date || !c.isMakers(&e, id) ||
			len(changedPrice(e, c.prices[id], l.Date).Prices) == 0 {
			return true
		}
		prices++
		return false
	})
	s.Lists = slices.DeleteFunc(s.Lists, func(known List) bool { return known.Path == l.Path })
	s.Lists = append(s.Lists, l)
	return models, prices, nil
}

// Renewed returns the built-in catalogue's text with what a list adds and changes: the next built-in one.
func Renewed(l *List) ([]byte, error) {
	var f file
	if err := json.Unmarshal([]byte(embedded), &f, json.RejectUnknownMembers(true)); err != nil {
		return nil, session.Errorf(session.Malformed, "the built-in catalogue: %w", err)
	}
	c, err := Load(nil)
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for i := range f.Models {
		at[f.Models[i].ID] = i
	}
	for _, e := range l.Models {
		id, known := c.names[normalizeName(e.ID)]
		switch {
		case !known && len(e.Prices) == 0:
		case !known:
			for j := range e.Prices {
				e.Prices[j].ValidFrom = cmp.Or(e.Prices[j].ValidFrom, f.Date, sinceRelease)
			}
			f.Models = append(f.Models, e)
		case c.isMakers(&e, id):
			f.Models[at[id]].renew(&e, c.prices[id], l.Date)
		}
	}
	f.Models = withoutSnapshots(f.Models)
	f.Source, f.Date = l.Source, l.Date
	var out bytes.Buffer
	out.WriteString("{\n  \"source\": " + string(session.JSONOf(f.Source)) + ", \"date\": " +
		string(session.JSONOf(f.Date)) + ",\n  \"models\": [\n")
	for i := range f.Models {
		line, err := json.Marshal(&f.Models[i])
		if err != nil {
			return nil, err
		}
		out.WriteString("    ")
		out.Write(line)
		if i < len(f.Models)-1 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteString("  ]\n}\n")
	return out.Bytes(), nil
}
