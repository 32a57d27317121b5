package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// watchDirs watches the directories that decide what the names mean now, and no others. It goes on until they stay:
// one may be made between the look for it and the watch of its parent.
func (w *watch) watchDirs() {
	dirs := w.dirs()
	for range maxLinks {
		for _, dir := range dirs {
			if err := w.fs.Add(dir); err != nil && !errors.Is(err, os.ErrNotExist) && !w.warned[dir] {
				w.warned[dir] = true
				w.log.Warn("changes of the files are not seen: send SIGHUP after one", "directory", dir, "err", err)
			}
		}
		was := dirs
		if dirs = w.dirs(); slices.Equal(dirs, was) {
			break
		}
	}
	for _, dir := range w.fs.WatchList() {
		if !slices.Contains(dirs, dir) {
			_ = w.fs.Remove(dir) // it may be gone by itself
		}
	}
}

func (w *watch) dirs() []string {
	var all []string
	for _, name := range w.names {
		if path, err := filepath.Abs(name); err == nil {
			all = append(all, deciding(path)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// maxLinks is how many symbolic links Linux follows for one path.
const maxLinks = 40

// deciding returns the directories in which a change may change what an absolute path names: that of each symbolic
// link on the way, and that of the file, or of the first part that is not there.
func deciding(path string) (dirs []string) {
	at, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil || links == maxLinks {
			return append(dirs, at)
		}
		if info.Mode().Type() != os.ModeSymlink {
			if len(rest) == 0 {
				dirs = append(dirs, at)
			}
			at = next
			continue
		}
		links++
		dirs = append(dirs, at)
		to, err := os.Readlink(next)
		if err != nil {
			return dirs
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return dirs
}
