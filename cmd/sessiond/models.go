package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sessiond/internal/config"
	"sessiond/internal/engine"
	"sessiond/internal/session"
	"sessiond/internal/store"
	"sessiond/internal/transcript"
	"sessiond/internal/usage"
)

func (a *app) modelsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "models [NAME...]", Short: "List the models that are known, with windows and prices",
		Args: arguments(0, maxNames),
		Long: "Windows and prices come from the built-in catalogue, from lists that other programs keep on this\n" +
			"host (opencode's cache of models.dev, pi's models.json and its store), from a list that\n" +
			"`models update` read, and from your own models.json beside the configuration, which counts most.\n" +
			"Prices are US dollars per million tokens. A call has the price of its day.",
		Example: "  sessiond models\n  sessiond models opus gpt-6\n  sessiond models update https://models.dev/api.json",
		RunE: func(_ *cobra.Command, args []string) error {
			a.readHostLists()
			return a.listModels(args)
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use: "update FILE|URL", Short: "Read a newer list of models", Args: arguments(1, 1),
		Long: "Reads a list of models, in the form of https://models.dev/api.json or of the catalogue. It adds\n" +
			"models and changed prices, and prices the stored calls anew. sessiond fetches a list only here.",
		Example: "  sessiond models update https://models.dev/api.json\n  sessiond models update api.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.updateModels(cmd.Context(), args[0])
		},
	})
	return cmd
}

const maxNames = 100

// listedModel is a model as `models --json` prints it.
type listedModel struct {
	session.ModelInfo
	Known  bool            `json:"known"`
	Prices []session.Price `json:"prices"`
}

func (a *app) listModels(names []string) error {
	catalogue, err := a.catalogue()
	if err != nil {
		return err
	}
	var found []listedModel
	for _, m := range catalogue.Models() {
		matches := func(name string) bool { return strings.Contains(strings.ToLower(m.ID), strings.ToLower(name)) }
		if len(names) == 0 || slices.ContainsFunc(names, matches) {
			found = append(found, listedModel{m, true, catalogue.PricesOf(m.ID)})
		}
	}
	for _, name := range names { // as a program may write it
		m, known := catalogue.Model(name)
		if !slices.ContainsFunc(found, func(f listedModel) bool {
			return f.ID == m.ID || strings.Contains(strings.ToLower(f.ID), strings.ToLower(name))
		}) {
			found = append(found, listedModel{m, known, catalogue.PricesOf(m.ID)})
		}
	}
	slices.SortStableFunc(found, func(a, b listedModel) int { return cmp.Compare(a.Provider, b.Provider) })
	if a.flags.json {
		return a.printJSON(struct {
			Models []listedModel `json:"models"`
			Lists  []usage.List  `json:"lists"`
		}{found, catalogue.Lists()})
	}
	rows := make([][]string, len(found))
	for i := range found {
		rows[i] = modelRow(&found[i])
	}
	a.printTable([]column{
		{name: "model", grow: true, least: 20},
		{name: "provider", keep: 3},
		{name: "window", right: true},
		{name: "output", right: true, keep: 1},
		{name: "$ in", right: true, keep: 7},
		{name: "$ cached", right: true, keep: 4},
		{name: "$ out", right: true, keep: 7},
		{name: "since", keep: 2},
		{name: "from", keep: 5},
	}, rows)
	for _, m := range found {
		if !m.Known {
			fmt.Fprintln(a.out, printable(unknownModel(&m.ModelInfo)))
		}
	}
	for _, l := range catalogue.Lists() {
		if l.Count > 0 || l.Source != usage.SourceOwn {
			fmt.Fprintln(a.out, a.dim(a.fit(printable(listLine(&l)), "  ")))
		}
	}
	return nil
}

func modelRow(m *listedModel) []string {
	row := []string{
		m.ID, m.Provider, transcript.Count(m.Window), transcript.Count(m.MaxOutput), "?", "", "?", "",
		m.Source,
	}
	if !m.Known {
		row[2] = "≈ " + row[2]
	}
	for _, p := range slices.Backward(m.Prices) {
		if p.Mode == "" && p.Above == 0 {
			row[4], row[5], row[6] = perMillion(p.Input), perMillion(p.CacheRead), perMillion(p.Output)
			if p.ValidFrom > "2001" {
				row[7] = p.ValidFrom
			}
			break
		}
	}
	return row
}

// perMillion formats nano-dollars per token as dollars per million tokens.
func perMillion(nano int64) string { return strconv.FormatFloat(float64(nano)/1000, 'f', -1, 64) }

// unknownModel says what is assumed of a model that is not in the catalogue.
func unknownModel(m *session.ModelInfo) string {
	like := "the smallest usual one"
	if m.Like != "" {
		like = "that of " + m.Like
	}
	return fmt.Sprintf("%s is not in the catalogue: no price, and a window of %s tokens is assumed, %s.", m.ID,
		transcript.Count(m.Window), like)
}

func listLine(l *usage.List) string {
	line := l.Source
	if l.Date != "" {
		line += " of " + l.Date
	}
	line += ": " + transcript.Counted(int64(l.Count), "model")
	if l.Path != "" {
		line += ", " + l.Path
	}
	return line
}

// listsFile returns the path of the lists that were read, beside the database.
func listsFile(cfg *config.Config) string { return filepath.Join(cfg.DataDir(), "model-lists.json") }

// storedLists returns the lists that were read. A damaged file, or one of a newer version, only lacks what they add.
func (a *app) storedLists(cfg *config.Config) *usage.Stored {
	path := listsFile(cfg)
	text, err := os.ReadFile(path)
	if err == nil {
		var stored *usage.Stored
		if stored, err = usage.ParseStored(text); err == nil {
			return stored
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		a.warnOfLists(cfg, err)
	}
	return usage.NoLists()
}

// warnOfLists says once that the lists that were read cannot be used.
func (a *app) warnOfLists(cfg *config.Config, err error) {
	if !a.warnedOfLists {
		a.warnedOfLists = true
		a.warn("the lists of models in %s are left out: %s. `sessiond models update` writes them anew", listsFile(cfg), err)
	}
}

// hostList is a file in which a program keeps a list of models.
type hostList struct {
	source, path string
	added        bool // it only adds models
}

// hostLists returns where programs keep lists of models on this host.
func (a *app) hostLists() []hostList {
	home := a.getenv("HOME")
	if home == "" {
		return nil
	}
	cache := cmp.Or(a.getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache"))
	pi := cmp.Or(a.getenv("PI_CODING_AGENT_DIR"), filepath.Join(home, ".pi", "agent"))
	return []hostList{
		{"opencode", filepath.Join(cache, "opencode", "models.json"), false},
		{"pi", filepath.Join(pi, "models-store.json"), true},
		{"pi", filepath.Join(pi, "models.json"), true},
	}
}

// maxList is the largest list that is read, in bytes: models.dev's has 5 MB.
const maxList = 64 << 20

// readHostLists reads the lists on this host that changed since they were read. What cannot be read is left out with a
// warning: nobody asked for it.
func (a *app) readHostLists() {
	cfg, err := a.load(nil)
	if err != nil {
		return // the command says so
	}
	var stored *usage.Stored
	changed := false
	for _, host := range a.hostLists() {
		info, err := os.Stat(host.path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxList {
			continue
		}
		if stored == nil {
			stored = a.storedLists(cfg)
		}
		stamp := fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
		if slices.ContainsFunc(stored.Lists, func(l usage.List) bool { return l.Path == host.path && l.Stamp == stamp }) {
			continue
		}
		changed = true
		list := &usage.List{
			Source: host.source, Path: host.path, Date: a.listDay(info.ModTime()), Stamp: stamp,
			Added: host.added,
		}
		if text, err := os.ReadFile(host.path); err != nil {
			a.warn("the list of models in %s is left out: %s", host.path, err)
		} else if read, err := usage.ParseList(text, host.source, list.Date); err == nil {
			list.Models = read.Models
		} else if !host.added { // pi's files are often without a model
			a.warn("the list of models in %s is left out: %s", host.path, err)
		}
		if _, _, err := stored.Put(*list); err != nil {
			a.warn("the list of models in %s is left out: %s", host.path, err)
		}
	}
	if changed {
		if err := saveLists(cfg, stored); err != nil {
			a.warn("the lists of models of other programs are not kept: %s", err)
		}
	}
}

// listDay returns the day of a list by the time of its file, which no clock of tomorrow changes.
func (a *app) listDay(modified time.Time) string {
	if now := a.now(); modified.After(now) {
		modified = now
	}
	return modified.UTC().Format(time.DateOnly)
}

// saveLists replaces the file of lists.
func saveLists(cfg *config.Config, stored *usage.Stored) error {
	text, err := stored.Text()
	if err != nil {
		return err
	}
	path := listsFile(cfg)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return replaceFile(path, text)
}

func (a *app) updateModels(ctx context.Context, from string) error {
	cfg, err := a.load(nil)
	if err != nil {
		return err
	}
	text, day, err := a.readList(ctx, from)
	if err != nil {
		return session.Errorf(session.Invalid, "no list of models from %s: %w", from, err)
	}
	list, err := usage.ParseList(text, listSource(from), day)
	if err != nil {
		return session.Errorf(session.CodeOf(err), "%s is no list of models: %w. Nothing changed", from, err)
	}
	list.Path = from
	if !isAddress(from) {
		list.Path = a.absolute(from)
	}
	stored := a.storedLists(cfg)
	models, prices, err := stored.Put(*list)
	if err != nil {
		return err
	}
	if err := saveLists(cfg, stored); err != nil {
		return fmt.Errorf("keep the list: %w", err)
	}
	repriced, err := a.repriceStored(ctx, cfg)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(map[string]any{
			"models": list.Count, "new_models": models, "new_prices": prices, "calls_priced_anew": repriced,
			"skipped": list.Skipped, "date": list.Date,
		})
	}
	fmt.Fprintf(a.out, "%s of %s: %s, %s new, %s changed\n", printable(list.Source), list.Date,
		transcript.Counted(int64(list.Count), "model"), transcript.Count(int64(models)),
		transcript.Counted(int64(prices), "price"))
	if repriced > 0 {
		fmt.Fprintf(a.out, "%s have another cost now\n", transcript.Counted(repriced, "stored call"))
	}
	if n := len(list.Skipped); n > 0 {
		a.warn("%s left out: %s", transcript.Counted(int64(n), "model"), strings.Join(list.Skipped[:min(n, 3)], "; "))
	}
	if list.Date <= catalogueDate() {
		a.warn("the list is not newer than the built-in catalogue, of %s: it only adds models", catalogueDate())
	}
	if a.daemonServes(ctx) {
		fmt.Fprintln(a.out, "The running daemon uses it from its next start on.")
	}
	return nil
}

// catalogueDate returns the day of the built-in catalogue.
func catalogueDate() string {
	c, err := usage.Load(nil)
	if err != nil {
		return ""
	}
	return c.Lists()[0].Date
}

func isAddress(from string) bool {
	return strings.HasPrefix(from, "https://") || strings.HasPrefix(from, "http://")
}

// listSource names a list by its address or file.
func listSource(from string) string {
	if rest, ok := strings.CutPrefix(from, "https://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		return host
	}
	return filepath.Base(from)
}

// readList reads a file or an address.
func (a *app) readList(ctx context.Context, from string) (text []byte, day string, err error) {
	if !isAddress(from) {
		info, err := os.Stat(from)
		if err != nil {
			return nil, "", err
		}
		if info.Size() > maxList {
			return nil, "", fmt.Errorf("it has %s; a list has at most %s", transcript.Size(info.Size()),
				transcript.Size(maxList))
		}
		text, err = os.ReadFile(from)
		return text, a.listDay(info.ModTime()), err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it is only read
	if resp.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("the server answered %s", resp.Status)
	}
	text, err = io.ReadAll(io.LimitReader(resp.Body, maxList+1))
	if err == nil && len(text) > maxList {
		err = fmt.Errorf("it is larger than %s", transcript.Size(maxList))
	}
	return text, a.listDay(a.now()), err
}

// repriceStored writes the catalogue into the database, if there is one, and prices stored calls anew.
func (a *app) repriceStored(ctx context.Context, cfg *config.Config) (repriced int64, err error) {
	if _, err := os.Stat(cfg.DB); err != nil && !engine.IsPostgres(cfg.DB) {
		return 0, nil
	}
	catalogue, err := a.catalogue()
	if err != nil {
		return 0, err
	}
	err = a.write(ctx, func(s *store.Store) error {
		repriced, err = recordCatalogue(ctx, s, catalogue)
		return err
	})
	return repriced, err
}
