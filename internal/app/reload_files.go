package app

import (
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf/internal/config"
)

// sources are the files that the configuration comes from. A file is known by its inode, size and
// time: a Kubernetes secret changes by a symbolic link that leads to another file.
type sources struct {
	used  map[string]fs.FileInfo // each as it was before the configuration in force was read
	last  map[string]fs.FileInfo // at the last look
	fault string                 // why the last reload failed; "": it did not
}

// readConfig reads the configuration again.
func (a *App) readConfig() (config.Config, error) {
	cfg, files, err := a.opts.Load()
	if err == nil {
		a.sources.used = files
	}
	return cfg, err
}

// failed notes how a reload ended, and reports whether it failed for another reason than the one
// before.
func (s *sources) failed(err error) (news bool) {
	fault := ""
	if err != nil {
		fault = err.Error()
	}
	news = fault != "" && fault != s.fault
	s.fault = fault
	return news
}

// look reports whether the configuration should be read again, and which files have changed. A
// file that is being written looks different at each look, so a change is taken when two looks see
// the same. After a failure the configuration is read at each such look: what was wrong need not
// be a file of these.
func (s *sources) look() (again bool, changed []string) {
	before := s.last
	s.last = make(map[string]fs.FileInfo, len(s.used))
	settled := true
	for path, used := range s.used {
		now, _ := os.Stat(path) // nil after an error
		s.last[path] = now
		if last, seen := before[path]; !seen || !sameFile(last, now) {
			settled = false
		}
		if !sameFile(used, now) {
			changed = append(changed, path)
		}
	}
	if !settled {
		return false, nil
	}
	slices.Sort(changed)
	return s.fault != "" || len(changed) > 0, changed
}

// reloadIfChanged is reload when a file has changed. It is silent while nothing is new.
func (a *App) reloadIfChanged() {
	again, changed := a.sources.look()
	if !again {
		return
	}
	cfg, err := a.readConfig()
	r, err := a.use(cfg, err)
	news := a.sources.failed(err)
	if err == nil {
		news = len(changed) > 0 || len(r.Changed) > 0
	}
	if !news {
		return
	}
	if len(changed) > 0 {
		a.log.Info("a file of the configuration has changed", "files", strings.Join(changed, " "))
	}
	told, err := a.tellOfReload(cfg, r, err)
	if err != nil || len(told.Changed) > 0 {
		a.recordReload("a changed file", told, err)
	}
}

func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
