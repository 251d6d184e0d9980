// Package secrets finds the keys and passwords that stand in stored conversations: which, since when, in how many
// messages, and who was sent them. It keeps no value of one and returns none.
package secrets

import (
	"cmp"
	"context"
	"crypto/sha256"
	"maps"
	"slices"

	"sessiond/internal/redact"
	"sessiond/internal/session"
	"sessiond/internal/store"
)

// Secret is a key or a password that stands in messages.
type Secret struct {
	Number    int          `json:"number"` // in the list, from 1
	Kind      string       `json:"kind"`
	Known     bool         `json:"known_shape"` // of its kind; else its name announces it
	Example   bool         `json:"example"`     // as manuals and tests have
	FirstSeen session.Time `json:"first_seen"`
	LastSeen  session.Time `json:"last_seen"`
	Messages  int          `json:"messages"`
	Programs  []string     `json:"programs"`  // whose agents saw it
	Providers []string     `json:"providers"` // of the replies that were made with it in the conversation
	Places    []Place      `json:"places"`    // by session
	Rotate    string       `json:"rotate,omitempty"`
}

// Place is a session with a secret.
type Place struct {
	First    session.MessageRef `json:"first"`
	Last     session.MessageRef `json:"last"`
	Messages int                `json:"messages"`

	sent int64 // seq of its first message that models were given; 0: none
}

// found collects what a scan knows of a secret.
type found struct {
	Secret
	places map[session.ID]*Place
}

// batch is how many messages are read at once.
const batch = 500

// Scan reads all messages and returns their secrets: those of a known shape first, then by the number of messages.
// Of a text over 8 MiB it reads the beginning. progress is called with the number of messages that were read.
func Scan(ctx context.Context, s *store.Store, progress func(messages int)) ([]Secret, error) {
	all := map[[sha256.Size]byte]*found{}
	var m *session.Message
	masker := redact.Masker{Found: func(secret redact.Secret) { note(all, m, secret) }}
	for mark := int64(0); ; {
		messages, err := s.MessagesAfter(ctx, mark, batch)
		if err != nil {
			return nil, err
		}
		if len(messages) == 0 {
			break
		}
		for i := range messages {
			m = &messages[i]
			masker.Message(m)
		}
		mark = m.RowID
		progress(len(messages))
	}
	if err := addReaders(ctx, s, all); err != nil {
		return nil, err
	}
	return listed(all), nil
}

// note adds a secret of a message.
func note(all map[[sha256.Size]byte]*found, m *session.Message, secret redact.Secret) {
	key := sha256.Sum256([]byte(secret.Value))
	f := all[key]
	if f == nil {
		f = &found{places: map[session.ID]*Place{}}
		f.Kind, f.Known, f.Example, f.FirstSeen = secret.Kind, secret.Known, secret.IsExample(), m.CreatedAt
		all[key] = f
	}
	if secret.Known && !f.Known {
		f.Kind, f.Known = secret.Kind, true
	}
	f.FirstSeen, f.LastSeen = earlier(f.FirstSeen, m.CreatedAt), later(f.LastSeen, m.CreatedAt)
	p := f.places[m.SessionID]
	if p == nil {
		p = &Place{First: m.ID}
		f.places[m.SessionID] = p
	}
	if p.Last != m.ID { // once for each message
		p.Last, p.Messages = m.ID, p.Messages+1
		f.Messages++
	}
	if m.InContext && p.sent == 0 {
		p.sent = m.Seq
	}
}

func earlier(a, b session.Time) session.Time {
	if b.Before(a.Time) {
		return b
	}
	return a
}

func later(a, b session.Time) session.Time {
	if b.After(a.Time) {
		return b
	}
	return a
}

// addReaders adds the programs and the providers of the sessions, and of forks that begin behind a secret.
func addReaders(ctx context.Context, s *store.Store, all map[[sha256.Size]byte]*found) error {
	ids := map[session.ID]bool{}
	for _, f := range all {
		for id := range f.places {
			ids[id] = true
		}
	}
	readers, err := s.Readers(ctx, slices.Collect(maps.Keys(ids)))
	if err != nil {
		return err
	}
	for _, f := range all {
		for id, p := range f.places {
			for _, r := range readers[id] {
				if r.Provider == "" { // the session itself
					f.Programs = addTo(f.Programs, string(r.Source))
				}
				if p.sent > 0 && r.Provider != "" && r.Through >= p.sent {
					f.Programs = addTo(f.Programs, string(r.Source))
					f.Providers = addTo(f.Providers, r.Provider)
				}
			}
		}
	}
	return nil
}

func addTo(all []string, one string) []string {
	if !slices.Contains(all, one) {
		all = append(all, one)
		slices.Sort(all)
	}
	return all
}

// listed orders the secrets and numbers them.
func listed(all map[[sha256.Size]byte]*found) []Secret {
	secrets := make([]Secret, 0, len(all))
	for _, f := range all {
		f.Places = make([]Place, 0, len(f.places))
		for _, p := range f.places {
			f.Places = append(f.Places, *p)
		}
		slices.SortFunc(f.Places, func(a, b Place) int { return compareRefs(a.First, b.First) })
		f.Rotate = rotate[f.Kind]
		secrets = append(secrets, f.Secret)
	}
	slices.SortFunc(secrets, func(a, b Secret) int {
		return cmp.Or(
			cmp.Compare(rankOf(&a), rankOf(&b)), cmp.Compare(b.Messages, a.Messages),
			b.LastSeen.Compare(a.LastSeen.Time), compareRefs(a.Places[0].First, b.Places[0].First), cmp.Compare(a.Kind, b.Kind),
		)
	})
	for i := range secrets {
		secrets[i].Number = i + 1
	}
	return secrets
}

func rankOf(s *Secret) int {
	switch {
	case s.Example:
		return 2
	case s.Known:
		return 0
	}
	return 1
}

func compareRefs(a, b session.MessageRef) int {
	return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Seq, b.Seq))
}

// rotate says where secrets of a kind are replaced by new ones.
var rotate = map[string]string{
	"age key":              "make a new one with age-keygen, and encrypt the files for it",
	"anthropic key":        "https://console.anthropic.com/settings/keys",
	"aws key id":           "https://console.aws.amazon.com/iam: its user, access keys",
	"databricks token":     "the workspace: settings, developer, access tokens",
	"digitalocean token":   "https://cloud.digitalocean.com/account/api/tokens",
	"doppler token":        "https://dashboard.doppler.com",
	"figma token":          "https://www.figma.com/settings",
	"github token":         "https://github.com/settings/tokens",
	"gitlab token":         "https://gitlab.com/-/user_settings/personal_access_tokens",
	"google api key":       "https://console.cloud.google.com/apis/credentials",
	"google client secret": "https://console.cloud.google.com/apis/credentials",
	"google token":         "https://myaccount.google.com/permissions; it ends after an hour",
	"groq key":             "https://console.groq.com/keys",
	"hugging face token":   "https://huggingface.co/settings/tokens",
	"jwt":                  "whoever issued it; most end by themselves",
	"linear key":           "https://linear.app/settings/api",
	"npm token":            "npm token revoke",
	"openai key":           "https://platform.openai.com/api-keys",
	"perplexity key":       "https://www.perplexity.ai/settings/api",
	"private key":          "make a new pair, and remove the old public key where it is trusted",
	"pypi token":           "https://pypi.org/manage/account",
	"replicate token":      "https://replicate.com/account/api-tokens",
	"sendgrid key":         "https://app.sendgrid.com/settings/api_keys",
	"sentry token":         "https://sentry.io/settings/account/api/auth-tokens",
	"shopify token":        "the settings of the app in the shop",
	"slack token":          "https://api.slack.com/apps",
	"slack webhook":        "https://api.slack.com/apps",
	"stripe key":           "https://dashboard.stripe.com/apikeys",
	"vault token":          "vault token revoke",
	"xai key":              "https://console.x.ai",
}
