package trace

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// named is what an error about a trace looks like.
var named = regexp.MustCompile(`(?s)^trace: t(:\d+: .|: no request in it$|: at a speed of)`)

// FuzzRead: whatever stands in a file, it is refused by line or read whole, one request for each row.
func FuzzRead(f *testing.F) {
	f.Add(moon(0, 600, 2, 1, 2)+moon(0, 10, 2, 3)+moon(2999, 512, 2, 1), 1.0)
	f.Add(azureHeader+"\n2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,109", 2.0)
	f.Add(`{"v":1,"at_us":0,"prompt":100,"output":100,"block":64,"chain":["0000000000000001","0000000000000002"],"class":"bulk"}`, 0.1)
	f.Add("\n\n", 1.0)
	f.Add(moon(0, 16, 2, 0)+"\n"+moon(1, 16, 2, 0), 1e-9)
	f.Add(azureHeader+"\n2023-11-16 18:15:46,10000000,10000000\n", 1e300)
	f.Fuzz(func(t *testing.T, text string, speed float64) {
		s, err := Read("t", strings.NewReader(text), speed, 1)
		if err != nil {
			if !named.MatchString(err.Error()) && !strings.Contains(err.Error(), "a speed of") {
				t.Fatalf("an error that names no line: %v", err)
			}
			return
		}
		rows := strings.Count(strings.TrimRight(text, "\r\n"), "\n") + 1
		if strings.HasPrefix(text, azureHeader) {
			rows--
		}
		n, last := 0, time.Duration(0)
		for r, ok := s.Next(); ok; r, ok = s.Next() {
			n++
			if r.At < last || r.Prompt < 1 || r.Output < 1 || r.Prompt > MaxTokens || r.Output > MaxTokens {
				t.Fatalf("request %d: %v after %v, %d and %d tokens", n, r.At, last, r.Prompt, r.Output)
			}
			last = r.At
			if len(r.Blocks)*step.BlockTokens > r.Prompt+r.Output {
				t.Fatalf("request %d: %d blocks for %d and %d tokens", n, len(r.Blocks), r.Prompt, r.Output)
			}
		}
		if n != rows {
			t.Fatalf("%d requests from %d rows", n, rows)
		}
	})
}
