// Package spelling finds the known name that a mistyped one resembles.
package spelling

// Distance returns the Levenshtein distance of two short strings, in bytes.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next := min(row[j]+1, row[j-1]+1, diagonal+cost)
			diagonal, row[j] = row[j], next
		}
	}
	return row[len(b)]
}

// Nearest returns the name of known with the smallest distance to given, the first of equally near ones.
func Nearest(given string, known []string) string {
	best, bestAt := "", 1<<30
	for _, name := range known {
		if d := Distance(given, name); d < bestAt {
			best, bestAt = name, d
		}
	}
	return best
}

// Slips returns the words that differ from a word of small letters by a letter, swapped ones first: the likeliest slip.
func Slips(w string) (found []string) {
	for i := 1; i < len(w); i++ {
		found = append(found, w[:i-1]+w[i:i+1]+w[i-1:i]+w[i+1:])
	}
	for i := range len(w) {
		found = append(found, w[:i]+w[i+1:])
	}
	for i := range len(w) + 1 {
		for c := 'a'; c <= 'z'; c++ {
			found = append(found, w[:i]+string(c)+w[i:])
			if i < len(w) {
				found = append(found, w[:i]+string(c)+w[i+1:])
			}
		}
	}
	return found
}
