// Command ogen takes a turn with the client that ogen generates from docs/openapi.json.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"try/ogen/api"

	"github.com/go-faster/jx"
)

type security string

func (s security) Token(context.Context, api.OperationName) (api.Token, error) {
	return api.Token{Token: string(s)}, nil
}

func main() {
	ctx := context.Background()
	client, err := api.NewClient(os.Getenv("DAEMON"), security(os.Getenv("TOKEN")))
	if err != nil {
		log.Fatal(err)
	}
	made, err := client.CreateSession(ctx, api.NewOptNewSessionRequest(api.NewSessionRequest{
		Title:    api.NewOptString("ogen"),
		Metadata: api.NewOptNewSessionRequestMetadata(map[string]jx.Raw{"user": jx.Raw(`"u_7"`)}),
	}), api.CreateSessionParams{IdempotencyKey: api.NewOptString("ogen")})
	if err != nil {
		log.Fatal(err)
	}
	id := made.(*api.SessionHeaders).Response.ID
	taken, err := client.TakeTurn(ctx, api.NewOptTurnRequest(api.TurnRequest{
		Dialect:  api.NewOptTurnRequestDialect(api.TurnRequestDialectOpenaiChat),
		Messages: []jx.Raw{jx.Raw(`{"role":"user","content":"How high is the water?"}`)},
	}), api.TakeTurnParams{ID: id})
	if err != nil {
		log.Fatal(err)
	}
	turn := taken.(*api.Turn)
	fmt.Println(string(turn.Context.Value.Request.Value["messages"]))
	listed, err := client.ListMessages(ctx, api.ListMessagesParams{ID: id})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(listed.(*api.MessageList).Data[0]["content"]), listed.(*api.MessageList).NextCursor.Null)
	found, err := client.ListSessions(ctx, api.ListSessionsParams{
		Metadata: api.NewOptListSessionsMetadata(map[string]string{"user": "u_7"}),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(found.(*api.ListListedSession).Data))
	_, err = client.PopMessage(ctx, api.NewOptPopRequest(api.PopRequest{ExpectHead: api.NewOptNilString("1")}),
		api.PopMessageParams{ID: id})
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.PutStates(ctx, api.NewOptStatesRequest(api.StatesRequest{
		States: []api.StateChangeRequest{{Name: "todos", Value: jx.Raw(`["a"]`), IfRevision: api.NewOptInt64(0)}},
	}), api.PutStatesParams{ID: id})
	if err != nil {
		log.Fatal(err)
	}
	missing, err := client.ReadSession(ctx, api.ReadSessionParams{ID: "20200101_001"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(missing.(*api.ReadSessionNotFound).Code)
}
