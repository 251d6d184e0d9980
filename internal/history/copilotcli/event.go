package copilotcli

import (
	"github.com/go-json-experiment/json/jsontext"

	"sessiond/internal/history"
	"sessiond/internal/jsonx"
	"sessiond/internal/session"
)

// event is a line of a session. Its parentId names the line before it, also one of another agent: the order
// of the lines says the same, and it is not kept.
type event struct {
	history.Event `json:"-"`

	Type      string         `json:"type"`
	ID        string         `json:"id"`
	Timestamp string         `json:"timestamp"`
	ParentID  jsontext.Value `json:"parentId"`
	AgentID   string         `json:"agentId"` // the sub-agent that wrote it; "": the main agent
	Data      jsontext.Value `json:"data"`
	Rest      jsontext.Value `json:",embed"`
}

// Head names the event.
func (e *event) Head() (of *history.Event, id, timestamp string, ok bool) {
	return &e.Event, e.ID, e.Timestamp, e.Type != "" && e.Data.Kind() == '{'
}

// decode reads the data of an event. If a field has another type, the event is Wrong.
func (e *event) decode(to any) bool {
	if jsonx.Unmarshal(e.Data, to) != nil {
		e.Wrong = "not an event as Copilot CLI writes it"
	}
	return e.Wrong == ""
}

// message begins the message of an event. held are the fields of its data that it holds.
func (e *event) message(kind session.Kind, role session.Role, origin session.Origin, held ...string) session.Message {
	var rest jsonx.Object
	if kind != session.KindMessage {
		rest = append(rest, jsonx.MemberOf("type", e.Type))
	}
	if !e.Timed && e.Timestamp != "" {
		rest = append(rest, jsonx.MemberOf("timestamp", e.Timestamp))
	}
	data, _ := jsonx.ReadFields(e.Data)
	rest = rest.WithRest("line", e.Rest).WithRest("data", data.Without(held...).Column())
	return e.Message(kind, role, origin, session.SourceCopilotCLI, rest)
}

func plain(s string) string { return history.Plain(s) }

// started is the data of session.start.
type started struct {
	SessionID string `json:"sessionId"`
	StartTime string `json:"startTime"`
	Model     string `json:"selectedModel"`
	Context   struct {
		CWD    string `json:"cwd"`
		Branch string `json:"branch"`
	} `json:"context"`
	Spawner string `json:"detachedFromSpawningParentSessionId"`
}

// said is the data of system.message, user.message and assistant.reasoning.
type said struct {
	Content     string `json:"content"`
	Transformed string `json:"transformedContent"` // of a user's message: what the model saw
	Source      string `json:"source"`             // the part of the program that wrote it; "": a person did

	Attachments jsontext.Value `json:"attachments"`
}

// pictures returns the pictures of a prompt. all is true if nothing else is attached.
func (d *said) pictures() (parts []session.Part, all bool) {
	var attached []struct {
		Type      string         `json:"type"`
		Data      []byte         `json:"data"`
		MediaType string         `json:"mimeType"`
		Rest      jsontext.Value `json:",embed"`
	}
	if jsonx.Unmarshal(d.Attachments, &attached) != nil {
		return nil, false
	}
	for _, a := range attached {
		if a.Type == blobType && len(a.Data) > 0 {
			parts = append(parts, session.Part{
				Kind: history.MediaKind(a.MediaType), Extra: jsonx.Object{}.WithRest("rest", a.Rest).Column(),
				Blob: &session.Blob{MediaType: plain(a.MediaType), Data: a.Data, Size: int64(len(a.Data))},
			})
		}
	}
	return parts, len(parts) == len(attached)
}

// blobType is the type of an attachment that holds a file.
const blobType = "blob"

// replied is the data of assistant.message: a reply, or one chunk of it.
type replied struct {
	MessageID  string  `json:"messageId"`
	Model      string  `json:"model"`
	Content    string  `json:"content"`
	Calls      []call  `json:"toolRequests"`
	Reasoning  string  `json:"reasoningText"`
	Opaque     string  `json:"reasoningOpaque"`
	Encrypted  string  `json:"encryptedContent"`
	Output     float64 `json:"outputTokens"`
	APICall    string  `json:"apiCallId"`
	ChunkIndex int     `json:"chunkIndex"`
	ChunkCount int     `json:"chunkCount"`
}

// call is a call of a tool in a reply, or the data of tool.execution_start.
type call struct {
	ID        string         `json:"toolCallId"`
	Name      string         `json:"name"`
	ToolName  string         `json:"toolName"`
	Arguments jsontext.Value `json:"arguments"` // an object, or a text that holds one
	Rest      jsontext.Value `json:",embed"`

	by       *stream
	key      string         // of the message that holds it
	start    *event         // nil: it has not begun
	started  jsontext.Value // what its start says beside it
	answered bool
}

// completed is the data of tool.execution_complete.
type completed struct {
	ID      string `json:"toolCallId"`
	Success *bool  `json:"success"`
	Result  struct {
		Content jsontext.Value `json:"content"` // for the model; detailedContent is for people
		Rest    jsontext.Value `json:",embed"`
	} `json:"result"`
	Error struct {
		Message string         `json:"message"`
		Rest    jsontext.Value `json:",embed"`
	} `json:"error"`
}

// compacted is the data of session.compaction_complete.
type compacted struct {
	Success  bool    `json:"success"`
	Summary  string  `json:"summaryContent"`
	Before   float64 `json:"preCompactionTokens"`
	After    float64 `json:"postCompactionTokens"`
	Messages int     `json:"preCompactionMessagesLength"` // with the system prompt
	Removed  int     `json:"messagesRemoved"`             // not in older builds
	Used     usage   `json:"compactionTokensUsed"`
}
