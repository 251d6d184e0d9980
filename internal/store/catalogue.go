package store

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/go-json-experiment/json"

	"sessiond/internal/engine"
	"sessiond/internal/session"
)

// SetCatalogue writes the catalogue into the tables that analysts join with. If its prices differ from those in the
// tables, it prices the stored calls anew before, as Reprice does. A start that changes nothing writes nothing.
func (s *Store) SetCatalogue(ctx context.Context, models []session.ModelInfo, prices []session.Price,
	price func(*session.Call),
) (repriced int64, err error) {
	var storedModels []modelRow
	var storedPrices []session.Price
	if err := s.Read(ctx,
		engine.IntoList(&storedModels, `SELECT id, provider, family, "window", max_output, CAST(modalities AS TEXT) AS modalities, origin, source FROM models`),
		engine.IntoList(&storedPrices, `SELECT model, valid_from, mode, above_tokens, input_nanousd, cache_read_nanousd, cache_write_nanousd,
			cache_write_1h_nanousd, output_nanousd, origin FROM prices`)); err != nil {
		return 0, fmt.Errorf("read the catalogue: %w", err)
	}
	rows := make([]modelRow, len(models))
	for i, m := range models {
		rows[i] = modelRow{
			m.ID, m.Provider, m.Family, m.Window, m.MaxOutput, strings.Join(m.Modalities, " "), m.Origin,
			m.Source,
		}
	}
	for i := range storedModels {
		var modalities []string
		if json.Unmarshal([]byte(storedModels[i].Modalities), &modalities) == nil {
			storedModels[i].Modalities = strings.Join(modalities, " ") // PostgreSQL writes the JSON in its own way
		}
	}
	newPrices := !maps.Equal(setOfRows(prices), setOfRows(storedPrices))
	if !newPrices && maps.Equal(setOfRows(rows), setOfRows(storedModels)) {
		return 0, nil
	}
	if newPrices {
		if repriced, err = s.Reprice(ctx, price); err != nil {
			return repriced, err
		}
	}
	return repriced, s.write(ctx, func(t *tx) error {
		if err := t.ExecEach([]string{`DELETE FROM models`, `DELETE FROM prices`}); err != nil {
			return fmt.Errorf("replace the catalogue: %w", err)
		}
		for _, m := range models {
			if err := t.Exec(`INSERT INTO models (id, provider, family, "window", max_output, modalities, origin, source) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
				m.ID, m.Provider, m.Family, m.Window, m.MaxOutput, session.JSONOf(m.Modalities), m.Origin, m.Source); err != nil {
				return fmt.Errorf("model %s: %w", m.ID, err)
			}
		}
		for _, p := range prices {
			if err := t.Exec(`INSERT INTO prices (model, valid_from, mode, above_tokens, input_nanousd, cache_read_nanousd, cache_write_nanousd,
				cache_write_1h_nanousd, output_nanousd, origin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				p.Model, p.ValidFrom, p.Mode, p.Above, p.Input, p.CacheRead, p.CacheWrite, p.CacheWrite1h, p.Output,
				p.Origin); err != nil {
				return fmt.Errorf("price of %s: %w", p.Model, err)
			}
		}
		return nil
	})
}

// modelRow is a row of the table models.
type modelRow struct {
	ID         string `db:"id"`
	Provider   string `db:"provider"`
	Family     string `db:"family"`
	Window     int64  `db:"window"`
	MaxOutput  int64  `db:"max_output"`
	Modalities string `db:"modalities"`
	Origin     string `db:"origin"`
	Source     string `db:"source"`
}

func setOfRows[T comparable](rows []T) map[T]bool {
	set := make(map[T]bool, len(rows))
	for _, r := range rows {
		set[r] = true
	}
	return set
}

// repricePage is how many calls one transaction of Reprice visits.
const repricePage = 1000

// Reprice prices the stored calls anew whose cost the catalogue set, those without a cost, and those of imported
// programs that reported 0. price sets a call's cost as an import does. A call keeps its cost where there is no price
// for it any more. It returns how many costs changed.
func (s *Store) Reprice(ctx context.Context, price func(*session.Call)) (changed int64, err error) {
	for after, more := int64(0), true; more; {
		page, did := after, int64(0)
		err := s.write(ctx, func(t *tx) error {
			page, did = after, 0
			calls, err := engine.List[session.Call](ctx, t, callsToPrice, after, repricePage)
			if err != nil {
				return err
			}
			more = len(calls) == repricePage
			for i := range calls {
				page = calls[i].RowID
				changed, err := t.reprice(calls[i], price)
				if err != nil {
					return fmt.Errorf("price of call %d: %w", page, err)
				}
				if changed {
					did++
				}
			}
			return nil
		})
		if err != nil {
			return changed, fmt.Errorf("price the stored calls anew: %w", err)
		}
		after, changed = page, changed+did
	}
	return changed, nil
}

const callsToPrice = `SELECT ` + callColumns + ` FROM calls
	WHERE id > ? AND (price_source <> 'reported' OR cost_nanousd = 0 AND source <> 'sessiond') ORDER BY id LIMIT +?`

// reprice prices one call anew and moves the difference in its session and the roll-up.
func (t *tx) reprice(known session.Call, price func(*session.Call)) (changed bool, err error) {
	now := known
	now.Sum = now.MessageID == nil && now.SessionID != "" && now.Source != session.SourceSessiond // a program's total
	if now.PriceSource != reportedPrice {
		now.CostNanoUSD, now.PriceSource = nil, ""
	}
	price(&now)
	if now.CostNanoUSD == nil || known.CostNanoUSD != nil && *known.CostNanoUSD == *now.CostNanoUSD &&
		known.PriceSource == now.PriceSource {
		return false, nil
	}
	if err := t.Exec(`UPDATE calls SET cost_nanousd = ?, price_source = ? WHERE id = ?`, *now.CostNanoUSD, now.PriceSource, known.RowID); err != nil {
		return false, err
	}
	project, err := t.usageProjectOf(known.SessionID)
	if err != nil {
		return false, err
	}
	more := *usageOfCall(&now)
	more.add(usageOfCall(&known), -1)
	t.usage.at(keyOfCall(&known, project)).add(&more, 1)
	if known.SessionID == "" || more == (usageSum{}) {
		return true, nil
	}
	return true, t.countCalls(&session.Session{ID: known.SessionID}, &more)
}

// reportedPrice is the price_source of a cost that a provider or a program reported.
const reportedPrice = "reported"

// Calibration is what reports have taught about a model's tokens.
type Calibration struct {
	Model  string  `db:"model"`
	Scale  float64 `db:"scale"`  // reported tokens / estimated tokens
	Weight float64 `db:"weight"` // tokens behind the scale
}

// Calibration reads a model's; nil when nothing was learned yet.
func (s *Store) Calibration(ctx context.Context, model string) (*Calibration, error) {
	return engine.First[Calibration](ctx, s, `SELECT model, scale, weight FROM calibrations WHERE model = ?`, model)
}

// SetCalibration replaces a model's.
func (s *Store) SetCalibration(ctx context.Context, c Calibration) error {
	return s.write(ctx, func(t *tx) error {
		return t.Exec(`INSERT INTO calibrations (model, scale, weight, updated_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (model) DO UPDATE SET scale = excluded.scale, weight = excluded.weight, updated_at = excluded.updated_at`,
			c.Model, c.Scale, c.Weight, t.Now)
	})
}
