// Command oapi-codegen takes a turn with the client that oapi-codegen generates from docs/openapi.json.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"try/oapi-codegen/api"
)

func main() {
	ctx := context.Background()
	client, err := api.NewClientWithResponses(os.Getenv("DAEMON"),
		api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
			return nil
		}))
	if err != nil {
		log.Fatal(err)
	}
	made, err := client.CreateSessionWithResponse(ctx, &api.CreateSessionParams{IdempotencyKey: new("oapi")},
		api.NewSessionRequest{Title: new("oapi-codegen"), Metadata: &map[string]any{"user": "u_7"}})
	if err != nil {
		log.Fatal(err)
	}
	id := made.JSON201.Id
	turn, err := client.TakeTurnWithResponse(ctx, id, nil, api.TurnRequest{
		Dialect:  new(api.TurnRequestDialectOpenaiChat),
		Messages: &[]any{map[string]any{"role": "user", "content": "How high is the water?"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	messages, _ := json.Marshal((*turn.JSON201.Context.Request)["messages"])
	fmt.Println(string(messages))
	listed, err := client.ListMessagesWithResponse(ctx, id, nil)
	if err != nil {
		log.Fatal(err)
	}
	content, _ := json.Marshal(listed.JSON200.Data[0]["content"])
	fmt.Println(string(content), listed.JSON200.NextCursor == nil)
	found, err := client.ListSessionsWithResponse(ctx, &api.ListSessionsParams{
		Metadata: &map[string]string{"user": "u_7"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(found.JSON200.Data))
	popped, err := client.PopMessageWithResponse(ctx, id, nil, api.PopRequest{ExpectHead: new("1")})
	if err != nil || popped.JSON200 == nil {
		log.Fatal(err, popped)
	}
	states, err := client.PutStatesWithResponse(ctx, id, nil, api.StatesRequest{
		States: []api.StateChangeRequest{{Name: "todos", Value: []string{"a"}, IfRevision: new(int64(0))}},
	})
	if err != nil || states.JSON200 == nil {
		log.Fatal(err, states)
	}
	missing, err := client.ReadSessionWithResponse(ctx, "20200101_001", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(missing.ApplicationproblemJSON404.Code)
}
