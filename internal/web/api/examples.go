package api

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// examplesJSON is a conversation with the API, request after request. A test sends them to a server and
// compares the answers.
//
//go:embed examples.json
var examplesJSON []byte

// example is one request and its answer. Without a recorded answer only the status is known.
type example struct {
	Operation string         `json:"operation"`
	Path      string         `json:"path"`
	Body      jsontext.Value `json:"body"`
	Status    int            `json:"status"`
	Answer    jsontext.Value `json:"answer"`
}

// showExample adds the first example of an operation to its OpenAPI description.
func showExample(op *huma.Operation) {
	var all []example
	if err := json.Unmarshal(examplesJSON, &all); err != nil {
		panic(fmt.Sprintf("read examples.json: %v", err)) // embedded; every test reads it
	}
	for _, e := range all {
		if e.Operation != op.OperationID {
			continue
		}
		if e.Body != nil {
			op.RequestBody.Content["application/json"].Example = e.Body
		}
		if answer := op.Responses[strconv.Itoa(e.Status)]; e.Answer != nil && answer != nil {
			answer.Content["application/json"].Example = e.Answer
		}
		return
	}
}
