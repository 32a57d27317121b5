package main

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long files must be left alone before they are read: an editor writes, renames and sets the mode one
// after the other, and two files may change together.
const settle = 100 * time.Millisecond

// watch says when a file may have changed. It watches directories, not files: an editor puts a new file in the
// place of the old one, Kubernetes points the link ..data at another directory, and neither touches the old file.
type watch struct {
	names  []string
	fs     *fsnotify.Watcher // nil: the system has none left
	log    *slog.Logger
	warned map[string]bool // directories that cannot be watched
	read   []os.FileInfo   // the files as of the last reload; nil: not there
	last   []os.FileInfo   // as of the last look for a change
}

// newWatch watches the files of these names, from now on. Empty names are none. What cannot be watched is logged:
// SIGHUP works all the same.
func newWatch(log *slog.Logger, names ...string) *watch {
	w := &watch{log: log, warned: map[string]bool{}}
	for _, name := range names {
		if name != "" {
			w.names = append(w.names, name)
		}
	}
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("changes of the files are not seen: send SIGHUP after one", "err", err)
	} else {
		w.fs = fs
	}
	w.read = w.look()
	return w
}

func (w *watch) close() {
	if w.fs != nil {
		_ = w.fs.Close() // nothing is written to it
	}
}

// run calls changed for each signal, and for each change of the files once they have settled, until ctx ends.
func (w *watch) run(ctx context.Context, signals <-chan os.Signal, changed func()) {
	var events <-chan fsnotify.Event
	var faults <-chan error
	if w.fs != nil {
		events, faults = w.fs.Events, w.fs.Errors
	}
	timer := time.NewTimer(settle) // what changed since newWatch
	defer timer.Stop()
	for due := true; ; {
		look := false
		select {
		case <-ctx.Done():
			return
		case <-signals:
			w.read = w.look()
			changed()
		case <-events:
			look = true
		case err := <-faults:
			w.log.Warn("a change of the files may have been missed", "err", err)
			look = true
		case <-timer.C:
			due = false
			var settled bool
			if settled, look = w.settled(); settled {
				changed()
			}
		}
		if look && !due { // not put off by the next event: other files of the directory may be written all the time
			timer.Reset(settle)
			due = true
		}
	}
}

// settled looks at the files. They have settled when they are as at the last look, and not as they were read; more
// says to look again.
func (w *watch) settled() (settled, more bool) {
	now := w.look()
	still := same(now, w.last)
	w.last = now
	if same(now, w.read) {
		return false, false
	}
	if still {
		w.read = now
	}
	return still, !still
}

// look returns the files as they are, after it has their directories watched: what changes later is an event.
func (w *watch) look() []os.FileInfo {
	if w.fs != nil {
		w.watchDirs()
	}
	all := make([]os.FileInfo, len(w.names))
	for i, name := range w.names {
		if info, err := os.Stat(name); err == nil {
			all[i] = info
		}
	}
	return all
}

// same reports whether two looks saw the same files.
func same(a, b []os.FileInfo) bool {
	return slices.EqualFunc(a, b, func(a, b os.FileInfo) bool {
		if a == nil || b == nil {
			return a == nil && b == nil
		}
		return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
	})
}
