package antigravity

// CallForTest reads a row of calls.
var CallForTest = callOf
