package contextmgr

import (
	"strings"
	"testing"

	"sessiond/internal/session"
	"sessiond/internal/testkit"
)

func TestDefaultNumbers(t *testing.T) {
	for _, c := range []struct {
		name                                        string
		window, maxOutput                           int64
		threshold, reserve, keep, summary, part, re int64
	}{
		{"200k", 200000, 0, 160000, 20000, 20000, 4000, 50000, 1000},
		{"1M", 1000000, 0, 800000, 20000, 40000, 8000, 50000, 1000},
		{"8k", 8000, 0, 6000, 2000, 1200, 1800, 2000, 300},
		{"16k", 16000, 0, 12000, 4000, 2400, 3600, 4000, 600},
		{"32k", 32000, 0, 24000, 8000, 4800, 4000, 8000, 1000},
		{"a long reply", 200000, 64000, 136000, 64000, 20000, 4000, 50000, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := testkit.Must(Resolve(nil, c.window, c.maxOutput))(t)
			got := []int64{n.Threshold, n.Reserve, n.KeepTokens, n.SummaryMax, n.PartMax, n.RecallMax}
			want := []int64{c.threshold, c.reserve, c.keep, c.summary, c.part, c.re}
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("threshold, reserve, keep, summary, part, recall = %v, want %v", got, want)
				}
			}
			if epoch := max(6*n.RecallMax, min(10*n.RecallMax, n.Threshold/20)); n.RecallEpoch != epoch {
				t.Errorf("%d tokens recalled under one overlay, want %d", n.RecallEpoch, epoch)
			}
			if n.Limit != c.window-n.Reserve || n.Soft != n.Threshold*9/10 || n.Flush != n.Threshold-min(4000, n.Threshold/20) ||
				n.KeepMessages != 5 || n.Off {
				t.Errorf("numbers %+v", n)
			}
		})
	}
}

func TestPresetsUseTheirProgramsNumbers(t *testing.T) {
	for name, want := range map[string][]int64{ // threshold, kept tokens and messages, and summary at 200,000
		"balanced":     {160000, 20000, 5, 4000},
		"conservative": {180000, 20000, 10, 4000},
		"aggressive":   {140000, 20000, 3, 4000},
		"goose":        {159999, 0, 5, 2000}, // it compacts at 160,000 already, as the next two at their limits
		"pi":           {183616, 20000, 0, 2000},
		"opencode":     {167999, 15000, 0, 2000},
		"codex":        {179999, 20000, 0, 2000},
		"moltbot":      {180000, 20000, 0, 2000},
	} {
		n := testkit.Must(Resolve([]Layer{{"file", Settings{Preset: &name}}}, 200000, 0))(t)
		if n.Threshold != want[0] || n.KeepTokens != want[1] || n.KeepMessages != want[2] || n.SummaryMax != want[3] ||
			n.Preset != name {
			t.Errorf("%s: %d %d %d %d, want %v", name, n.Threshold, n.KeepTokens, n.KeepMessages, n.SummaryMax, want)
		}
	}
	if len(PresetNames()) != 8 {
		t.Error("a preset is missing here")
	}
	moltbot := "moltbot"
	if n, _ := Resolve([]Layer{{"file", Settings{Preset: &moltbot}}}, 200000, 0); n.Flush != 176000 {
		t.Errorf("moltbot asks for a flush from %d", n.Flush)
	}
}

func TestNearestSettingWinsAndNamesItsSource(t *testing.T) {
	request, own, file := Settings{Fraction: ptr(0.5)},
		Settings{Fraction: ptr(0.6), KeepRecentMessages: ptr[int64](7), Preset: ptr("pi")},
		Settings{
			Fraction: ptr(0.7), KeepRecentMessages: ptr[int64](8), PruneMinimum: ptr[int64](9),
			Preset: ptr("aggressive"),
		}
	n := testkit.Must(Resolve([]Layer{{"request", request}, {"session", own}, {"file", file}}, 200000, 0))(t)
	want := map[string]string{
		"fraction": "request", "keep_recent_messages": "session", "prune_minimum": "file", "keep_recent_tokens": "preset pi",
		"recall_tokens": "default",
	}
	for _, s := range n.Settings {
		if w, ok := want[s.Name]; ok && s.Source != w {
			t.Errorf("%s = %v comes from %s, want %s", s.Name, s.Value, s.Source, w)
		}
		delete(want, s.Name)
	}
	if len(want) > 0 || n.Threshold != 100000 || n.KeepMessages != 7 {
		t.Errorf("left %v, numbers %+v", want, n)
	}
}

func TestUnknownSettingIsRejectedWithTheRightName(t *testing.T) {
	for given, right := range map[string]string{
		"threshold": "fraction", "fracton": "fraction", "keep_recent": "keep_recent_messages", "reserve": "reserve_tokens",
		"Fraction": "fraction",
	} {
		_, err := ParseSettings(session.JSON(`{"` + given + `":0.5}`))
		wantCode(t, err, session.Invalid, `"`+given+`"`, `"`+right+`"`)
	}
	if _, err := ParseSettings(session.JSON(`{"fraction":0.5,"threshold":null}`)); err != nil {
		t.Errorf("a null removes an unknown setting: %v", err)
	}
}

func TestReserveThatLowersTheThresholdIsNamed(t *testing.T) {
	for fraction, want := range map[float64]string{0.95: "lowers the threshold to 12000", 0.7: ""} {
		n := testkit.Must(Resolve([]Layer{{"session", Settings{Fraction: ptr(fraction)}}}, 16000, 0))(t)
		if want == "" && n.Capped != "" || !strings.Contains(n.Capped, want) || !n.fractionIsChosen() {
			t.Errorf("fraction %v: %q", fraction, n.Capped)
		}
	}
}

func TestSettingsOutOfRangeAreRejected(t *testing.T) {
	for name, raw := range map[string]string{
		"fraction above":   `{"fraction":1.01}`,
		"fraction below":   `{"fraction":-0.1}`,
		"fraction no text": `{"fraction":"much"}`,
		"negative reserve": `{"reserve_tokens":-1}`,
		"huge keep":        `{"keep_recent_tokens":99999999999999}`,
		"unknown preset":   `{"preset":"lean"}`,
		"unknown strategy": `{"strategy":"forget"}`,
		"prune":            `{"strategy":"prune"}`,
		"no object":        `[1]`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSettings(session.JSON(raw))
			wantCode(t, err, session.Invalid)
		})
	}
	if _, err := StoredSettings(session.JSON(`{"fraction":1,"reserve_floor":0,"other":{"a":1}}`)); err != nil {
		t.Errorf("good settings: %v", err)
	}
	_, err := Resolve(nil, 0, 0)
	wantCode(t, err, session.Invalid, "window")
	_, err = Resolve(nil, 1000, 1000)
	wantCode(t, err, session.Invalid, "max_output")
	_, err = Resolve([]Layer{{"session", Settings{Fraction: ptr(2.0)}}}, 1000, 0)
	wantCode(t, err, session.Invalid, "session", "between 0 and 1")
	if strings.Contains(err.Error(), "%!") {
		t.Error(err)
	}
}

func TestDecide(t *testing.T) {
	n, err := Resolve(nil, 200000, 0) // threshold 160000, limit 180000, soft 144000
	testkit.Check(t, err)
	off, ask := n, n
	off.Off, off.Threshold = true, n.Limit
	ask.Strategy = StrategyAsk
	for _, c := range []struct {
		name  string
		n     Numbers
		total int64
		error int64
		grown int64
		want  Need
	}{
		{"small", n, 100000, 0, 1 << 40, NeedNothing},
		{"at the soft threshold", n, 144000, 0, 1 << 40, NeedNothing},
		{"above it", n, 144001, 0, 1 << 40, NeedStage},
		{"at the threshold", n, 160000, 0, 1 << 40, NeedStage},
		{"above it", n, 160001, 0, 1 << 40, NeedCompact},
		{"two standard errors above it", n, 155000, 5001, 1 << 40, NeedCompact},
		{"guarded", n, 160001, 0, 9999, NeedStage},
		{"grown enough", n, 160001, 0, 10000, NeedCompact},
		{"no guard above the limit", n, 180001, 0, 0, NeedCompact},
		{"off", off, 179999, 5000, 1 << 40, NeedNothing},
		{"off above the limit", off, 180001, 0, 1 << 40, NeedRequired},
		{"ask", ask, 160001, 0, 1 << 40, NeedChoice},
		{"ask above the limit", ask, 180001, 0, 1 << 40, NeedRequired},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Decide(Tokens{Total: c.total, Error: c.error}, c.n, c.grown); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
