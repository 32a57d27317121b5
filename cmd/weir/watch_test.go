package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

func mkdir(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(name, 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestDeciding holds which directories are watched for a path, whatever links stand on it.
func TestDeciding(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(root, name) }
	mkdir(t, in("a/v1"))
	mkdir(t, in("b"))
	write(t, in("a/v1/f"), nil)
	link(t, "v1", in("a/current"))
	link(t, "../a/current/f", in("b/f"))
	link(t, in("a/v1/f"), in("b/absolute"))
	link(t, "round", in("b/round"))
	link(t, "gone/f", in("b/dangling"))
	for path, want := range map[string]string{
		"a/v1/f":         "a/v1",
		"a/current/f":    "a a/v1",
		"b/f":            "a a/v1 b",
		"b/absolute":     "a/v1 b",
		"a/v1/away":      "a/v1",
		"a/v2/sub/f":     "a",
		"b/dangling":     "b",
		"b/round":        "b",
		"b/../a/v1/f":    "a/v1",
		"a/current/../f": "a",
	} {
		got := deciding(in("") + "/" + path)
		slices.Sort(got)
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], root+"/")
		}
		if s := strings.Join(slices.Compact(got), " "); s != want {
			t.Errorf("%s: %s, want %s", path, s, want)
		}
	}
}

// watching runs a watch of the files until the test ends; its counter counts the changes seen.
func watching(t *testing.T, names ...string) *atomic.Int64 {
	t.Helper()
	w := newWatch(slog.New(slog.DiscardHandler), names...)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	n := new(atomic.Int64)
	go func() {
		defer close(ended)
		w.run(ctx, nil, func() { n.Add(1) })
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		w.close()
	})
	return n
}

// TestWatchOfADirectoryThatGoes has the file's directory, and the one above, removed and made again.
func TestWatchOfADirectoryThatGoes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a", "b", "weir.yaml")
	mkdir(t, filepath.Dir(file))
	write(t, file, []byte("1"))
	seen := watching(t, file)
	for i, gone := range []string{"a/b", "a", "a/b/weir.yaml"} {
		if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
		until(t, gone+" gone", func() bool { return seen.Load() == int64(2*i+1) })
		mkdir(t, filepath.Dir(file))
		rename(t, file, []byte("2"))
		until(t, gone+" is there again", func() bool { return seen.Load() == int64(2*i+2) })
	}
}

// TestSettled looks at a file that moves between two looks, and then not.
func TestSettled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, file, []byte("1"))
	w := newWatch(slog.New(slog.DiscardHandler), file)
	defer w.close()
	for i, step := range []struct {
		text          string // empty: it stays
		settled, more bool
	}{{"", false, false}, {"2", false, true}, {"3", false, true}, {"", true, false}, {"", false, false}, {"4", false, true}, {"", true, false}} {
		if step.text != "" {
			rename(t, file, []byte(step.text))
		}
		if settled, more := w.settled(); settled != step.settled || more != step.more {
			t.Errorf("look %d: settled %v, more %v", i, settled, more)
		}
	}
}

// TestWatchInABusyDirectory has another file written all the time: it neither puts the change off nor is one.
func TestWatchInABusyDirectory(t *testing.T) {
	dir := t.TempDir()
	file, other := filepath.Join(dir, "weir.yaml"), filepath.Join(dir, "access.log")
	write(t, file, []byte("1"))
	seen := watching(t, file)
	busy := func() bool {
		write(t, other, []byte("x"))
		return seen.Load() > 0
	}
	for range 50 {
		busy()
	}
	rename(t, file, []byte("2"))
	until(t, "the change", busy)
	if n := seen.Load(); n != 1 {
		t.Errorf("%d changes seen of 1", n)
	}
}

// TestWatchOfTwoFiles has two files in two directories, each of which changes.
func TestWatchOfTwoFiles(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	one, two := filepath.Join(dir, "envoy.yaml"), filepath.Join(elsewhere, "weir.yaml")
	write(t, one, []byte("1"))
	write(t, two, []byte("1"))
	seen := watching(t, one, "", two)
	rename(t, two, []byte("2"))
	until(t, "the second", func() bool { return seen.Load() == 1 })
	rename(t, one, []byte("2"))
	until(t, "the first", func() bool { return seen.Load() == 2 })
}
