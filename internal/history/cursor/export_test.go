package cursor

// ParseForTest parses bytes as the state of an agent whose blobs are all the same bytes.
func ParseForTest(root []byte) {
	if s, ok := newState(root, func(string) []byte { return root }, ""); ok {
		s.read()
	}
}
