package session

// FitRequest is a context on its way to a model. The dialect of its provider fits it: it changes what the provider
// would reject. Messages are in order and repaired: each call has its result, and results follow their calls.
type FitRequest struct {
	Dialect    string // "": the default
	Provider   string // "": unknown
	Model      string
	Modalities []string  // that the model accepts; none: unknown, everything is sent
	Messages   []Message // the dialect changes them; parts, which it may share with others, it copies first
	Shrink     Shrink    // nil: a note replaces images over the provider's limits
}

// Shrink returns what encode makes of an image: a smaller one of media type image/jpeg. It may keep the result, since
// an image always becomes the same one. It is not ok if encode is not.
type Shrink func(image *Blob, encode func([]byte) ([]byte, bool)) (smaller *Blob, ok bool)

// Fitted is a context that the provider accepts. Its messages are those of the request.
type Fitted struct {
	Messages []FittedMessage
	Notes    []FitNote
}

// FittedMessage is a message of the fitted context.
type FittedMessage struct {
	*Message
	From    int  // its index in the request; -1: the dialect added it
	Changed bool // its size is not that of the message in the request
}

// FitNote says what the dialect changed.
type FitNote struct {
	From int // index of the message in the request; -1: the context as a whole
	Text string
	Loss bool // content is left out or replaced; else it is sent in another form
}
