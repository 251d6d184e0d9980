// Command models renews the built-in catalogue of models from a list that a package ships. scripts/models calls it.
//
//	models SOURCE DATE LIST... > catalogue.json
//
// LIST is a file of models.dev's form, or one of pi's for each provider, named after it. The catalogue only grows: a
// model keeps its old prices, and a price that differs from the newest known one is added with the day of the list.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/usage"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "models:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 3 {
		return errors.New("use: models SOURCE DATE LIST, with one list or more")
	}
	source, day, files := args[0], args[1], args[2:]
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return fmt.Errorf("%q is not a day like 2026-11-20", day)
	}
	text, err := readLists(files)
	if err != nil {
		return err
	}
	list, err := usage.ParseList(text, source, day)
	if err != nil {
		return err
	}
	for _, skipped := range list.Skipped {
		fmt.Fprintln(os.Stderr, "skipped", skipped)
	}
	renewed, err := usage.Renewed(list)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(renewed)
	return err
}

// readLists returns one list of all providers: the only file, or an object of several by their names.
func readLists(files []string) ([]byte, error) {
	if len(files) == 1 {
		return os.ReadFile(files[0])
	}
	providers := map[string]jsontext.Value{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		providers[strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))] = text
	}
	return json.Marshal(providers)
}
