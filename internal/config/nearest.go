package config

// nearest returns the candidate that a user most likely meant, or "" if none is
// close: at most a third of the letters differ.
func nearest(word string, candidates []string) string {
	best, bestDistance := "", len(word)/3+1
	for _, c := range candidates {
		if d := editDistance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions and replacements of bytes that
// turn a into b (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// didYouMean is the end of an error about an unknown name. The suggestion is
// printed with prefix, which does not count in the comparison.
func didYouMean(word string, candidates []string, prefix string) string {
	if len(word) > 100 {
		return ""
	}
	if n := nearest(word, candidates); n != "" {
		return "; did you mean " + prefix + n + "?"
	}
	return ""
}
