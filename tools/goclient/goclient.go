// Package goclient writes the part of the Go client that follows from openapi.json: the types and a method for each
// operation.
package goclient

import (
	"bytes"
	"cmp"
	"fmt"
	"go/format"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// schema is what the generator knows of a JSON schema.
type schema struct {
	Ref         string            `json:"$ref"`
	Type        any               `json:"type"` // a name, or a list of a name and null
	Format      string            `json:"format"`
	Description string            `json:"description"`
	Enum        []any             `json:"enum"`
	Items       *schema           `json:"items"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	Minimum     float64           `json:"minimum"`
	AnyOf       []schema          `json:"anyOf"`
	Native      *schema           `json:"x-native"`
}

type parameter struct {
	Name        string `json:"name"`
	In          string `json:"in"`
	Style       string `json:"style"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Schema      schema `json:"schema"`
}

type content map[string]struct {
	Schema schema `json:"schema"`
}

type operation struct {
	ID          string      `json:"operationId"`
	Summary     string      `json:"summary"`
	Description string      `json:"description"`
	Parameters  []parameter `json:"parameters"`
	Body        *struct {
		Content content `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content content `json:"content"`
	} `json:"responses"`

	method, path string
}

const (
	refPrefix = "#/components/schemas/"
	jsonType  = "application/json"
	raw       = "json.RawMessage"
)

type generator struct {
	bytes.Buffer
	schemas  map[string]schema
	sent     map[string]bool // schemas of requests: what is absent is another thing than zero
	dialects []string
}

// Generate returns the source of a file of the client's package.
func Generate(openAPI []byte) ([]byte, error) {
	var doc struct {
		Paths      map[string]map[string]operation `json:"paths"`
		Components struct {
			Schemas map[string]schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	g := &generator{schemas: doc.Components.Schemas, sent: map[string]bool{}}
	var operations []operation
	for path, methods := range doc.Paths {
		for method, op := range methods {
			op.method, op.path = strings.ToUpper(method), path
			operations = append(operations, op)
			if op.Body != nil {
				g.markSent(op.Body.Content[jsonType].Schema)
			}
		}
	}
	slices.SortFunc(operations, func(a, b operation) int { return strings.Compare(a.ID, b.ID) })

	g.line("// Code generated from docs/openapi.json by tools/goclient. DO NOT EDIT.")
	g.line("")
	g.line("package sessiond")
	g.line("")
	g.line("import (\n\t\"context\"\n\t\"encoding/json\"\n\t\"time\"\n)")
	for i := range operations {
		g.operation(&operations[i])
	}
	for _, name := range slices.Sorted(maps.Keys(g.schemas)) {
		if s := g.schemas[name]; !isList(&s) {
			g.object(goName(name), &s, g.sent[name])
		}
	}
	g.dialect()
	return format.Source(g.Bytes())
}

// markSent marks the schemas that a request's body consists of.
func (g *generator) markSent(s schema) {
	if name, is := strings.CutPrefix(s.Ref, refPrefix); is && !g.sent[name] {
		g.sent[name] = true
		g.markSent(g.schemas[name])
	}
	if s.Items != nil {
		g.markSent(*s.Items)
	}
	for _, p := range s.Properties {
		g.markSent(p)
	}
	for _, one := range s.AnyOf {
		g.markSent(one)
	}
}

func (g *generator) line(format string, args ...any) { fmt.Fprintf(g, format+"\n", args...) }

// comment writes a comment, in lines of at most 118 characters.
func (g *generator) comment(indent, text string) {
	line := indent + "//"
	for word := range strings.FieldsSeq(text) {
		if len([]rune(line))+1+len([]rune(word)) > 118 && line != indent+"//" {
			g.line("%s", line)
			line = indent + "//"
		}
		line += " " + word
	}
	g.line("%s", line)
}

// operation writes the method of an operation with the type of its query. Answers that are no JSON are not written
// here.
func (g *generator) operation(op *operation) {
	answer, isJSON := answerOf(op)
	if !isJSON {
		return
	}
	name := goName(op.ID)
	args, query, header := "ctx context.Context", "nil", ""
	path := `"` + op.path + `"`
	var asked []parameter
	for i := range op.Parameters {
		switch p := &op.Parameters[i]; p.In {
		case "path":
			arg := safeName(p.Name)
			args += ", " + arg + " string"
			path = strings.Replace(path, "{"+p.Name+"}", `" + escape(`+arg+`) + "`, 1)
		case "query":
			asked = append(asked, *p)
		case "header":
			if p.Name == "Idempotency-Key" {
				header = ", keyed"
			}
		}
	}
	path = strings.TrimSuffix(path, ` + ""`)
	if len(asked) > 0 {
		g.query(name, asked)
		args, query = args+", query "+name+"Query", "queryOf(query)"
	}
	body := "nil"
	if op.Body != nil {
		s := op.Body.Content[jsonType].Schema
		args, body = args+", body "+cmp.Or(g.typeOf(&s, true), "any"), "body"
	}
	g.line("")
	g.comment("", name+": "+strings.TrimSuffix(op.Summary, ".")+". "+op.Description)
	call := fmt.Sprintf("ctx, c, %q,\n\t\t%s,\n\t\t%s, %s", op.method, path, query, body)
	if answer == nil {
		g.signature(name, args, "error")
		g.line("\treturn c.do(%s, nil, options%s)\n}", strings.Replace(call, "ctx, c,", "ctx,", 1), header)
		return
	}
	result := g.typeOf(answer, false)
	call = fmt.Sprintf("ask[%s](%s, options%s)", result, call, header)
	if result == raw || result == "Item" {
		g.signature(name, args, "("+result+", error)")
		g.line("\treturn value(%s)\n}", call)
		return
	}
	g.signature(name, args, "(*"+result+", error)")
	g.line("\treturn %s\n}", call)
}

func (g *generator) signature(name, args, results string) {
	line := fmt.Sprintf("func (c *Client) %s(%s, options ...Option) %s {", name, args, results)
	if len(line) > 120 {
		line = strings.Replace(line, ", options ...Option", ",\n\toptions ...Option,\n", 1)
	}
	if first, _, _ := strings.Cut(line, "\n"); len(first) > 120 {
		line = strings.Replace(line, ", query ", ",\n\tquery ", 1)
	}
	g.line("%s", line)
}

// answerOf returns the schema of the answer of success; nil: it has no body. isJSON is false if it is something else.
func answerOf(op *operation) (s *schema, isJSON bool) {
	for _, status := range []string{"200", "201", "202", "204"} {
		response, known := op.Responses[status]
		switch {
		case !known:
			continue
		case status == "204":
			return nil, true
		case len(response.Content) != 1:
			return nil, false
		}
		of, known := response.Content[jsonType]
		return &of.Schema, known
	}
	return nil, false
}

func (g *generator) query(operation string, parameters []parameter) {
	g.line("")
	g.comment("", operation+"Query has the parameters of "+operation+"; those with zero values are not sent.")
	g.line("type %sQuery struct {", operation)
	for i := range parameters {
		p := &parameters[i]
		g.comment("\t", described(goName(p.Name), p.Description, &p.Schema))
		name := p.Name
		if p.Schema.Type == "object" {
			name += "," + p.Style
			g.line("\t%s map[string]string `query:%q`", goName(p.Name), name)
			continue
		}
		of := g.typeOf(&p.Schema, true)
		if of == "bool" || of == "int64" && p.Schema.Minimum < 1 {
			of = "*" + of
		}
		g.line("\t%s %s `query:%q`", goName(p.Name), of, name)
	}
	g.line("}")
}

// described returns the comment of a field, with the values that it may have.
func described(name, description string, s *schema) string {
	text := name + ": " + cmp.Or(description, s.Description)
	if len(s.Enum) > 0 && goName(name) != "Dialect" {
		values := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			values[i] = fmt.Sprint(v)
		}
		text = strings.TrimSuffix(text, ".") + ". One of: " + strings.Join(values, ", ")
	}
	return text
}

func (g *generator) object(name string, s *schema, sent bool) {
	g.line("")
	g.comment("", cmp.Or(strings.TrimPrefix(s.Description, " "), name+" is "+article(name)+" of the API."))
	if len(s.Properties) == 0 {
		g.line("type %s = %s", name, raw)
		return
	}
	g.line("type %s struct {", name)
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[field]
		g.comment("\t", described(goName(field), "", &p))
		g.line("\t%s %s", goName(field), g.field(field, &p, slices.Contains(s.Required, field), sent))
	}
	g.line("}")
}

func article(name string) string {
	if strings.HasSuffix(name, "Request") {
		return "a body"
	}
	return "an object"
}

// field returns the type and the tag of a struct's field.
func (g *generator) field(name string, s *schema, required, sent bool) string {
	of, null := g.typeOf(s, sent), isNullable(s)
	isObject := s.Ref != "" || len(s.AnyOf) > 0 && !strings.HasPrefix(of, "json.") && of != "any"
	omit := ",omitzero"
	if required {
		omit = ""
	}
	switch {
	case sent && !required && (null || strings.Contains(s.Description, `""`)): // absent is another thing than empty
		of = "Field[" + of + "]"
	case isObject && (null || !required),
		null && of != raw && of != "any" && of != "Item" && !strings.HasPrefix(of, "[]"),
		sent && !required && slices.Contains([]string{"int64", "float64", "bool"}, of):
		of = "*" + of
	case of == "any" && !required:
		omit = ",omitempty"
	}
	return fmt.Sprintf("%s `json:%q`", of, name+omit)
}

// typeOf returns the type of a schema's values that are not null; "any" or raw JSON for what the generator does not
// know.
func (g *generator) typeOf(s *schema, sent bool) string {
	unknown := raw
	if sent {
		unknown = "any"
	}
	if name, is := strings.CutPrefix(s.Ref, refPrefix); is {
		if of := g.schemas[name]; isList(&of) {
			items := of.Properties["data"]
			return "List[" + g.typeOf(items.Items, sent) + "]"
		}
		return goName(name)
	}
	if s.Native != nil && !sent {
		return "Item"
	}
	if len(s.AnyOf) == 2 && s.AnyOf[1].Type == "null" {
		return g.typeOf(&s.AnyOf[0], sent)
	}
	switch kindOf(s) {
	case "string":
		if s.Format == "date-time" {
			return "time.Time"
		}
		for _, name := range s.Enum {
			if name == "openai.chat" {
				g.addDialects(s.Enum)
				return "Dialect"
			}
		}
		return "string"
	case "integer":
		return "int64"
	case "number":
		return "float64"
	case "boolean":
		return "bool"
	case "array":
		if s.Items != nil {
			return "[]" + g.typeOf(s.Items, sent)
		}
	}
	return unknown
}

func (g *generator) addDialects(names []any) {
	for _, v := range names {
		if name, is := v.(string); is && !slices.Contains(g.dialects, name) {
			g.dialects = append(g.dialects, name)
		}
	}
}

// dialect writes the names of the forms of messages.
func (g *generator) dialect() {
	slices.Sort(g.dialects)
	g.line("\n// Dialect is a form of messages and contexts: a provider's, or sessiond's own.\ntype Dialect string")
	g.line("\n// The forms of messages.\nconst (")
	for _, name := range g.dialects {
		g.line("\t%s Dialect = %q", goName(strings.NewReplacer(".", "_", "openai", "openAI").Replace(name)), name)
	}
	g.line(")")
}

// isList reports whether a schema is a page of items and nothing else.
func isList(s *schema) bool {
	_, data := s.Properties["data"]
	_, next := s.Properties["next_cursor"]
	return data && next && len(s.Properties) == 2
}

// kindOf returns the type of a schema without null.
func kindOf(s *schema) string {
	switch of := s.Type.(type) {
	case string:
		return of
	case []any:
		if len(of) == 2 && of[1] == "null" {
			name, _ := of[0].(string)
			return name
		}
	}
	return ""
}

func isNullable(s *schema) bool {
	types, _ := s.Type.([]any)
	return slices.Contains(types, any("null")) || len(s.AnyOf) == 2 && s.AnyOf[1].Type == "null"
}

// initials are words that Go writes in capitals.
var initials = map[string]string{"id": "ID", "sql": "SQL", "usd": "USD", "url": "URL", "json": "JSON", "ui": "UI"}

// goName returns the exported Go name of a field, a schema or an operation.
func goName(name string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune("_-. ", r) }) {
		if capital, known := initials[strings.ToLower(word)]; known {
			b.WriteString(capital)
			continue
		}
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// safeName returns the name of an argument.
func safeName(name string) string {
	if name == "type" || name == "range" {
		return name + "_"
	}
	return name
}
