// Package contextmgr decides what a model is given now: the system text, the summary of the
// hidden messages, the messages kept verbatim and the originals that a question recalls.
//
// Decisions are pure functions over small values, in files of their own: numbers, presets, cut,
// plan, prune, repair, limits, assemble, prefix, quotes. The Manager around them reads,
// stages and commits. A request never waits for a remote model, and reading never writes.
package contextmgr

import (
	"cmp"
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sessiond/internal/session"
)

// Store is what the manager needs of the store.
type Store interface {
	Session(ctx context.Context, id session.ID) (session.Session, error)
	Message(ctx context.Context, ref session.MessageRef) (session.Message, error)
	MessageHead(ctx context.Context, ref session.MessageRef, head session.Head) (session.Message, error)
	MessageByID(ctx context.Context, id int64) (session.Message, error)
	Blob(ctx context.Context, sha string) (session.Blob, error)
	Walk(ctx context.Context, head int64, yield func(session.Message) bool) error
	WalkDownTo(ctx context.Context, head, lowest int64, yield func(session.Message) bool) error
	RefsBetween(ctx context.Context, head, after int64) ([]session.MessageRef, error)
	Root(ctx context.Context, head int64) (first, last session.MessageRef, err error)
	OnPath(ctx context.Context, head, message int64) (bool, error)

	Effective(ctx context.Context, s session.Session) (*session.Compaction, error)
	Compactions(ctx context.Context, id session.ID) ([]session.Compaction, error)
	Compaction(ctx context.Context, id session.ID, compaction int64) (session.Compaction, error)
	AddCompaction(ctx context.Context, c session.Compaction) (session.Compaction, error)
	FinishCompaction(ctx context.Context, c session.Compaction) (session.Compaction, error)
	AnswerCompaction(ctx context.Context, i *session.Idempotency, c session.Compaction) error
	Activate(ctx context.Context, id session.ID, compaction int64) (session.Compaction, error)
	UndoCompaction(ctx context.Context, id session.ID, compaction int64) (session.Session, error)
	RedoCompaction(ctx context.Context, id session.ID, compaction int64) (session.Session, error)

	AddBranchSummary(ctx context.Context, in session.BranchSummary) (m session.Message, attached bool, err error)

	SaveContext(ctx context.Context, c session.Context, blocks map[string]string,
		frozen []session.Frozen) (session.Context, error)
	ContextBasis(ctx context.Context, sess session.Session) (session.ContextBasis, error)
	LastContext(ctx context.Context, id session.ID) (*session.Context, map[string]string, error)
	Context(ctx context.Context, id session.ID, contextID int64) (session.Context, error)
	Frozen(ctx context.Context, s session.Session) ([]session.Frozen, error)
	Flush(ctx context.Context, id session.ID, generation int64) (*session.Flush, error)
	AskFlush(ctx context.Context, id session.ID, generation int64) error

	AddCall(ctx context.Context, c session.Call) (session.Call, error)
	LastReport(ctx context.Context, s session.Session) (*session.Call, error)
	Reports(ctx context.Context, id session.ID, most int) ([]session.Call, error)
	TouchedFiles(ctx context.Context, after, through int64) ([]session.TouchedFile, error)
}

// Summarizer summarises a span of messages.
type Summarizer interface {
	Summarize(ctx context.Context, in session.SummaryRequest) (session.Summary, error)
}

// Remote is a model that summarises. Its zero value is none: the digest serves.
type Remote struct {
	Summarizer                            // nil: it cannot be asked here
	Cost       func(in, out int64) *int64 // nano-dollars of a summary by tokens; nil: unknown
}

// remote returns the model of a context: the one that the settings name, else the one with the preset's
// name, else the default. A name that is not configured counts as none.
func (m *Manager) remote(n *Numbers) Remote {
	for _, name := range []string{n.Summarizer, n.Preset} {
		if r, configured := m.cfg.Remotes[name]; configured && name != "" {
			return r
		}
	}
	return m.cfg.Remotes[""]
}

// ParseSettings parses the settings of a request, which may name a configured summarizer. Codes as the
// function ParseSettings.
func (m *Manager) ParseSettings(raw session.JSON) (Settings, error) {
	s, err := ParseSettings(raw)
	if err != nil || s.Summarizer == nil || *s.Summarizer == "" {
		return s, err
	}
	if _, configured := m.cfg.Remotes[*s.Summarizer]; configured {
		return s, nil
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(m.cfg.Remotes)), func(name string) bool { return name == "" })
	configured := cmp.Or(strings.Join(names, ", "), "none; add it below `summarizers` in the configuration")
	return s, session.Errorf(session.Invalid, "no summarizer is called %q; configured: %s", *s.Summarizer, configured).
		At("summarizer", "is not one of the configured summarizers: %s", configured)
}

// Counter counts tokens as one family of tokenizers does.
type Counter interface {
	Text(s string) int64
	Measure(m *session.Message) // sets Tokens of the message and its parts
}

// Config configures a Manager. Digest, Models, Counter, Reference and Dialects are required.
type Config struct {
	File      Settings          // from the configuration file
	Digest    Summarizer        // works offline, on the spot
	Remotes   map[string]Remote // models for staged and asynchronous summaries, by name; "": the default
	Models    func(id string) (session.ModelInfo, bool)
	Counter   func(family string) Counter
	Reference string // the family that counted the stored messages
	Dialects  Dialects

	// Scale returns a model's learned scale and two standard errors as a share of a scaled count.
	// nil: 1 and Doubt.
	Scale func(ctx context.Context, model string) (scale, doubt float64, err error)
	// Learned receives the estimate and the report of the same messages; nil: nothing is learned.
	Learned func(ctx context.Context, model string, estimated, reported int64) error

	Givers func(key string) session.Givers // of rules in the sessions of a key; nil: each person
	Recall Recall                          // nil: none
	Mask   func(string) string             // masks secrets for summaries and recall; nil: no mask
	// a context passed the soft threshold: call StageDigest; must not block
	OnSoft func(session.ID)
	Flush  FlushSettings // the zero value: no memory flush
	// stores a window that an overflow report corrected; nil: not stored
	SetWindow func(context.Context, session.ID, int64) error
	Now       func() time.Time
}

// Manager assembles contexts and makes, stages, activates and undoes overlays. It is safe for
// concurrent use; changes of one session's overlays run one after the other.
type Manager struct {
	store   Store
	cfg     Config
	running runs

	locks [256]sync.Mutex // by a session's hash
	seed  maphash.Seed

	requests *cache[session.ID, lastRequest]
	weights  *cache[weightKey, int64]
	paths    *cache[session.ID, []session.Message]
	images   *cache[string, *session.Blob] // by the original's hash; nil: it cannot be shrunk
	shrinks  sync.Mutex                    // one image at a time: each takes much memory
}

// Bounds of the manager's caches.
const (
	maxRequests    = 4096 // sessions
	maxWeights     = 1 << 16
	maxPathBytes   = 32 << 20
	maxImageBytes  = 32 << 20
	imageEntrySize = 1 << 10 // of an entry without an image
)

// New returns a Manager.
func New(store Store, cfg Config) *Manager {
	if cfg.Mask == nil {
		cfg.Mask = func(s string) string { return s }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.OnSoft == nil {
		cfg.OnSoft = func(session.ID) {}
	}
	return &Manager{
		store: store, cfg: cfg, running: runs{all: map[*run]bool{}}, seed: maphash.MakeSeed(),
		requests: newCache[session.ID, lastRequest](maxRequests), weights: newCache[weightKey, int64](maxWeights),
		paths: newCache[session.ID, []session.Message](maxPathBytes), images: newCache[string, *session.Blob](maxImageBytes),
	}
}

// lock serialises changes of a session's overlays until unlock is called.
func (m *Manager) lock(id session.ID) (unlock func()) {
	l := &m.locks[maphash.String(m.seed, string(id))%uint64(len(m.locks))]
	l.Lock()
	return l.Unlock
}

// measure sets the tokens of a message and its parts, by the reference counter.
func (m *Manager) measure(msg *session.Message) { m.cfg.Counter(m.cfg.Reference).Measure(msg) }

// countText counts a text, by the reference counter.
func (m *Manager) countText(s string) int64 { return m.cfg.Counter(m.cfg.Reference).Text(s) }

// Forget drops every cached message: some may have been purged.
func (m *Manager) Forget() { m.paths.clear() }

// lastRequest is what a session's last turn named itself. Staging, idle activation and
// compactions between turns use the same numbers. After a restart the session's own settings
// count until its next turn.
type lastRequest struct {
	budget     Budget // model, window, max output and settings only
	cannotSave bool   // its agent cannot write memory
}

func (m *Manager) rememberRequest(id session.ID, b Budget, cannotSave bool) {
	b = Budget{Model: b.Model, Window: b.Window, MaxOutput: b.MaxOutput, Settings: b.Settings}
	m.requests.put(id, lastRequest{b, cannotSave}, 1)
}

// fillBudget fills the empty fields of a budget from the session's last turn, unless it is for
// another model.
func (m *Manager) fillBudget(id session.ID, b Budget) Budget {
	found, _ := m.requests.get(id)
	last := found.budget
	if b.Model != "" && b.Model != last.Model {
		return b
	}
	b.Model = last.Model
	if b.Window == 0 {
		b.Window = last.Window
	}
	if b.MaxOutput == 0 {
		b.MaxOutput = last.MaxOutput
	}
	if b.Settings == (Settings{}) {
		b.Settings = last.Settings
	}
	return b
}
