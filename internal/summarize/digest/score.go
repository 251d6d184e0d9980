package digest

import "math"

// What a sentence of a person or the model scores for stating a value, and loses if it states nothing.
const (
	stating = 0.4
	idle    = 0.8
)

// scores returns the score of each sentence; minus infinity for one without terms.
func (sp *span) scores() []float64 {
	out := make([]float64, len(sp.sentences))
	total := float64(max(1, len(sp.msgs)))
	for k := range sp.sentences {
		s := &sp.sentences[k]
		n := len(s.terms)
		if n == 0 {
			out[k] = math.Inf(-1)
			continue
		}
		alike := log2(sp.alike[s.shape])
		score := [...]float64{byPerson: 3, byModel: 1.4, byTool: 0.4, byProgram: 0.2}[s.by]
		score += 0.45 * float64(min(s.facts, 4))
		rare, asked, wanted := 0.0, 0, 0
		for _, t := range s.terms {
			b := sp.counter(t)
			rare += 1 / float64(max(1, sp.count[b]))
			if sp.asked[b] && sp.count[b] < 12 {
				asked++
			}
			if sp.wanted[t] && sp.count[b] < 12 {
				wanted++
			}
		}
		score += float64(min(wanted, 2))
		score += rare / math.Sqrt(float64(n)+6)
		if s.by != byPerson {
			score += 0.25 * float64(min(asked, 4))
		}
		switch at := float64(s.msg) / total; {
		case at > 0.7:
			score += 0.3
		case at < 0.05:
			score += 0.2
		}
		if s.by == byModel && (s.nth == 0 || s.last) {
			score += 0.3
		}
		if s.by == byPerson { // people repeat what they mean
			alike /= 2
		}
		score -= 0.7 * alike
		if s.by == byPerson && s.nth > 5 { // the later sentences of a long message are often pasted
			score -= min(2.5, 0.4*float64(s.nth-5))
		}
		if s.pasted {
			score -= 2
		}
		if s.request {
			score -= overRequest
		}
		if s.by == byPerson || s.by == byModel {
			score += [...]float64{statesNothing: -idle, statesSome: 0, statesValue: stating}[s.states]
		}
		if s.failed {
			score += 0.4
		}
		if s.finding {
			score += finding
			if s.by == byTool {
				score += finding
			}
		}
		if n < 3 {
			score--
		}
		if s.numbers > 6 {
			score -= 0.2 * float64(min(s.numbers-6, 8))
		}
		if s.by == byPerson { // short ones leave room for others
			score -= float64(len(s.text)) / 300
		}
		out[k] = score - float64(len(s.text))/500
	}
	return out
}
