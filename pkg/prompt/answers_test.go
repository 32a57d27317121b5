package prompt

import (
	"strings"
	"testing"
)

// TestAnswersAreCounted: n is read as max_tokens is, best_of of completions alone, and a list has an answer for each.
func TestAnswersAreCounted(t *testing.T) {
	for _, c := range []struct {
		path, members    string
		prompts, answers int
	}{
		{chatPath, `"messages":[]`, 1, 1},
		{chatPath, `"messages":[],"n":8`, 1, 8},
		{chatPath, `"messages":[],"n":8,"best_of":9`, 1, 8},
		{completionsPath, `"prompt":"x","n":8,"best_of":9`, 1, 9},
		{completionsPath, `"prompt":"x","n":8,"best_of":2`, 1, 8},
		{completionsPath, `"prompt":["x","y","z"]`, 3, 1},
		{completionsPath, `"prompt":[[1,2],[3]],"n":4`, 2, 4},
		{completionsPath, `"prompt":[1,2,3],"n":4`, 1, 4},
		{completionsPath, `"prompt":[],"n":2`, 1, 2},
		{completionsPath, `"prompt":["x",5],"n":2`, 1, 2}, // of which the list cannot be read
		{completionsPath, `"prompt":["x"` + strings.Repeat(`,""`, 2*MaxPrompts) + `]`, MaxPrompts, 1},
		{chatPath, `"messages":[],"n":128`, 1, 128},
		{chatPath, `"messages":[],"n":129`, 1, 128},
		{chatPath, `"messages":[],"n":99999999999999999999999`, 1, 128},
		{chatPath, `"messages":[],"n":0`, 1, 1},
		{chatPath, `"messages":[],"n":-3`, 1, 1},
		{chatPath, `"messages":[],"n":2.0`, 1, 1},
		{chatPath, `"messages":[],"n":"2"`, 1, 1},
		{chatPath, `"messages":[],"n":[2]`, 1, 1},
		{chatPath, `"messages":[],"n":null`, 1, 1},
		{chatPath, `"messages":[],"n":2,"n":3`, 1, 3},
		{chatPath, `"messages":[],"N":2`, 1, 1},
	} {
		if got := parse(c.path, "{"+c.members+"}"); got.Prompts != c.prompts || got.Answers != c.answers {
			t.Errorf("%.60s: %d prompts with %d answers each, want %d with %d", c.members, got.Prompts, got.Answers, c.prompts, c.answers)
		}
	}
	for _, body := range []string{"", "{", `{"n":8`} {
		if got := parse(chatPath, body); got.Prompts != 1 || got.Answers != 1 {
			t.Errorf("%q: %+v", body, got)
		}
	}
}
