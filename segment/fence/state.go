package fence

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/leaf-idgen/leaf"
)

// The file stateName says which cluster fence holds this node's marks, in one line of the
// format of the fence file. If it is lost or damaged, the node merges its marks again.
const (
	stateName    = "cluster-fence"
	stateVersion = 1
)

// state is the content of that file. The zero value means that nothing is known.
type state struct {
	File    string `json:"file"` // "leaf-cluster-fence"
	Version int    `json:"version"`
	Node    string `json:"node"`   // identity of the data directory
	Space   string `json:"space"`  // incarnation that the marks were last merged into, "" if none
	Merged  bool   `json:"merged"` // no range was taken without the cluster fence since then

	Stranded bool `json:"stranded,omitempty"` // there are suspects that an incarnation before Space has shown, as far as the file can say: see suspect
}

func readState(disk Disk, node string) (state, error) {
	content, err := disk.ReadFile(stateName)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	var s state
	if err == nil {
		err = readLine(bytes.TrimSuffix(content, []byte("\n")), &s)
	}
	if err == nil && (s.File != "leaf-cluster-fence" || s.Version != stateVersion || s.Node != node) {
		err = fmt.Errorf("is a %q of version %d and node %s, should be a leaf-cluster-fence of version %d and node %s", s.File, s.Version, s.Node, stateVersion, node)
	}
	if err != nil {
		return state{}, err
	}
	return s, nil
}

// remember makes s durable, unless s is the known state.
func (c *cluster) remember(s state) error {
	cfg := &c.fence.cfg
	s.File, s.Version, s.Node = "leaf-cluster-fence", stateVersion, cfg.Node
	was := c.knows()
	s.Stranded = c.fence.hasSuspects() && (was.Stranded || was.Space != s.Space)
	if was == s {
		return nil
	}
	end := c.fence.watch(stateName)
	err := cfg.Disk.Replace(stateName, appendLine(nil, s))
	end()
	if err != nil {
		cfg.Alarms.Raise(diskAlarm(stateName, err))
		return fmt.Errorf("remember the state of the cluster fence: %w", err)
	}
	cfg.Alarms.Clear(leaf.AlarmDisk, stateName)
	c.mu.Lock()
	c.known = s
	c.mu.Unlock()
	return nil
}
