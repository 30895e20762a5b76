package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// rows are the rows of the fault matrix, with the tests that each names.
func rows(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (F\d+|Cycles) \|.*$`).FindAllStringSubmatch(string(text), -1) {
		if found[row[1]] != nil {
			t.Errorf("row %s is there twice", row[1])
		}
		found[row[1]] = []string{}
		for _, test := range regexp.MustCompile("`([a-z/-]+/Test\\w+)`").FindAllStringSubmatch(row[0], -1) {
			found[row[1]] = append(found[row[1]], test[1])
		}
	}
	return found
}

// TestMatrix_Rows wants every row in the document, each with tests that exist.
func TestMatrix_Rows(t *testing.T) {
	matrix := rows(t)
	for i := 1; i <= 60; i++ {
		if len(matrix[fmt.Sprintf("F%d", i)]) == 0 {
			t.Errorf("docs/reliability.md names no test for F%d", i)
		}
	}
	for row, tests := range matrix {
		for _, test := range tests {
			if !exists(t, test) {
				t.Errorf("row %s: there is no test %s", row, test)
			}
		}
	}
}

// exists says whether a test, named with its folder, is there.
func exists(t *testing.T, test string) bool {
	t.Helper()
	folder, name := filepath.Split(test)
	return strings.Contains(sources(t, filepath.Join("..", folder)), "func "+name+"(")
}

// sources is the text of all test files of a folder.
func sources(t *testing.T, folder string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// TestMatrix_Tests wants every test of this folder in the row that it is named for.
func TestMatrix_Tests(t *testing.T) {
	matrix := rows(t)
	for _, test := range regexp.MustCompile(`(?m)^func (Test(F\d+|Cycles)_\w+)\(`).FindAllStringSubmatch(sources(t, "."), -1) {
		if !strings.Contains(strings.Join(matrix[test[2]], " ")+" ", "chaos/"+test[1]+" ") {
			t.Errorf("row %s does not name %s", test[2], test[1])
		}
	}
}
