package session

// ModelInfo is a model's entry in the catalogue. Sizes are in the model's own tokens.
type ModelInfo struct {
	ID         string   `db:"id" json:"id"`
	Provider   string   `db:"provider" json:"provider"`
	Family     string   `db:"family" json:"family"` // of its tokenizer
	Window     int64    `db:"window" json:"window"`
	MaxOutput  int64    `db:"max_output" json:"max_output"`
	Modalities []string `db:"-" json:"modalities"` // of its input: text, image, audio, file
	Origin     string   `db:"origin" json:"origin"`
	Source     string   `db:"source" json:"source"`    // of the facts: built in, models.dev, …
	Like       string   `db:"-" json:"like,omitempty"` // the model whose window is assumed for an unknown one
}

// Price is a model's price from a day on, in nano-dollars per token. Above 0 is the price of a whole
// request whose prompt has more than so many tokens; Mode is fast for requests of a fast mode.
type Price struct {
	Model        string `db:"model" json:"model"`
	ValidFrom    string `db:"valid_from" json:"valid_from"` // YYYY-MM-DD
	Mode         string `db:"mode" json:"mode,omitempty"`
	Above        int64  `db:"above_tokens" json:"above_tokens,omitempty"`
	Input        int64  `db:"input_nanousd" json:"input_nanousd"`
	CacheRead    int64  `db:"cache_read_nanousd" json:"cache_read_nanousd"`
	CacheWrite   int64  `db:"cache_write_nanousd" json:"cache_write_nanousd"` // lasts five minutes
	CacheWrite1h int64  `db:"cache_write_1h_nanousd" json:"cache_write_1h_nanousd"`
	Output       int64  `db:"output_nanousd" json:"output_nanousd"`
	Origin       string `db:"origin" json:"origin"`
}
