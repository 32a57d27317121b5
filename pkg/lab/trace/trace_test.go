package trace

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/workload"
)

// must reads a trace that is good.
func must(t testing.TB, text string, speed float64, seed uint64) []*workload.Request {
	t.Helper()
	s, err := Read("t", strings.NewReader(text), speed, seed)
	if err != nil {
		t.Fatal(err)
	}
	return drain(s)
}

func drain(s workload.Source) (all []*workload.Request) {
	for r, ok := s.Next(); ok; r, ok = s.Next() {
		all = append(all, r)
	}
	return all
}

// moon is a Mooncake row whose ids are from, from+1, ...
func moon(ms, input, output int, ids ...int) string {
	return fmt.Sprintf(`{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [%s]}`+"\n",
		ms, input, output, strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]"))
}

// TestMooncakeBlocks: 32 hashes of 16 tokens for an id, as many as are full for the last one, and requests
// share exactly those of the ids that they share from the start.
func TestMooncakeBlocks(t *testing.T) {
	all := must(t, moon(0, 1024, 5, 0, 1)+moon(0, 1100, 5, 0, 1, 2)+moon(0, 1024, 5, 0, 3)+moon(0, 600, 5, 1, 0)+
		moon(0, 15, 5, 9)+moon(0, 1036, 5, 0, 1, 4), 1, 1)
	for i, want := range []int{64, 68, 64, 37, 0, 64} {
		if got := len(all[i].Blocks); got != want {
			t.Errorf("row %d: %d blocks, want %d", i, got, want)
		}
	}
	for _, c := range []struct{ a, b, shared int }{{0, 1, 64}, {0, 2, 32}, {1, 2, 32}, {0, 3, 0}, {1, 5, 64}} {
		a, b := all[c.a].Blocks, all[c.b].Blocks
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		if n != c.shared {
			t.Errorf("rows %d and %d share %d blocks, want %d", c.a, c.b, n, c.shared)
		}
		for _, h := range b[n:] {
			if slices.Contains(a, h) {
				t.Errorf("rows %d and %d share a block that does not stand at the start", c.a, c.b)
			}
		}
	}
}

// TestJitter: rows stay in order and inside their step of 3 s, spread over it, the same for the same seed.
func TestJitter(t *testing.T) {
	var text strings.Builder
	const steps, rows = 50, 40
	for s := range steps {
		for range rows {
			text.WriteString(moon(s*3000+s%2, 10, 1, 7))
		}
	}
	all := must(t, text.String(), 1, 5)
	sum, last := time.Duration(0), time.Duration(-1)
	for i, r := range all {
		inside := r.At + all[0].At - time.Duration(i/rows)*3*time.Second
		if r.At < last || inside < -3*time.Second || inside > 3*time.Second {
			t.Fatalf("row %d at %v", i, r.At)
		}
		last = r.At
		sum += inside
	}
	// The first row is time 0, so all are early by its jitter, a fortieth of a step in the mean.
	if mean := sum.Seconds() / float64(len(all)); math.Abs(mean-1.5) > 0.2 {
		t.Errorf("rows stand %.2f s inside their step in the mean, want about 1.5", mean)
	}
	at := func(all []*workload.Request) (times []time.Duration) {
		for _, r := range all {
			times = append(times, r.At)
		}
		return times
	}
	if !slices.Equal(at(all), at(must(t, text.String(), 1, 5))) {
		t.Error("the same seed gives other times")
	}
	if slices.Equal(at(all), at(must(t, text.String(), 1, 6))) {
		t.Error("another seed gives the same times")
	}
	// A trace with finer times keeps its order, too.
	var fine strings.Builder
	for ms := range 500 {
		fine.WriteString(moon(ms*10, 10, 1, 7) + moon(ms*10, 10, 1, 7))
	}
	if times := at(must(t, fine.String(), 1, 5)); !slices.IsSorted(times) {
		t.Error("jitter of a trace in steps of 10 ms puts rows out of order")
	}
	twice := must(t, text.String(), 2, 5)
	for i := range all {
		if d := 2*twice[i].At - all[i].At; d < -2 || d > 2 {
			t.Fatalf("at speed 2 row %d is at %v, not half of %v", i, twice[i].At, all[i].At)
		}
	}
}

func TestAzure(t *testing.T) {
	for _, text := range []string{
		"TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,109",
		"TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,374,44\n2024-05-10 00:00:04.324509+00:00,396,109\n",
	} {
		all := must(t, text, 2, 1)
		if len(all) != 2 || all[0].At != 0 || all[1].At != 4_314_579_000/2 {
			t.Fatalf("read %d requests, the last at %v", len(all), all[len(all)-1].At)
		}
		if r := all[1]; r.Prompt != 396 || r.Output != 109 || len(r.Blocks) != 24 || r.Class != "" || r.Then != nil {
			t.Errorf("read %+v", r)
		}
		for _, h := range all[0].Blocks {
			if slices.Contains(all[1].Blocks, h) {
				t.Error("two prompts share a block")
			}
		}
	}
}

func TestOwn(t *testing.T) {
	all := must(t, `{"v": 1, "at_us": 1500000, "prompt": 200, "output": 80, "block": 64, "chain": ["91b0e7f2a3c4d5e6", "07c3000000000001", "07c3000000000002"]}
{"v": 1, "at_us": 1500000, "prompt": 280, "output": 80, "block": 64, "chain": ["91b0e7f2a3c4d5e6", "07c3000000000001", "07c3000000000002", "07c3000000000003"], "class": "bulk", "tenant": "a1b2"}
{"v": 1, "at_us": 2500000, "prompt": 15, "output": 1, "block": 64}

`, 0.5, 1)
	if len(all) != 3 || all[0].At != 0 || all[1].At != 0 || all[2].At != 2*time.Second {
		t.Fatalf("read %d requests", len(all))
	}
	if a, b := all[0], all[1]; len(a.Blocks) != 12 || len(b.Blocks) != 16 || !slices.Equal(a.Blocks, b.Blocks[:12]) {
		t.Errorf("%d and %d blocks, of which 12 are the same", len(a.Blocks), len(b.Blocks))
	}
	if r := all[1]; r.Class != "bulk" || r.Flow != "a1b2" || all[0].Class != "" || all[0].Flow != "" {
		t.Errorf("read class %q and tenant %q", r.Class, r.Flow)
	}
	if len(all[2].Blocks) != 0 {
		t.Error("a prompt without a full block has blocks")
	}
	// The third hash of the first row names a block of its answer: 192 tokens are within 200.
	answer := must(t, `{"v":1,"at_us":0,"prompt":100,"output":100,"block":64,"chain":["0000000000000001","0000000000000002","0000000000000003"]}`, 1, 1)
	if got := len(answer[0].Blocks); got != 12 {
		t.Errorf("%d blocks with those of the answer, want 12", got)
	}
}

// TestFaults: each bad line is named by file, line and what is wrong with it.
func TestFaults(t *testing.T) {
	const header = azureHeader + "\n"
	const good = `{"timestamp": 5, "input_length": 10, "output_length": 1, "hash_ids": [1]}` + "\n"
	const own = `{"v": 1, "at_us": 5, "prompt": 100, "output": 1, "block": 64, "chain": ["0000000000000001"]}` + "\n"
	for _, c := range []struct{ text, want string }{
		{"", "t: no request in it"},
		{"\n", "t: no request in it"},
		{header, "t: no request in it"},
		{"hello\n", "t:1: neither Azure's header"},
		{"TIMESTAMP,ContextTokens\n", "t:1: neither"},

		{good + "nonsense\n", "t:2: not a row"},
		{good + "[1]\n", "t:2: not a row"},
		{good + good[:40] + "\n", "t:2: not a row"},
		{good + good[:len(good)-1] + " {}\n", "t:2: not a row: more than one"},
		{good + strings.Replace(good, "timestamp", "time", 1), "t:2: not a row: json: unknown field"},
		{good + strings.Replace(good, "{", `{"timestamp": 7, `, 1), "t:2: not a row: timestamp stands in it twice"},
		{good + strings.Replace(good, "}", `, "Hash_IDs": [2]}`, 1), "t:2: not a row: hash_ids stands in it twice"},
		{good + strings.Replace(good, "5,", "NaN,", 1), "t:2: not a row"},
		{good + strings.Replace(good, "5,", "5.5,", 1), "t:2: not a row"},
		{good + strings.Replace(good, "5,", `"5",`, 1), "t:2: not a row"},
		{good + strings.Replace(good, "5,", "null,", 1), "t:2: timestamp is missing"},
		{good + `{"timestamp": 5, "input_length": 10, "hash_ids": [1]}`, "t:2: output_length is missing"},
		{good + `{"timestamp": 5, "output_length": 10, "hash_ids": [1]}`, "t:2: input_length is missing"},
		{good + moon(-5, 10, 1, 1), "t:2: timestamp is -5"},
		{good + moon(4, 10, 1, 1), "t:2: time goes back by 1ms"},
		{good + moon(9, 0, 1), "t:2: a prompt of 0 tokens"},
		{good + moon(9, 10, 0, 1), "t:2: an answer of 0 tokens"},
		{good + moon(9, -10, 1, 1), "t:2: input_length is -10"},
		{good + moon(9, 10, -1, 1), "t:2: output_length is -1"},
		{good + moon(9, 10, 1, -1), "t:2: hash_ids has -1"},
		{good + moon(9, 10, 1), "t:2: hash_ids has 0 ids, input_length asks for 1"},
		{good + moon(9, 512, 1, 1, 2), "t:2: hash_ids has 2 ids, input_length asks for 1"},
		{good + moon(9, 513, 1, 1), "t:2: hash_ids has 1 ids, input_length asks for 2"},
		{good + moon(9, 10_000_001, 1, 1), "t:2: a prompt of 10000001 tokens"},
		{good + moon(9, math.MaxInt64, 1, 1), "t:2: a prompt of 10000001 tokens"},
		{good + moon(9, 10, math.MaxInt64, 1), "t:2: an answer of 10000001 tokens"},
		{good + moon(math.MaxInt64, 10, 1, 1), "t:2: a time of"},
		{good + `{"timestamp": 99999999999999999999, "input_length": 10, "output_length": 1, "hash_ids": [1]}`, "t:2: not a row"},
		{good + "\n" + good, "t:2: an empty line before the end"},
		{good + "\n\n", "t:2: an empty line before the end"},
		{"\n" + good, "t:1: an empty line before the end"},
		{good + good + strings.Repeat(" ", MaxLine) + good, "t:3: longer than 1048576 bytes"},

		{header + "2023-11-16 18:15:46,374\n", "t:2: 2 cells, not 3"},
		{header + "2023-11-16 18:15:46,374,44,1\n", "t:2: 4 cells, not 3"},
		{header + "16.11.2023,374,44\n", `t:2: TIMESTAMP "16.11.2023"`},
		{header + "2023-11-16 18:15:46,,44\n", `t:2: ContextTokens "" is not`},
		{header + "2023-11-16 18:15:46,NaN,44\n", `t:2: ContextTokens "NaN" is not`},
		{header + "2023-11-16 18:15:46,374,4.5\n", `t:2: GeneratedTokens "4.5" is not`},
		{header + "2023-11-16 18:15:46,374,-4\n", "t:2: GeneratedTokens is -4"},
		{header + "2023-11-16 18:15:46,0,4\n", "t:2: a prompt of 0 tokens"},
		{header + "2023-11-16 18:15:46,374,0\n", "t:2: an answer of 0 tokens"},
		{header + "2023-11-16 18:15:46,374,44\n2023-11-16 18:15:45,374,44\n", "t:3: time goes back by 1s"},
		{header + "1023-11-16 18:15:46,374,44\n", "t:2: a time of"},
		{header + "2023-11-16 18:15:46,374,44\n" + header, "t:3: TIMESTAMP"},

		{own + "{}\n", "t:2: v is missing"},
		{own + strings.Replace(own, `"v": 1`, `"v": 2`, 1), "t:2: v is 2"},
		{own + strings.Replace(own, `"block": 64, `, "", 1), "t:2: block is missing"},
		{own + strings.Replace(own, "64", "24", 1), "t:2: block is 24"},
		{own + strings.Replace(own, "64", "0", 1), "t:2: block is 0"},
		{own + strings.Replace(own, "64", "16000000", 1), "t:2: block is 16000000"},
		{own + strings.Replace(own, `["0000000000000001"]`, `[]`, 1), "t:2: chain has 0 hashes, prompt and output ask for 1 to 1"},
		{own + strings.Replace(own, `0001"`, `0001","0000000000000002"`, 1), "t:2: chain has 2 hashes"},
		{own + strings.Replace(own, `0001"`, `001"`, 1), "t:2: chain has"},
		{own + strings.Replace(own, `0001"`, `000g"`, 1), "t:2: chain has"},
		{own + strings.Replace(own, "}", `, "class": "urgent"}`, 1), `t:2: class is "urgent"`},
		{own + strings.Replace(own, "}", `, "tenant": "alice"}`, 1), `t:2: tenant has "alice"`},
		{own + strings.Replace(own, "}", `, "class": "class", "class": "bulk"}`, 1), "t:2: not a row: class stands in it twice"},
		{own + strings.Replace(own, "}", `, "text": "secret"}`, 1), "t:2: not a row: json: unknown field"},
		{own + strings.Replace(own, `"at_us": 5`, `"at_us": 4`, 1), "t:2: time goes back by 1"},
		{own + good, "t:2: not a row"},
	} {
		_, err := Read("t", strings.NewReader(c.text), 1, 1)
		if err == nil || !strings.HasPrefix(err.Error(), "trace: "+c.want) {
			t.Errorf("%.120q: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(moon(0, 10, 1, 1)+moon(0, 10, 1, 2)+"oops\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, 1, 1); err == nil || !strings.HasPrefix(err.Error(), "trace: rows.jsonl:3: ") {
		t.Errorf("a bad third line: %v", err)
	}
	if _, err := Open(path+"x", 1, 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for _, speed := range []float64{0, -1, math.NaN(), math.Inf(1), 1e-300} {
		if _, err := Read("t", strings.NewReader(moon(0, 10, 1, 1)+moon(9000, 10, 1, 2)), speed, 1); err == nil {
			t.Errorf("a speed of %v is taken", speed)
		}
	}
	broken := errors.New("broken")
	if _, err := Read("t", &failing{strings.NewReader(moon(0, 10, 1, 1)), broken}, 1, 1); !errors.Is(err, broken) {
		t.Errorf("a file that cannot be read on: %v", err)
	}
}

// failing reads r, then fails.
type failing struct {
	r   *strings.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	if f.r.Len() == 0 {
		return 0, f.err
	}
	return f.r.Read(p)
}
