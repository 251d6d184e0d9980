package pi

import "sessiond/internal/history"

// CutRule tells which strings of a transcript may be cut: what people, models and tools said. An
// entry that says how others are to be seen stays whole.
func CutRule() history.CutRule {
	return history.CutRule{
		Fields: []string{"text", "thinking", "data", "content", "output"},
		Whole: func(line []byte) bool {
			o, _ := history.Fields(line)
			kind := o.String("type")
			return kind != lineMessage && kind != lineCustomMessage
		},
	}
}
