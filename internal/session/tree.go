package session

// Segment is a run of messages of a session's tree in which each message but the last has one child. A
// segment ends at a branch, at the head and at a change of session, so a tree of a million messages
// without branches is one segment.
type Segment struct {
	First    TreeMessage  `json:"first" doc:"Its first message"`
	Last     TreeMessage  `json:"last" doc:"Its last message; equal to first in a segment of one message"`
	Count    int64        `json:"count" doc:"Number of messages"`
	Tokens   int64        `json:"tokens" doc:"Size of its messages that contexts contain, in reference tokens"`
	Parent   *MessageRef  `json:"parent" doc:"The message before its first one; null: none"`
	Children []MessageRef `json:"children" doc:"The first messages of the next segments, oldest first"`
	OnPath   bool         `json:"on_path" doc:"It lies on the path to the head"`
	Head     bool         `json:"head,omitempty" doc:"Its last message is the head"`
	Shared   bool         `json:"shared,omitempty" doc:"It lies on the path that a fork shares"`
	Labels   []Label      `json:"labels,omitempty" doc:"Tags of its messages, in order; the first of a message is its label"`
	Overlays []TreeCut    `json:"overlays,omitempty" doc:"Compactions that took effect and end in it"`
	Hanging  []Link       `json:"hanging,omitempty" doc:"Forks that begin in it and children that it started"`
}

// TreeMessage is the short form of a message.
type TreeMessage struct {
	ID        MessageRef `db:"id" json:"id" doc:"The message's id, like 20260211_001.42"`
	Kind      Kind       `db:"kind" json:"kind" doc:"message, bash, custom_message, custom, branch_summary, marker, unknown"`
	Role      Role       `db:"role" json:"role"`
	Origin    Origin     `db:"origin" json:"origin"`
	Finish    Finish     `db:"finish" json:"finish,omitempty"`
	Preview   string     `db:"-" json:"preview,omitempty" doc:"The beginning of its text"`
	ToolName  string     `db:"tool_name" json:"tool_name,omitempty" doc:"Tool of its first call"`
	CreatedAt Time       `db:"created_at" json:"created_at"`
}

// Label is a tag of a message, as trees show it.
type Label struct {
	Message MessageRef `db:"message" json:"message_id" doc:"The tagged message"`
	Text    string     `db:"text" json:"text" doc:"The tag"`
}

// TreeCut is a compaction that took effect. It represents everything up to Through.
type TreeCut struct {
	ID       string     `json:"id" doc:"The compaction's id, like cmp_12"`
	Strategy Strategy   `json:"strategy"`
	Through  MessageRef `json:"through"`
	Undone   bool       `json:"undone,omitempty"`
	InForce  bool       `json:"in_force,omitempty" doc:"It is in effect at the head"`
}
