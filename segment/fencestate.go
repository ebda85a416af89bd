package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/leaf-idgen/leaf"
)

// fenceStateName is the file that remembers which cluster fence this node's marks
// are in. It has one line like those of the fence file. A file that is lost or
// cannot be read only means that the marks are merged again.
const (
	fenceStateName    = "cluster-fence"
	fenceStateVersion = 1
)

// fenceState is the state file's content. The zero value: nothing is known.
type fenceState struct {
	File    string `json:"file"` // "leaf-cluster-fence"
	Version int    `json:"version"`
	Node    string `json:"node"`   // identity of the data directory
	Space   string `json:"space"`  // incarnation that the marks were last merged into, "" if none
	Merged  bool   `json:"merged"` // no range was taken without the cluster fence since then
}

func readFenceState(disk Disk, node string) (fenceState, error) {
	content, err := disk.ReadFile(fenceStateName)
	if errors.Is(err, fs.ErrNotExist) {
		return fenceState{}, nil
	}
	var s fenceState
	if err == nil {
		err = readLine(bytes.TrimSuffix(content, []byte("\n")), &s)
	}
	if err == nil && (s.File != "leaf-cluster-fence" || s.Version != fenceStateVersion || s.Node != node) {
		err = fmt.Errorf("is a %q of version %d and node %s, should be a leaf-cluster-fence of version %d and node %s", s.File, s.Version, s.Node, fenceStateVersion, node)
	}
	if err != nil {
		return fenceState{}, err
	}
	return s, nil
}

// remember makes s durable; it does nothing if that is what is known.
func (c *cluster) remember(s fenceState) error {
	a := c.alloc
	s.File, s.Version, s.Node = "leaf-cluster-fence", fenceStateVersion, a.cfg.NodeID
	c.mu.Lock()
	same := c.known == s
	c.mu.Unlock()
	if same {
		return nil
	}
	if err := a.disk.Replace(fenceStateName, appendLine(nil, s)); err != nil {
		a.alarms.Raise(diskAlarm(fenceStateName, err))
		return fmt.Errorf("remember the state of the cluster fence: %w", err)
	}
	a.alarms.Clear(leaf.AlarmDisk, fenceStateName)
	c.mu.Lock()
	c.known = s
	c.mu.Unlock()
	return nil
}
