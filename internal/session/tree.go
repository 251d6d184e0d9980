package session

// Segment is a run of messages of a session's tree in which each message but the last has one child. A
// segment ends at a branch, at the head and at a change of session, so a tree of a million messages
// without branches is one segment.
type Segment struct {
	First    TreeMessage  `json:"first"`
	Last     TreeMessage  `json:"last"` // equal to First for a single message
	Count    int64        `json:"count"`
	Tokens   int64        `json:"tokens"`             // of the messages in the context
	Parent   *MessageRef  `json:"parent"`             // the message before its first; null: a root
	Children []MessageRef `json:"children"`           // the first messages of the next segments, oldest first
	OnPath   bool         `json:"on_path"`            // on the path to the head
	Head     bool         `json:"head,omitempty"`     // its last message is the head
	Shared   bool         `json:"shared,omitempty"`   // on the path that a fork shares
	Labels   []Label      `json:"labels,omitempty"`   // in its order
	Overlays []TreeCut    `json:"overlays,omitempty"` // compactions that took effect, by their cut
	Hanging  []Link       `json:"hanging,omitempty"`  // forks that begin in it and children that it started
}

// TreeMessage is the short form of a message.
type TreeMessage struct {
	ID        MessageRef `db:"id" json:"id"`
	Kind      Kind       `db:"kind" json:"kind"`
	Role      Role       `db:"role" json:"role"`
	Origin    Origin     `db:"origin" json:"origin"`
	Finish    Finish     `db:"finish" json:"finish,omitempty"`
	Preview   string     `db:"-" json:"preview,omitempty"`           // the beginning of its text
	ToolName  string     `db:"tool_name" json:"tool_name,omitempty"` // of its first call
	CreatedAt Time       `db:"created_at" json:"created_at"`
}

// Label is a person's name for a message.
type Label struct {
	Message MessageRef `db:"message" json:"message_id"`
	Text    string     `db:"text" json:"text"`
}

// TreeCut is a compaction that took effect. It represents everything up to Through.
type TreeCut struct {
	ID       string     `json:"id"`
	Strategy Strategy   `json:"strategy"`
	Through  MessageRef `json:"through"`
	Undone   bool       `json:"undone,omitempty"`
	InForce  bool       `json:"in_force,omitempty"`
}
