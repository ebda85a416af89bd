package segment

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// The list of recent tags is a convenience: the first request after a restart need
// not wait for the store. A lost or damaged list costs a few milliseconds once.

const recentName = "recent.json"

type recentList struct {
	Tags map[string]int64 `json:"tags"` // Unix seconds of the last use, to within the sync interval
}

func (a *Allocator) readRecent() map[string]int64 {
	content, err := a.disk.ReadFile(recentName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var list recentList
	if err == nil {
		err = json.Unmarshal(content, &list)
	}
	if err != nil {
		a.log.Warn("list of recent tags is ignored", "file", recentName, "error", err)
		return nil
	}
	// A use in the future, noted while the clock was wrong, would be recent for as long
	// as the clock was ahead.
	now := a.rt.Now().Unix()
	for tag, used := range list.Tags {
		list.Tags[tag] = min(used, now)
	}
	return list.Tags
}

// preload asks for the ranges of the shard's recent tags.
func (a *Allocator) preload(s *shard) {
	n := 0
	now := a.rt.Now()
	for _, name := range slices.Sorted(maps.Keys(a.recent)) {
		used := time.Unix(a.recent[name], 0)
		t := a.tag(name)
		if t == nil || t.shard != s || now.Sub(used) > a.cfg.RecentFor {
			continue
		}
		t.mu.Lock()
		b := t.buffer()
		if b.usedAt.IsZero() {
			b.usedAt = used
		}
		if b.last.count == 0 {
			t.ask(b, true)
			n++
		}
		t.mu.Unlock()
	}
	if n > 0 {
		a.log.Info("loading ranges of recently used tags", "store", s.name, "tags", n)
	}
}

// keepRecent writes the list from time to time until shutdown.
func (a *Allocator) keepRecent() {
	for {
		_ = a.rt.Wait(context.Background(), a.running.Done(), a.cfg.SyncInterval)
		if a.isClosing() {
			return
		}
		a.remember()
	}
}

// remember looks at which tags issued IDs since the last look and writes the list
// of those that did within Config.RecentFor. The hot path leaves no trace of use
// but the cursor, which is all that is needed here.
func (a *Allocator) remember() {
	now := a.rt.Now()
	uses := map[string]int64{}
	for name, used := range a.recent { // what is not in the table yet, because its store is down
		if a.tag(name) == nil && now.Sub(time.Unix(used, 0)) <= a.cfg.RecentFor {
			uses[name] = used
		}
	}
	for _, t := range *a.table.Load() {
		if used := t.lastUse(now); !used.IsZero() && now.Sub(used) <= a.cfg.RecentFor {
			uses[t.name] = used.Unix()
		}
	}
	a.saveRecent(uses)
}

// lastUse returns when the tag was last seen to have issued something: now, if its
// position moved since the last look.
func (t *Tag) lastUse(now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buf
	if b == nil {
		return time.Time{}
	}
	issued := t.issuedLocked()
	if issued != b.looks[0].issued {
		b.usedAt = now
	}
	b.looks = [2]look{{now, issued}, b.looks[0]}
	return b.usedAt
}

// positionLocked returns the end of what was issued, 0 if nothing was.
func (t *Tag) positionLocked() int64 {
	if p := t.cur.Load(); p != t.alloc.drained {
		return p.position()
	}
	return t.buf.whole.Hi
}

func (a *Allocator) saveRecent(uses map[string]int64) {
	content, err := json.Marshal(recentList{Tags: uses})
	if err == nil {
		a.mu.Lock()
		same := a.saved == string(content)
		a.mu.Unlock()
		if same {
			return
		}
		if err = a.disk.Replace(recentName, content); err == nil {
			a.mu.Lock()
			a.saved = string(content)
			a.mu.Unlock()
			return
		}
	}
	a.log.Warn("list of recent tags was not written", "file", recentName, "error", err)
}
