package session

// Segment is a run of messages of a session's tree in which each is the only one that follows
// the one before. Where a branch leaves, at the head and at a change of session a segment
// ends, so a tree of a million messages in a line is one segment.
type Segment struct {
	First    TreeMessage  `json:"first"`
	Last     TreeMessage  `json:"last"` // of a single message the same
	Count    int64        `json:"count"`
	Tokens   int64        `json:"tokens"`             // of what is in the context
	Parent   *MessageRef  `json:"parent"`             // the message before its first; null: a root
	Children []MessageRef `json:"children"`           // the first messages of the segments that follow, oldest first
	OnPath   bool         `json:"on_path"`            // on the path to the head
	Head     bool         `json:"head,omitempty"`     // its last message is the head
	Shared   bool         `json:"shared,omitempty"`   // of the path that a fork shares
	Labels   []Label      `json:"labels,omitempty"`   // in its order
	Overlays []TreeCut    `json:"overlays,omitempty"` // compactions that took effect, by where they cut
	Hanging  []Link       `json:"hanging,omitempty"`  // forks that leave it and children that it started
}

// TreeMessage is of a message what names it and tells what it is about.
type TreeMessage struct {
	ID        MessageRef `json:"id"`
	Kind      Kind       `json:"kind"`
	Role      Role       `json:"role"`
	Origin    Origin     `json:"origin"`
	Finish    Finish     `json:"finish,omitempty"`
	Preview   string     `json:"preview,omitempty"`   // the beginning of its text
	ToolName  string     `json:"tool_name,omitempty"` // of its first call
	CreatedAt Time       `json:"created_at"`
}

// Label is a person's word for a place in a conversation.
type Label struct {
	Message MessageRef `json:"message_id"`
	Text    string     `json:"text"`
}

// TreeCut is a compaction that took effect: everything up to Through is represented by it.
type TreeCut struct {
	ID       string     `json:"id"`
	Strategy Strategy   `json:"strategy"`
	Through  MessageRef `json:"through"`
	Undone   bool       `json:"undone,omitempty"`
	InForce  bool       `json:"in_force,omitempty"`
}
