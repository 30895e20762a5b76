package control

import "strings"

// nearest returns the word of known, which must not be empty, that takes the fewest edits to become key. Case does not
// count, nor what a very long key has at its end.
func nearest(key string, known []string) string {
	const most = 64 // bytes
	key = strings.ToLower(key[:min(len(key), most)])
	best, bestDistance := "", -1
	for _, word := range known {
		if d := distance(key, word); bestDistance < 0 || d < bestDistance {
			best, bestDistance = word, d
		}
	}
	return best
}

// distance is the number of bytes to insert, delete or replace to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // of the prefix of a so far to every prefix of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
