package store

import (
	"context"
	"fmt"

	"sessiond/internal/session"
)

// SetCatalogue writes the catalogue into the tables that analysts join with. What is in the
// tables already and in force is left alone, so a start that changes nothing writes nothing.
func (s *Store) SetCatalogue(ctx context.Context, models []session.ModelInfo, prices []session.Price) error {
	return s.write(ctx, func(t *tx) error {
		for _, m := range models {
			if err := t.exec(`INSERT INTO models (id, provider, family, "window", max_output, modalities, origin) VALUES (?, ?, ?, ?, ?, ?, ?)
				ON CONFLICT (id) DO UPDATE SET provider = excluded.provider, family = excluded.family, "window" = excluded."window",
				max_output = excluded.max_output, modalities = excluded.modalities, origin = excluded.origin
				WHERE (models.provider, models.family, models."window", models.max_output, CAST(models.modalities AS TEXT), models.origin)
				   <> (excluded.provider, excluded.family, excluded."window", excluded.max_output, CAST(excluded.modalities AS TEXT), excluded.origin)`,
				m.ID, m.Provider, m.Family, m.Window, m.MaxOutput, session.JSONOf(m.Modalities), m.Origin); err != nil {
				return fmt.Errorf("model %s: %w", m.ID, err)
			}
		}
		for _, p := range prices {
			if err := t.exec(`INSERT INTO prices (model, valid_from, above_tokens, input_nanousd, cache_read_nanousd, cache_write_nanousd,
				cache_write_1h_nanousd, output_nanousd, origin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
				ON CONFLICT (model, valid_from, above_tokens) DO UPDATE SET input_nanousd = excluded.input_nanousd,
				cache_read_nanousd = excluded.cache_read_nanousd, cache_write_nanousd = excluded.cache_write_nanousd,
				cache_write_1h_nanousd = excluded.cache_write_1h_nanousd, output_nanousd = excluded.output_nanousd, origin = excluded.origin
				WHERE (prices.input_nanousd, prices.cache_read_nanousd, prices.cache_write_nanousd, prices.cache_write_1h_nanousd, prices.output_nanousd, prices.origin)
				   <> (excluded.input_nanousd, excluded.cache_read_nanousd, excluded.cache_write_nanousd, excluded.cache_write_1h_nanousd,
				       excluded.output_nanousd, excluded.origin)`,
				p.Model, p.ValidFrom, p.Above, p.Input, p.CacheRead, p.CacheWrite, p.CacheWrite1h, p.Output, p.Origin); err != nil {
				return fmt.Errorf("price of %s: %w", p.Model, err)
			}
		}
		return nil
	})
}

// Calibration is what reports have taught about a model's tokens.
type Calibration struct {
	Model  string  `db:"model"`
	Scale  float64 `db:"scale"`  // reported tokens / estimated tokens
	Weight float64 `db:"weight"` // tokens behind the scale
}

// Calibration reads a model's; nil when nothing was learned yet.
func (s *Store) Calibration(ctx context.Context, model string) (*Calibration, error) {
	return first[Calibration](ctx, s, `SELECT model, scale, weight FROM calibrations WHERE model = ?`, model)
}

// SetCalibration replaces a model's.
func (s *Store) SetCalibration(ctx context.Context, c Calibration) error {
	return s.write(ctx, func(t *tx) error {
		return t.exec(`INSERT INTO calibrations (model, scale, weight, updated_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (model) DO UPDATE SET scale = excluded.scale, weight = excluded.weight, updated_at = excluded.updated_at`,
			c.Model, c.Scale, c.Weight, t.now)
	})
}
