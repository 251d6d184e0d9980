package contextmgr

// Methods of counting, as tokens.method says.
const (
	MethodEstimate = "estimate" // sessiond's own counter over everything
	MethodAnchor   = "anchor"   // a provider's report, and an estimate of what came after it
)

// Tokens is the size of a context and the numbers that it is held against.
type Tokens struct {
	Total     int64  `json:"total"`
	Window    int64  `json:"window"`
	Threshold int64  `json:"threshold"`
	Reserve   int64  `json:"reserve"`
	Method    string `json:"method"`
	Error     int64  `json:"error"` // two standard errors of Total
	Estimate  int64  `json:"-"`     // sessiond's own count of all of it, whatever Method says

	anchor *Anchor // the report that Total starts from; nil: none
	excess float64 // of a context that was cut to fit: what a provider counted more; 0: nothing
}

// Upper is what Total may really be: compaction goes by it.
func (t *Tokens) Upper() int64 { return t.Total + t.Error }

// more is what a provider counted more than sessiond did, as a factor; 1: nothing.
func (t *Tokens) more() float64 { return max(1, float64(t.Total)/float64(max(1, t.Estimate))) }

// Doubt is the share of an estimate that its truth may lie beside it while nothing was learned
// of the model: two standard errors.
const Doubt = 0.06

// Weighed is an item of a context as far as its size goes.
type Weighed struct {
	Tokens int64
	Report int64 // the whole context up to and with this item, as a provider reported it; 0: no report that counts
}

// Hybrid sizes a context by the last report and an estimate of what came after it. last is
// the index of the reporting item, -1 where nothing was reported: then all is estimated.
// Rule: pi, estimateContextTokens.
func Hybrid(items []Weighed) (total, reported, trailing int64, last int) {
	for last = len(items) - 1; last >= 0; last-- {
		if items[last].Report > 0 {
			reported = items[last].Report
			break
		}
		trailing += items[last].Tokens
	}
	return reported + trailing, reported, trailing, last
}
