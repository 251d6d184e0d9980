package contextmgr

import (
	"context"
	"time"

	"sessiond/internal/session"
)

// Store is what the manager needs of the store.
type Store interface {
	Session(ctx context.Context, id session.ID) (session.Session, error)
	Message(ctx context.Context, ref session.MessageRef) (session.Message, error)
	MessageByID(ctx context.Context, id int64) (session.Message, error)
	Walk(ctx context.Context, head int64, yield func(session.Message) bool) error
	WalkDownTo(ctx context.Context, head, lowest int64, yield func(session.Message) bool) error
	Path(ctx context.Context, head, after int64) ([]session.Message, error)
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

	SaveContext(ctx context.Context, c session.Context, blocks map[string]string, frozen []session.Frozen) (session.Context, error)
	LastContext(ctx context.Context, id session.ID) (*session.Context, map[string]string, error)
	Context(ctx context.Context, id session.ID, contextID int64) (session.Context, error)
	Frozen(ctx context.Context, s session.Session) ([]session.Frozen, error)
	Flush(ctx context.Context, id session.ID, generation int64) (*session.Flush, error)
	AskFlush(ctx context.Context, id session.ID, generation int64) error

	AddCall(ctx context.Context, c session.Call) (session.Call, error)
	LastReport(ctx context.Context, s session.Session) (*session.Call, error)
	Reports(ctx context.Context, id session.ID, most int) ([]session.Call, error)
	Pins(ctx context.Context, id session.ID) ([]int64, error)
	TouchedFiles(ctx context.Context, after, through int64) ([]session.TouchedFile, error)
}

// Summarizer makes a summary of a span of messages.
type Summarizer interface {
	Summarize(ctx context.Context, in session.SummaryRequest) (session.Summary, error)
}

// Counter counts tokens as one family of tokenizers does.
type Counter interface {
	Text(s string) int64
	Measure(m *session.Message) // sets Tokens of the message and its parts
}

// Config is what a Manager works with. Digest and Counter are needed, the rest may be zero.
type Config struct {
	File      Settings                                  // numbers that the configuration file gives
	Digest    Summarizer                                // on the spot, offline
	Remote    Summarizer                                // a model's, for staging only; nil: none
	Models    func(id string) (session.ModelInfo, bool) // false: not in the catalogue, the info is a default
	Counter   func(family string) Counter
	Reference string                                                                    // the family whose counts messages carry
	Scale     func(ctx context.Context, model string) (scale, doubt float64, err error) // what reports taught of a model, and what share of a scaled count two standard errors are; nil: 1 and Doubt
	Learned   func(ctx context.Context, model string, estimated, reported int64) error  // what Learn found; nil: nothing is learned
	Recall    Recall                                                                    // nil: none
	Mask      func(string) string                                                       // hides secrets in what goes to a summary or a recall; nil: nothing is hidden
	Cost      func(in, out int64) *int64                                                // nano-dollars of a remote summary; nil: unknown
	OnSoft    func(session.ID)                                                          // a session passed its soft threshold: call Stage; must not block
	Flush     FlushSettings                                                             // the zero value: no memory flush
	SetWindow func(context.Context, session.ID, int64) error                            // an overflow report corrected the window; nil: not kept
	Now       func() time.Time
}
