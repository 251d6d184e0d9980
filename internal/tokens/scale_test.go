package tokens

import (
	"math"
	"testing"
)

func TestZeroScaleHasFactorOne(t *testing.T) {
	var s Scale
	if s.Factor() != 1 || s.Doubt() != 0.06 {
		t.Errorf("factor %v, in doubt %v", s.Factor(), s.Doubt())
	}
}

func TestScaleConvergesToReportedRatio(t *testing.T) {
	var s Scale
	for range 40 {
		s = s.Learn(1000, 1250)
	}
	if math.Abs(s.Factor()-1.25) > 0.03 {
		t.Errorf("factor %.3f after 40,000 tokens that count 1.25", s.Factor())
	}
	if d := s.Doubt(); d > 0.02 || d < 0.01 {
		t.Errorf("%.4f are in doubt", d)
	}
}

func TestScaleForgetsWithItsHalfLife(t *testing.T) {
	s := Scale{Ratio: 2, Weight: 1e9}
	s = s.Learn(HalfLife, HalfLife)
	if math.Abs(s.Weight-(0.5e9+HalfLife)) > 1 {
		t.Errorf("weight %.0f after one half-life, want half of it and the new tokens", s.Weight)
	}
	s = Scale{}
	for range 100 {
		s = s.Learn(1000, 1500)
	}
	for range 100 {
		s = s.Learn(1000, 1000)
	}
	if s.Factor() > 1.03 {
		t.Errorf("factor %.3f, five half-lives after the model changed", s.Factor())
	}
}

func TestScaleIgnoresImplausibleReports(t *testing.T) {
	learned := Scale{}.Learn(1000, 1100)
	for _, c := range []struct {
		name                string
		estimated, reported int64
	}{
		{"nothing grew", 0, 0},
		{"too little to tell", 49, 60},
		{"the context shrank", -5000, -5000},
		{"the report shrank", 1000, -200},
		{"far too few", 1000, 400},
		{"far too many", 1000, 9000},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := learned.Learn(c.estimated, c.reported); got != learned {
				t.Errorf("learned %+v from it", got)
			}
		})
	}
}
