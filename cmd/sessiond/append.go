package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"sessiond/internal/dialect"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/web/api"
)

type appendFlags struct {
	create                     bool
	title, model, key, dialect string
	metadata                   map[string]string
	parent, expectHead         string
}

func (a *app) appendCommand() *cobra.Command {
	var f appendFlags
	cmd := &cobra.Command{
		Use:   "append SESSION [ROLE TEXT]",
		Short: "Append a message, or messages as JSON from standard input",
		Long: "Appends a message to a session. ROLE is user, assistant, system or tool; a TEXT of - is read\n" +
			"from standard input. Without ROLE and TEXT it reads JSON from standard input: a message, an\n" +
			"array of messages, or {\"messages\": […]}. --new begins a new session.",
		Example: "  sessiond append --new --title 'A plan' user 'Where do we begin?'\n" +
			"  sessiond append @ assistant 'At the beginning.'\n" +
			"  sessiond append 20260211_001 --dialect openai.chat < messages.json",
		Args: arguments(0, 3), ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if !f.create {
				for _, flag := range []string{"title", "model", "key", "metadata"} {
					if cmd.Flags().Changed(flag) {
						return usagef("--%s is of a new session: add --new, or leave it out", flag)
					}
				}
				if len(args) == 0 {
					return usagef("name a session, or begin one with --new")
				}
				name, args = args[0], args[1:]
			}
			if _, nameless := f.metadata[""]; nameless {
				return usagef("--metadata is NAME=VALUE, with a name")
			}
			if len(args) == 1 || len(args) > 2 {
				return usagef("a message is a role and a text, e.g. user 'hello'; leave out both to read JSON from standard input")
			}
			return a.append(cmd.Context(), name, args, f)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.create, "new", false, "begin a new session")
	fl.StringVar(&f.title, "title", "", "`TITLE` of a new session")
	fl.StringVar(&f.model, "model", "", "`MODEL` of a new session")
	fl.StringVar(&f.key, "key", "", "routing `KEY` of a new session")
	fl.StringToStringVar(&f.metadata, "metadata", nil, "metadata of a new session: `NAME=VALUE`, also several times")
	fl.Lookup("metadata").DefValue = "" // help would print []
	wordFlag(cmd, &f.dialect, "dialect", "form of the JSON: "+strings.Join(dialect.Names(), ", ")+" (default: detected)",
		dialect.Names()...)
	fl.StringVar(&f.parent, "parent", "", "append after this `MESSAGE` (SEQ or SESSION.SEQ) and move the head there")
	fl.StringVar(&f.expectHead, "expect-head", "",
		"fail unless this `MESSAGE` is the head (SEQ, SESSION.SEQ, or null for an empty session)")
	return cmd
}

// metadataObject returns --metadata as JSON, nil without it.
func (f *appendFlags) metadataObject() session.JSON {
	if len(f.metadata) == 0 {
		return nil
	}
	return session.JSONOf(f.metadata)
}

func (a *app) append(ctx context.Context, name string, args []string, f appendFlags) error {
	raw, err := a.messagesOf(ctx, args)
	if err != nil {
		return err
	}
	decoded, err := dialect.Decode(f.dialect, raw)
	if err != nil {
		return err
	}
	for _, w := range decoded.Warnings {
		a.warn("%s", w)
	}
	return a.with(ctx, wiring{}, func(s *opened) error {
		in := store.Append{Messages: decoded.Messages}
		if f.create {
			key, err := a.key(f.key)
			if err != nil {
				return err
			}
			made, err := s.store.CreateSession(ctx, store.NewSession{
				Title: f.title, Model: f.model, Key: key, Directory: a.dir,
				Metadata: f.metadataObject(),
			})
			if err != nil {
				return err
			}
			in.Session = made.ID
		} else {
			sess, err := a.resolve(ctx, s.store, name)
			if err != nil {
				return err
			}
			in.Session = sess.ID
		}
		if in.Parent, err = a.namedMessage(ctx, s.store, "--parent", f.parent, in.Session, nil); err != nil {
			return err
		}
		if in.ExpectHead, err = a.expectedHead(ctx, s.store, f.expectHead, in.Session); err != nil {
			return err
		}
		done, err := s.store.Append(ctx, in)
		if err != nil {
			return err
		}
		if err := a.printAppended(done); err != nil {
			return err
		}
		a.keepSearchable(ctx, s)
		return nil
	})
}

// keepSearchable indexes new messages, because the daemon may not run. After an update the index
// may be rebuilt, so a terminal shows the progress.
func (a *app) keepSearchable(ctx context.Context, s *opened) {
	err := a.index(ctx, s, indexedUnseen)
	if err == nil {
		return
	}
	said := "stored, but not searchable yet; the daemon or the next append updates the search index"
	if ctx.Err() == nil { // else the user stopped it
		said += ": " + err.Error()
	}
	a.warn("%s", said)
}

// messagesOf returns the messages of a command line as JSON.
func (a *app) messagesOf(ctx context.Context, args []string) ([]jsontext.Value, error) {
	if len(args) == 2 {
		text := args[1]
		if text == "-" {
			b, err := a.appended(ctx)
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if at := firstFault(text); at > 0 {
			return nil, session.Errorf(session.Malformed, "the text is not UTF-8 (byte %d); nothing was stored", at)
		}
		m, err := session.MarshalPlain(map[string]string{"role": args[0], "content": text})
		return []jsontext.Value{m}, err
	}
	if a.inTTY {
		return nil, usagef("no message: give a role and a text, or JSON on standard input")
	}
	b, err := a.appended(ctx)
	if err != nil {
		return nil, err
	}
	return messagesIn(b)
}

// appended reads what is to be appended, in the limit of an append over HTTP. Codes: TooLarge.
func (a *app) appended(ctx context.Context) ([]byte, error) {
	b, err := a.input(ctx, api.MessageBody)
	if session.CodeOf(err) == session.TooLarge {
		err = fmt.Errorf("%w, the limit of one append; nothing was stored: append in several parts", err)
	}
	return b, err
}

// firstFault returns the position, from 1, of the first byte that is not UTF-8; 0 if there is none.
func firstFault(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			return i + 1
		}
	}
	return 0
}

// messagesIn parses one message, an array of them, or an object with messages.
func messagesIn(b []byte) ([]jsontext.Value, error) {
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return nil, usagef("standard input is empty: give a role and a text, or JSON")
	}
	var all []jsontext.Value
	object := struct {
		Messages *[]jsontext.Value `json:"messages"`
	}{}
	isArray := b[0] == '['
	into := any(&object)
	if isArray {
		into = &all
	}
	if err := json.Unmarshal(b, into); err != nil {
		return nil, session.Errorf(session.Malformed,
			"standard input is not a JSON message, an array of messages or {\"messages\": […]}: %s", jsonFault(err))
	}
	switch {
	case isArray:
		return all, nil
	case object.Messages != nil:
		return *object.Messages, nil
	}
	return []jsontext.Value{b}, nil
}

// jsonFault describes an error in JSON, without the names of Go types.
func jsonFault(err error) string {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind):
		return cmp.Or(kind.Field, "it") + " is a " + kind.Value
	case errors.As(err, &syntax):
		return fmt.Sprintf("%s (byte %d)", syntax, syntax.Offset)
	}
	return err.Error()
}

// expectedHead parses --expect-head: nil without it, an empty session for null.
func (a *app) expectedHead(ctx context.Context, s *store.Store, value string,
	own session.ID,
) (*store.ExpectHead, error) {
	if value == "null" {
		return &store.ExpectHead{}, nil
	}
	ref, err := a.namedMessage(ctx, s, "--expect-head", value, own, nil)
	if err != nil || ref == nil {
		return nil, err
	}
	return &store.ExpectHead{Ref: ref}, nil
}

func (a *app) printAppended(done store.Appended) error {
	if a.flags.json {
		return a.printJSON(map[string]any{
			"session_id": done.Session.ID, "messages": done.Messages, "head": done.Head,
			"revision": done.Revision, "context_tokens": done.ContextTokens,
		})
	}
	for _, m := range done.Messages {
		if _, err := fmt.Fprintln(a.out, m.ID); err != nil {
			return err
		}
	}
	return nil
}
