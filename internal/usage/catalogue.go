package usage

import (
	"bytes"
	"cmp"
	_ "embed" // catalogue.json
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"sessiond/internal/session"
)

//go:embed catalogue.json
var embedded string

// Assumptions about a model that the catalogue does not know.
const (
	UnknownWindow    = 128_000
	UnknownMaxOutput = 8_192
	UnknownFamily    = "default"
)

// Origins of a model or a price.
const (
	FromCatalogue = "catalogue"
	FromOverride  = "override"
	Reported      = "reported" // of a cost: the provider's own
)

// Catalogue is read-only once loaded and safe for concurrent use.
type Catalogue struct {
	models   map[string]session.ModelInfo // by id
	prices   map[string][]session.Price   // by id, oldest first, those of a day by mode and length of prompt
	names    map[string]string            // normalized name of an id or an alias → id
	families map[string]string            // name without versions → the id of its newest model
	lists    []List                       // that were merged, without their models
}

// file is the form of catalogue.json and of a user's overrides.
type file struct {
	Source string  `json:"source,omitempty"` // the list that renewed it last
	Date   string  `json:"date,omitempty"`   // of that list, YYYY-MM-DD
	Models []Entry `json:"models"`
}

// Entry is one model. Window is the limit of a request: the context window, or the provider's lower
// limit for the input.
type Entry struct {
	ID         string   `json:"id"`
	Aliases    []string `json:"aliases,omitempty"`
	Provider   string   `json:"provider,omitempty"`
	Family     string   `json:"family,omitempty"`
	Window     int64    `json:"window,omitempty"`
	MaxOutput  int64    `json:"max_output,omitempty"`
	Modalities []string `json:"modalities,omitempty"`
	Prices     []Rates  `json:"prices,omitempty"`
}

// Rates are US dollars per million tokens from a day on. Tiers are those of long prompts, Fast those of
// the provider's fast mode, at any length of prompt.
type Rates struct {
	ValidFrom string `json:"valid_from,omitempty"`
	rates
	Tiers []tier `json:"tiers,omitempty"`
	Fast  *rates `json:"fast,omitempty"`
}

// tier is the price of a whole request whose prompt, with what is read from and written to the cache,
// has more than Above tokens.
type tier struct {
	Above int64 `json:"above"`
	rates
}

// rates are US dollars per million tokens. A missing cache price equals that of input, and a missing
// one of an hour that of five minutes.
type rates struct {
	Input        *float64 `json:"input,omitempty"`
	CacheRead    *float64 `json:"cache_read,omitempty"`
	CacheWrite   *float64 `json:"cache_write,omitempty"`
	CacheWrite1h *float64 `json:"cache_write_1h,omitempty"`
	Output       *float64 `json:"output,omitempty"`
}

// Load reads the embedded catalogue, merges lists of other programs over it, the newest last, and then
// overrides, a JSON text of the catalogue's form; empty for none. A model of the same id in the overrides
// replaces the known one (missing fields keep their value); its prices add to the known ones and replace
// those of the same day. Codes: Malformed, Invalid.
func Load(overrides []byte, lists ...List) (*Catalogue, error) {
	c := &Catalogue{
		models: map[string]session.ModelInfo{}, prices: map[string][]session.Price{},
		names: map[string]string{}, families: map[string]string{},
	}
	if err := c.merge([]byte(embedded), FromCatalogue); err != nil {
		return nil, err
	}
	slices.SortStableFunc(lists, func(a, b List) int { return strings.Compare(a.Date, b.Date) })
	for i := range lists {
		if err := c.mergeList(&lists[i]); err != nil {
			return nil, err
		}
	}
	if len(bytes.TrimSpace(overrides)) > 0 {
		if err := c.merge(overrides, FromOverride); err != nil {
			return nil, err
		}
	}
	c.findFamilies()
	return c, nil
}

func (c *Catalogue) merge(text []byte, origin string) error {
	var f file
	if err := json.Unmarshal(text, &f, json.RejectUnknownMembers(true)); err != nil {
		return session.Errorf(session.Malformed, "the model catalogue (%s) does not have the form {\"models\":[…]}: %w",
			origin, err)
	}
	source := SourceOwn
	if origin == FromCatalogue {
		source = SourceBuiltIn
	}
	c.lists = append(c.lists, List{Source: source, Date: f.Date, Count: len(f.Models)})
	for i := range f.Models {
		if err := c.addEntry(&f.Models[i], origin, source); err != nil {
			return err
		}
	}
	return nil
}

func (c *Catalogue) addEntry(e *Entry, origin, source string) error {
	if e.ID == "" {
		return session.Errorf(session.Invalid, "a model in the catalogue (%s) has no id", origin)
	}
	if e.Window < 0 || e.MaxOutput < 0 {
		return session.Errorf(session.Invalid, "model %s: window and max_output are tokens and cannot be negative", e.ID)
	}
	info, known := c.models[e.ID]
	if !known {
		info = unknownModel(e.ID)
	}
	info.Origin, info.Source = origin, source
	info.Provider, info.Family = cmp.Or(e.Provider, info.Provider), cmp.Or(e.Family, info.Family)
	info.Window, info.MaxOutput = cmp.Or(e.Window, info.Window), cmp.Or(e.MaxOutput, info.MaxOutput)
	if len(e.Modalities) > 0 {
		info.Modalities = e.Modalities
	}
	c.models[e.ID] = info
	for _, name := range append([]string{e.ID}, e.Aliases...) {
		c.names[normalizeName(name)] = e.ID
	}
	for i := range e.Prices {
		rows, err := e.Prices[i].parse(e.ID, origin)
		if err != nil {
			return err
		}
		known := slices.DeleteFunc(c.prices[e.ID], func(p session.Price) bool { return p.ValidFrom == rows[0].ValidFrom })
		c.prices[e.ID] = slices.SortedFunc(slices.Values(append(known, rows...)), comparePrices)
	}
	return nil
}

// comparePrices orders a model's prices by day, and those of a day by mode and the length of the prompt.
func comparePrices(a, b session.Price) int {
	return cmp.Or(strings.Compare(a.ValidFrom, b.ValidFrom), strings.Compare(a.Mode, b.Mode),
		cmp.Compare(a.Above, b.Above))
}

// unknownModel returns the assumptions about a model that the catalogue does not know.
func unknownModel(id string) session.ModelInfo {
	return session.ModelInfo{
		ID: id, Family: UnknownFamily, Window: UnknownWindow, MaxOutput: UnknownMaxOutput,
		Modalities: []string{"text"}, Origin: FromCatalogue,
	}
}

// parse checks a price and converts it to rows in nano-dollars per token, the one for any length of
// prompt first. Codes: Invalid.
func (p *Rates) parse(model, origin string) ([]session.Price, error) {
	if _, err := time.Parse(time.DateOnly, p.ValidFrom); err != nil {
		return nil, session.Errorf(session.Invalid, "model %s: valid_from %q is not a day like 2026-02-11", model,
			p.ValidFrom)
	}
	rows := make([]session.Price, 0, 1+len(p.Tiers))
	for _, t := range append([]tier{{rates: p.rates}}, p.Tiers...) {
		if len(rows) > 0 && t.Above <= rows[len(rows)-1].Above {
			return nil, session.Errorf(session.Invalid,
				"model %s, price of %s: tiers need an \"above\" greater than 0, in ascending order", model, p.ValidFrom)
		}
		row := session.Price{Model: model, ValidFrom: p.ValidFrom, Above: t.Above, Origin: origin}
		if err := t.convert(&row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	if p.Fast != nil {
		row := session.Price{Model: model, ValidFrom: p.ValidFrom, Mode: ModeFast, Origin: origin}
		if err := p.Fast.convert(&row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// convert sets a row's prices. Codes: Invalid.
func (r *rates) convert(row *session.Price) error {
	if r.Input == nil || r.Output == nil {
		return session.Errorf(session.Invalid, "model %s, price of %s: input and output are required", row.Model,
			row.ValidFrom)
	}
	for _, field := range []struct {
		to   *int64
		from *float64
	}{
		{&row.Input, r.Input},
		{&row.CacheRead, cmp.Or(r.CacheRead, r.Input)},
		{&row.CacheWrite, cmp.Or(r.CacheWrite, r.Input)},
		{&row.CacheWrite1h, cmp.Or(r.CacheWrite1h, r.CacheWrite, r.Input)},
		{&row.Output, r.Output},
	} {
		nano := *field.from * 1000
		*field.to = int64(math.Round(nano))
		if nano < 0 || nano > 1e9 || math.Abs(nano-math.Round(nano)) > 1e-6 {
			return session.Errorf(session.Invalid,
				"model %s, price of %s: %v dollars per million tokens; use 0 or more, with at most three decimals", row.Model,
				row.ValidFrom, *field.from)
		}
	}
	return nil
}

// Model returns the facts about a model under any of its names (see normalizeName). For an unknown
// model it returns false, so that the caller can warn, and the window and the tokenizer of the newest
// model of its family, which Like names, or else the documented assumptions.
func (c *Catalogue) Model(id string) (info session.ModelInfo, known bool) {
	found, known := c.find(id)
	switch {
	case known:
		info = c.models[found]
	default:
		info = unknownModel(id)
		if like, ok := c.relative(id); ok {
			of := c.models[like]
			info.Like, info.Family, info.Window, info.MaxOutput, info.Modalities = like, of.Family, of.Window, of.MaxOutput,
				of.Modalities
		}
	}
	if strings.HasSuffix(strings.ToLower(id), "[1m]") {
		info.Window = max(info.Window, 1_000_000)
	}
	info.Modalities = slices.Clone(info.Modalities)
	return info, known
}

// Price sets the cost of a call by the price of its day (UTC), its mode and the length of its prompt, unless
// the provider reported one. The price of short prompts counts for a sum of several requests. The cost stays
// nil when no price is known.
func (c *Catalogue) Price(call *session.Call) {
	if call.CostNanoUSD != nil {
		call.PriceSource = cmp.Or(call.PriceSource, Reported)
		return
	}
	if call.Model == WebSearch {
		priceSearches(call)
		return
	}
	id, ok := c.find(call.Model)
	if !ok || isVariant(call.Model) || IsLocal(call.Provider) {
		return
	}
	mode, share := priceMode(c.models[id].Provider, cmp.Or(call.ServiceTier, modeOfName(call.Model, id)))
	prompt := call.PromptTokens()
	if call.Sum {
		prompt = 0
	}
	row := priceAt(c.prices[id], call.CreatedAt.Day(time.UTC), mode, prompt)
	if row == nil || share == 0 {
		return
	}
	hour := min(call.CacheWrite1h, call.CacheWriteTokens)
	cost := call.InputTokens*row.Input + call.CacheReadTokens*row.CacheRead +
		(call.CacheWriteTokens-hour)*row.CacheWrite + hour*row.CacheWrite1h + call.OutputTokens*row.Output
	cost = cost * share / 100
	call.CostNanoUSD, call.PriceSource = &cost, row.Origin
}

// PriceImported prices a call as Price does, and one too whose program reported a cost of 0 though it sent tokens: the
// program knew no price, or a subscription paid. A model without a price here keeps the 0, and so does one that runs
// on the user's own hardware.
func (c *Catalogue) PriceImported(call *session.Call) {
	if call.CostNanoUSD == nil || *call.CostNanoUSD != 0 || call.PromptTokens()+call.OutputTokens == 0 {
		c.Price(call)
		return
	}
	priced := *call
	priced.CostNanoUSD, priced.PriceSource = nil, ""
	if c.Price(&priced); priced.CostNanoUSD == nil {
		c.Price(call) // reported
		return
	}
	call.CostNanoUSD, call.PriceSource = priced.CostNanoUSD, priced.PriceSource
}

// priceAt returns the price of a day, a mode and a length of prompt, nil if there is none yet.
func priceAt(rows []session.Price, day, mode string, prompt int64) *session.Price {
	for i := range slices.Backward(rows) { // the rows of a day and a mode begin with the one for any length
		if row := &rows[i]; row.ValidFrom <= day && row.Mode == mode && (row.Above == 0 || prompt > row.Above) {
			return row
		}
	}
	return nil
}

// Models returns all models, ordered by id.
func (c *Catalogue) Models() []session.ModelInfo {
	models := make([]session.ModelInfo, 0, len(c.models))
	for _, m := range c.models {
		m.Modalities = slices.Clone(m.Modalities)
		models = append(models, m)
	}
	slices.SortFunc(models, func(a, b session.ModelInfo) int { return strings.Compare(a.ID, b.ID) })
	return models
}

// Lists returns where the models come from, without the models: the built-in list first.
func (c *Catalogue) Lists() []List { return slices.Clone(c.lists) }

// PricesOf returns a model's prices, oldest first.
func (c *Catalogue) PricesOf(id string) []session.Price { return slices.Clone(c.prices[id]) }

// Prices returns all prices, ordered by model and day.
func (c *Catalogue) Prices() []session.Price {
	var prices []session.Price
	for _, rows := range c.prices {
		prices = append(prices, rows...)
	}
	slices.SortFunc(prices, func(a, b session.Price) int {
		return cmp.Or(strings.Compare(a.Model, b.Model), comparePrices(a, b))
	})
	return prices
}
