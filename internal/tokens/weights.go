package tokens

func o200kWeights() weights {
	var w weights
	for shape := range shapes {
		for n := range longestWord {
			w[wordLength+shape*longestWord+n] = 1 + float32(max(0, n-6))*0.12
		}
	}
	for i := digitGroups; i < featureCount; i++ {
		w[i] = 0.8
	}
	w[digits] = 0
	return w
}
func cl100kWeights() weights  { return o200kWeights() }
func claudeWeights() weights  { return o200kWeights() }
func geminiWeights() weights  { return o200kWeights() }
func defaultWeights() weights { return o200kWeights() }
