package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// registryFile has the ID of the registry of worker IDs that this data directory has used.
const registryFile = "registry"

// workerFile is the file of a fixed number, which is package worker's. One that leases its number leaves it as it is.
const workerFile = "worker.json"

// identified is a registry with an ID of its own. It is not that of a cluster: several clusters may share a registry, so that
// their IDs differ.
type identified interface {
	// Identify returns the ID of the registry. Where it has none it records id first, unless id is "".
	Identify(ctx context.Context, id string) (string, error)
}

// expecting is a registry that compares its ID in what it reads for a claim. A name in DNS may lead to two servers: then
// Identify may ask one, and the claim be made in the other.
type expecting interface {
	// Expect says which ID the registry has. Beside another one, reads return a *segment.ClusterError.
	Expect(id string) error
}

// knownRegistry claims nothing in another registry than the one that this data directory has used (rule V). The other nodes
// stay in the registry of before, where they get the numbers that the other registry gives, too. A registry that was wiped has
// no ID, and gets the same one back.
type knownRegistry struct {
	worker.Registry

	ids  identified
	file string                     // that keeps the ID, for texts
	keep func(content []byte) error // in that file
	log  *slog.Logger

	// inStore is whether it lies in the node's store, whose cluster is compared, too.
	inStore bool

	// plain is whether the node gives it no ID: it is in the store of a node with segment mode, or embedded.
	plain bool

	mu     sync.Mutex
	id     string    // "": not known yet
	moved  string    // the ID that an outside registry without one gets in place of id, which is the cluster's; "": id itself
	looked time.Time // when a claim or a renewal last looked for an ID: only these make one
	from   int64     // when the number of the last claim can be used; a renewal moves its Floor on
}

// lookAgain is how often a node that holds a number looks for an ID that it does not know. It may have no right to it, and a
// database writes a line for each question that it refuses.
const lookAgain = time.Minute

// known returns the registry as one who has used the data directory sees it, nil for a registry that has no ID.
func (r *registry) known(dir folder, log *slog.Logger) (*knownRegistry, error) {
	if r.ids == nil {
		return nil, nil //nolint:nilnil // there is nothing to compare
	}
	content, err := dir.ReadFile(registryFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	k := &knownRegistry{
		Registry: r.Registry, ids: r.ids, inStore: r.inStore, plain: r.plain,
		file: filepath.Join(dir.Path(), registryFile), log: log, id: strings.TrimSpace(string(content)),
	}
	clusters, err := rememberedClusters(dir)
	if err != nil {
		return nil, err
	}
	// The ID of a registry in a database is that of the cluster there.
	if !r.inStore && r.records == nil && k.id != "" && slices.Contains(slices.Collect(maps.Values(clusters)), k.id) {
		k.moved = movedID(k.id)
		return k, nil
	}
	k.expect(k.id)
	return k, nil
}

// movedID is the ID of a registry outside the store that takes the place of the one in the store of a cluster. All nodes of
// the cluster make the same one. With that of the cluster, a node that is later started without the setting that names the
// registry would take the registry in its store for it.
func movedID(cluster string) string {
	sum := sha256.Sum256([]byte("registry of worker IDs of cluster " + cluster))
	return hex.EncodeToString(sum[:16])
}

// knownToNode lets a node compare the registry with the one that its data directory has used, and keeps there the ID of the first
// one.
func (r *registry) knownToNode(dir *datadir.Dir, log *slog.Logger) error {
	k, err := r.known(dir, log)
	if err != nil || k == nil || k.plain && k.id == "" { // the node compares the cluster or the file of the store
		return err
	}
	k.keep = func(content []byte) error { return dir.Replace(registryFile, content) }
	r.Registry = k
	return nil
}

// checkStatic returns leaf.ErrConflict if the configuration gives a static number to a node that has had its number from a
// registry, or the other way round. The nodes that are still there get the same numbers. A file of an earlier static number does
// not say that they are not: the node may have been in the registry since, and come back to its number alone.
func (r *registry) checkStatic(dir folder) error {
	id, err := dir.ReadFile(registryFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.ids != nil:
		return checkNoStatic(dir)
	case errors.Is(err, fs.ErrNotExist), err == nil && r.ids != nil: // it has been in a registry since it had a static number, if it ever had one
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%w: snowflake.registry=static gives this node its worker ID, and the node has had one from the registry with the ID %q. That registry gives the same numbers, and two nodes with one number repeat IDs. If the node has had no static worker ID since, set snowflake.registry back: nodes with static ones are not in the registry, which may give it the number of one. "+
		"Or stop all nodes that have their worker IDs from that registry, and its Java servers for good, remove the file %s of each node, "+worker.LongestWait+", and start them, each with a static number of its own. If no node has had its worker ID from there for that long, remove the file of this node alone. "+
		"To divide the numbers between both, see docs/SNOWFLAKE.md",
		leaf.ErrConflict, strings.TrimSpace(string(id)), filepath.Join(dir.Path(), registryFile))
}

// checkNoStatic is checkStatic for a node that has its number from a registry, and had a static one: nodes with static numbers,
// which may still be there, are in no registry. The data directory does not watch the file: a node with a leased number may lose it.
func checkNoStatic(dir folder) error {
	path := filepath.Join(dir.Path(), workerFile)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var last struct {
		Registry string `json:"registry"`
		Number   int64  `json:"number"`
	}
	line, _, _ := bytes.Cut(content, []byte("\n"))
	_ = json.Unmarshal(line, &last) // a file that cannot be read is for a registry of fixed numbers to judge
	if last.Registry != config.RegistryStatic {
		return nil
	}
	return fmt.Errorf("%w: this node has had the static worker ID %d, and has none in its configuration any more. Other nodes that have static worker IDs are in no registry, which may give their numbers to this node, and two nodes with one number repeat IDs. If the node has had no worker ID from a registry since, set snowflake.registry=static again, with the number: a registry may have given that to another node. "+
		"Or stop all nodes that have static worker IDs, remove the file %s of each, "+worker.LongestWait+", and start them. If no node has had a static worker ID for that long, remove the file of this node alone. "+
		"To divide the numbers between both, see docs/SNOWFLAKE.md",
		leaf.ErrConflict, last.Number, path)
}

// knownToCommand lets a command compare, too. Where none has been used, there is nothing to compare, and a command keeps no ID.
func (r *registry) knownToCommand(dir unlocked, log *slog.Logger) error {
	k, err := r.known(dir, log)
	if err != nil || k == nil || k.id == "" {
		return err
	}
	r.Registry = k
	return nil
}

// expect lets the driver compare the ID, too, if it can. If it knows another one already, the next comparison says so. A registry
// in the store compares the cluster, which need not be the ID: this one may be that of a registry whose setting is lost.
func (k *knownRegistry) expect(id string) {
	if e, ok := k.ids.(expecting); ok && id != "" && !k.inStore {
		_ = e.Expect(id)
	}
}

// other gives the error of a driver that found another ID our text.
func (k *knownRegistry) other(err error) error {
	found, ok := errors.AsType[*segment.ClusterError](err)
	switch {
	case !ok:
		return err
	case k.inStore: // where all nodes have segment mode, the registry has no ID, and the cluster tells
		return &otherRegistryError{ids: *found, text: fmt.Sprintf("%v. Both clusters give the same worker IDs, so nothing is claimed or changed there. Lead the address of the store back to cluster %[2]s; "+
			"if a backup of cluster %[2]s was loaded into a new database, stop all nodes and Java servers, run in it: UPDATE leaf_meta SET value = '%[2]s' WHERE name = 'cluster_id'; DELETE FROM leaf_worker_namespace, and start the nodes as docs/OPERATIONS.md#backup-and-restore-drill says: the worker IDs wait as after a wipe; do the same if the database of cluster %[2]s is lost for good, and this one was made in its place; "+
			"only if the database has other nodes, and this one is to be one of them, stop it, and start it with a new data directory", found, found.Own)}
	}
	return k.otherRegistry(found.Own, found.Found)
}

func (k *knownRegistry) otherRegistry(own, found string) error {
	return &otherRegistryError{segment.ClusterError{Own: own, Found: found}, fmt.Sprintf("another registry of worker IDs answers: its ID is %q, and the node of this data directory used %q before. Both give the same worker IDs, so nothing is claimed or changed there. Lead the address back, or, if snowflake.registry is not set any more, set it again. "+
		"If this registry takes the place of the other one, or is the one of before, which was wiped and declared new, stop all nodes, and Java servers of the other one for good, remove the file %s of each node, "+worker.LongestWait+", and start them", found, own, k.file)}
}

// only makes a call if no other registry answers.
func (k *knownRegistry) only(ctx context.Context, call func() error) error {
	if err := k.compare(ctx, ""); err != nil {
		return err
	}
	return k.other(call())
}

// Init implements worker.Registry. A registry that was wiped gets its ID back, so that the nodes that know it go on.
func (k *knownRegistry) Init(ctx context.Context, ns worker.Namespace) error {
	return k.only(ctx, func() error { return k.Registry.Init(ctx, ns) })
}

// Free implements worker.Registry. The numbers of another registry are not this administrator's.
func (k *knownRegistry) Free(ctx context.Context, number int64) error {
	return k.only(ctx, func() error { return k.Registry.Free(ctx, number) })
}

// List implements worker.Registry.
func (k *knownRegistry) List(ctx context.Context) (all []worker.Record, err error) {
	err = k.only(ctx, func() (err error) {
		all, err = k.Registry.List(ctx)
		return err
	})
	return all, err
}

// Peers implements worker.Registry. The nodes of another registry do not judge the clock of this one.
func (k *knownRegistry) Peers(ctx context.Context) (all []worker.Peer, err error) {
	err = k.only(ctx, func() (err error) {
		all, err = k.Registry.Peers(ctx)
		return err
	})
	return all, err
}

// Claim implements worker.Registry. It compares before, so that no number is taken elsewhere, and again after it, because the
// address may have changed its meaning meanwhile.
func (k *knownRegistry) Claim(ctx context.Context, req worker.Request) (worker.Record, error) {
	if err := k.compare(ctx, ""); err != nil {
		return worker.Record{}, err
	}
	own, err := k.Registry.Claim(ctx, req)
	if err = k.other(err); err == nil {
		k.mu.Lock()
		k.from, k.looked = own.Floor, time.Now()
		k.mu.Unlock()
		err = k.compare(ctx, k.newID(time.Now()))
	}
	return own, err
}

// Renew implements worker.Registry. A claim that another registry does not know is not lost. One that it knows, because it is a
// copy, is not renewed: what is written there keeps no node from taking the number in the registry of before. So each renewal
// compares. A registry that has lost its ID gets it back long before a number of a wiped registry can be used, and so before a
// new node makes another ID.
func (k *knownRegistry) Renew(ctx context.Context, own worker.Record, bound int64) (worker.Record, error) {
	renewed, err := k.Registry.Renew(ctx, own, bound)
	made := ""
	switch {
	case errors.Is(err, worker.ErrLost):
	case err == nil && k.isDue():
		made = k.newID(time.Now())
	default:
		return renewed, k.other(err)
	}
	failed := k.compare(ctx, made)
	if other, ok := errors.AsType[*otherRegistryError](failed); ok {
		return own, other
	}
	if failed != nil {
		k.log.Debug("the ID of the registry of worker IDs was not compared", "error", failed)
	}
	return renewed, err
}

// newID is an ID for a registry without one, "" if this node must not make it: the registry may have been wiped, and the nodes
// that know its ID write it back before a number can be used.
func (k *knownRegistry) newID(now time.Time) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.from > now.UnixMilli() {
		return ""
	}
	return segment.NewClusterID()
}

// isDue reports whether a renewal is to look for an ID now, and takes note that it does.
func (k *knownRegistry) isDue() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.id == "" && time.Since(k.looked) < lookAgain {
		return false
	}
	k.looked = time.Now()
	return true
}

// compare returns an error if another registry answers. made is the ID for one that has none, if this node knows none either.
func (k *knownRegistry) compare(ctx context.Context, made string) error {
	k.mu.Lock()
	known, moved := k.id, k.moved
	k.mu.Unlock()
	switch {
	case k.plain:
		made = ""
	case moved != "":
		made = moved
	case known != "":
		made = known
	}
	found, err := k.ids.Identify(ctx, made)
	if other, ok := errors.AsType[*otherRegistryError](k.other(err)); ok {
		return other
	}
	if err != nil {
		return fmt.Errorf("read the ID of the registry: %w", err)
	}
	kept := true
	switch {
	case known == found, found == "" && !k.inStore: // none is no other registry's. In the store the known one was another place's
		found = known
	case known != "" && (moved == "" || found != moved):
		return k.otherRegistry(known, found)
	case k.keep != nil:
		if err := k.keep([]byte(found + "\n")); err != nil { // the next comparison tries again
			k.log.Warn("the ID of the registry of worker IDs cannot be kept; the next start does not notice another registry", "error", err)
			found, kept = known, false
		}
	}
	k.mu.Lock()
	k.id = found
	k.mu.Unlock()
	if kept && (known == "" || moved != "") {
		k.expect(found)
	}
	return nil
}

// otherRegistryError says that another registry of worker IDs answers, and what to do.
type otherRegistryError struct {
	ids  segment.ClusterError
	text string
}

func (e *otherRegistryError) Error() string { return e.text }

func (e *otherRegistryError) Unwrap() error { return &e.ids }
