package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// clusterFile has the IDs of the clusters whose databases this data directory took ranges or worker
// IDs from, by the name of the store. A later process with this directory takes neither from
// a database of another cluster: its fence says nothing of that cluster's ranges, and its neighbours
// have the same worker IDs. The ID is "" where only the name counts: the database has no ID, or App.keepsClusters is false.
const clusterFile = "cluster"

// embeddedName stands for leaf.db in the file. A node that moves from it to a server calls
// both stores "default", and does not come to another cluster.
const embeddedName = "leaf.db"

// recall tells the stores what earlier processes remembered. Call it before any of them
// reads its database. Error: one whose text says what is wrong with the file.
func (d *databases) recall(dir folder) error {
	known, err := rememberedClusters(dir)
	if err != nil {
		return err
	}
	for i, s := range d.stores {
		if id := cmp.Or(known[d.remembered(i)], d.renamed(known)); id != "" {
			if err := s.Expect(id); err != nil {
				return fmt.Errorf("store %q: %w", d.name(i), err)
			}
		}
	}
	return nil
}

// renamed returns the ID of the one cluster from which this data directory took anything, "" if there is none or more than one.
// An only store of another name than before is still to be a database of that cluster. Where there are several stores, the tag
// rule has their names, and a new one among them has an ID of its own.
func (d *databases) renamed(known map[string]string) string {
	ids := map[string]bool{}
	for name, id := range known {
		if name != embeddedName && id != "" {
			ids[id] = true
		}
	}
	if d.embedded || len(d.stores) > 1 || len(ids) != 1 {
		return ""
	}
	return slices.Collect(maps.Keys(ids))[0]
}

// checkEmbedded refuses the embedded database in the data directory of a node that used another
// one: it was started without its --store. Other nodes hand out the numbers of that store's tags
// and hold its worker IDs, and the embedded database knows neither. No setting allows it: store-private may stand beside an
// SQLite file that the nodes of a machine share, and stay when the store is forgotten.
func checkEmbedded(dir *datadir.Dir) error {
	known, err := rememberedClusters(dir)
	if err != nil {
		return err
	}
	delete(known, embeddedName)
	if len(known) == 0 {
		return nil
	}
	return fmt.Errorf("%w: the node of data directory %s uses store %q, and no store is named now: the embedded database would hand out numbers and worker IDs that other nodes of that store have. "+
		"Name the store with --store or LEAF_STORE, or, for a node of its own, another --data-dir. If no other node uses that store, and this one is to have numbers of its own from now on, "+worker.LongestWait+", for the worker IDs of leaf.db do not wait, and remove the file %s",
		leaf.ErrConflict, dir.Path(), strings.Join(slices.Sorted(maps.Keys(known)), ", "), filepath.Join(dir.Path(), clusterFile))
}

// checkAll refuses what checkLost refuses, of each store, and leaf.db.
func (d *databases) checkAll(dir *datadir.Dir) error {
	if d.embedded {
		return checkLost(dir, embeddedName, d.stores[0].MissingFile(), makeAgain(dir))
	}
	return d.checkFiles(dir)
}

// makeAgain is the command that makes leaf.db again.
func makeAgain(dir *datadir.Dir) string {
	return fmt.Sprintf("leaf schema apply --data-dir %q", dir.Path())
}

// checkFiles refuses to create the SQLite file of a store again when the node has used that store
// before and the file is gone: the path may lead elsewhere now, and other nodes may go on with the
// file. For leaf.db it is checkLost.
func (d *databases) checkFiles(dir *datadir.Dir) error {
	if d.embedded {
		return nil
	}
	for i, s := range d.stores {
		path := s.MissingFile()
		command := fmt.Sprintf("leaf schema apply --data-dir %q --store %q", dir.Path(), "sqlite:"+path)
		if len(d.stores) > 1 { // alone, it would become the only store of another cluster
			command = fmt.Sprintf("leaf schema apply --accept-rule --lost %s --data-dir %q, with the stores and tag rules of this node", d.name(i), dir.Path())
		}
		if err := checkLost(dir, d.name(i), path, command); err != nil {
			return err
		}
	}
	return nil
}

// checkLost returns leaf.ErrConflict if the file of a store is missing that this data directory has used,
// with the command that makes it again. missing is "" for one that is there.
func checkLost(dir *datadir.Dir, store, missing, command string) error {
	if missing == "" {
		return nil
	}
	known, err := rememberedClusters(dir)
	if err != nil {
		return err
	}
	if _, used := known[store]; !used {
		return nil
	}
	return fmt.Errorf("%w: store %q: file %s is missing or empty, and this node has used this store before: if the file was moved, or its file system is not mounted, put it back, and if the path is relative, start the node in the same folder as before; never use a backup. "+
		"If the file is lost for good, stop every node that used it, run %s, and then, for each tag, leaf tag create TAG --start NUMBER, with that --data-dir, the stores of this node, %s; then start the nodes",
		leaf.ErrConflict, store, missing, command, segment.AboveAll)
}

// remember writes the names of the stores that are not silent and, with ids, the IDs that they have read, if one is new.
func (d *databases) remember(dir *datadir.Dir, silent map[int]bool, ids bool) error {
	known, err := rememberedClusters(dir)
	if err != nil {
		return err
	}
	now := map[string]string{}
	maps.Copy(now, known)
	for i, s := range d.stores {
		if silent[i] {
			continue
		}
		id := ""
		if ids {
			id = s.KnownCluster()
		}
		if name := d.remembered(i); now[name] == "" || id != "" {
			now[name] = id
		}
	}
	if maps.Equal(now, known) {
		return nil
	}
	content, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return dir.Replace(clusterFile, append(content, '\n'))
}

// remembered is the name of a store in the file.
func (d *databases) remembered(store int) string {
	if d.embedded {
		return embeddedName
	}
	return d.name(store)
}

// folder is a data directory.
type folder interface {
	Path() string
	ReadFile(name string) ([]byte, error)
}

// unlocked is a data directory that a command reads while a node may run there: no file of it is replaced in part. One that
// the command's user may not read has no files.
type unlocked string

func (u unlocked) Path() string { return string(u) }

func (u unlocked) ReadFile(name string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(string(u), name))
	if errors.Is(err, fs.ErrPermission) {
		return nil, fs.ErrNotExist
	}
	return content, err
}

func rememberedClusters(dir folder) (map[string]string, error) {
	content, err := dir.ReadFile(clusterFile)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	if err := json.Unmarshal(content, &known); err != nil {
		return nil, fmt.Errorf("file %s of data directory %s cannot be read: %w; it keeps this node from the database of another cluster; if --store is right, remove the file, and the node makes it anew", clusterFile, dir.Path(), err)
	}
	return known, nil
}
