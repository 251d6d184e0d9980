package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sessiond/internal/pattern"
)

// Patterns are compiled at their first use, so an error in one would only show then; and a command pays for no
// pattern that it does not use.
func TestPatternsCompileAndNoneAtStart(t *testing.T) {
	constants := map[string]map[string]ast.Expr{} // by folder
	var files []*ast.File
	folders := map[*ast.File]string{}
	for _, root := range []string{"../../internal", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(path, "testkit") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			folder := filepath.Dir(path)
			if constants[folder] == nil {
				constants[folder] = map[string]ast.Expr{}
			}
			addConstants(file, constants[folder])
			files = append(files, file)
			folders[file] = folder
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	expressions := map[string]string{} // each with its folder
	for _, file := range files {
		folder := folders[file]
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); !ok || g.Tok != token.VAR {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if _, ok := n.(*ast.FuncLit); ok {
					return false
				}
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch calledName(call) {
				case "signOf": // of the digest's rules
					var forms []string
					for _, a := range call.Args[1:] {
						form, _ := valueOf(a, constants[folder])
						forms = append(forms, form)
					}
					expressions["(?i)"+strings.Join(forms, "|")] = folder
				case "regexp.MustCompile":
					t.Errorf("%s: a package's variable is compiled at each start: use pattern.New", folder)
				case "pattern.New":
					if text, ok := valueOf(call.Args[0], constants[folder]); ok {
						expressions[text] = folder
					}
				}
				return true
			})
		}
	}
	if len(expressions) < 100 {
		t.Errorf("only %d patterns found", len(expressions))
	}
	lines := linesToMatch(t)
	for expression, folder := range expressions {
		plain, err := regexp.Compile(expression)
		if err != nil {
			t.Errorf("%s: %v", folder, err)
			continue
		}
		p := pattern.New(expression)
		for _, line := range lines {
			if got, want := p.MatchString(line), plain.MatchString(line); got != want {
				t.Errorf("%s: %.60s on %q: %v, without a look for its words %v", folder, expression, line, got, want)
				break
			}
		}
	}
}

// linesToMatch returns lines that people, models and tools write, in several languages.
func linesToMatch(t *testing.T) (lines []string) {
	t.Helper()
	for _, glob := range []string{
		"../summarize/testdata/*.txt", "../summarize/*/testdata/*.txt", "../text/stopwords.txt", "../../docs/c*.md",
		"../summarize/*.go", "../contextmgr/q*.go",
	} {
		paths, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(raw), "\n") {
				if line = strings.TrimSpace(line); i%16 == 0 && line != "" {
					lines = append(lines, line, strings.ToUpper(line))
				}
			}
		}
	}
	return append(lines, "ALWAY\u017f", "\u212aEEP", "no_", "x", " ", "")
}

func calledName(call *ast.CallExpr) string {
	if name, ok := call.Fun.(*ast.Ident); ok {
		return name.Name
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return x.Name + "." + s.Sel.Name
}

// addConstants adds the constants of a file.
func addConstants(file *ast.File, to map[string]ast.Expr) {
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v, ok := s.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for i, name := range v.Names {
				if i < len(v.Values) {
					to[name.Name] = v.Values[i]
				}
			}
		}
	}
}

// valueOf returns the value of a constant string. ok is false for another expression.
func valueOf(e ast.Expr, constants map[string]ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.Ident:
		v, known := constants[e.Name]
		if !known {
			return "", false
		}
		return valueOf(v, constants)
	case *ast.ParenExpr:
		return valueOf(e.X, constants)
	case *ast.BinaryExpr:
		x, okX := valueOf(e.X, constants)
		y, okY := valueOf(e.Y, constants)
		return x + y, okX && okY
	}
	return "", false
}
