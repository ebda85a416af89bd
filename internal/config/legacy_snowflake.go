package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The modes of the fork's leaf.snowflake.mode. The original has the first one only.
const (
	legacyNormal  = "zk_normal"
	legacyRecycle = "zk_recycle"
	legacyMySQL   = "mysql"
	legacyLocal   = "local"
)

// placeholder is what Maven replaces in a file of resources.
var placeholder = regexp.MustCompile(`\$\{|@.+@`)

// snowflake translates the keys of snowflake mode. It returns whether the mode needs
// the database of leaf.jdbc.url.
//
// As in Java a missing leaf.snowflake.enable means true, but not in a file that says
// nothing else about the mode either: no Java server starts with such a file, so it
// was written for segment mode.
func (t *translator) snowflake() (needsDatabase bool) {
	enable, set := t.seen[legacySnowflake]
	on, ok := t.enabled(legacySnowflake)
	if !ok {
		return false
	}
	spoken := slices.ContainsFunc(legacySnowflakeKeys, func(key string) bool { return t.seen[key].value != "" })
	if on && !set && !spoken {
		on = false
		t.out.notes = append(t.out.notes, fmt.Sprintf("%s says nothing about snowflake mode, so it is off; leaf.snowflake.enable=true turns it on", t.file))
	}
	t.set("snowflake.enable", t.at(enable), strconv.FormatBool(on))
	if !on {
		for _, key := range legacySnowflakeKeys {
			if p, found := t.seen[key]; found {
				t.note(p, "is ignored, because snowflake mode is off")
			}
		}
		return false
	}
	t.port()
	mode := t.seen[legacyMode]
	at := t.at(mode)
	switch mode.value {
	case legacyNormal, "":
		t.zooKeeper(at, RegistryZooKeeper)
	case legacyRecycle:
		t.note(mode, "is served from a pool of our own: the fork's pool can give one worker ID to two nodes, so its nodes and ours must not run at the same time, nor one right after the other: docs/MIGRATION.md says how long to wait")
		t.zooKeeper(at, RegistryZooKeeperRecycle)
	case legacyMySQL:
		t.set("snowflake.registry", at, RegistrySQL)
		t.note(mode, "is served from a table of our own, at which the fork does not look: stop all nodes of the fork before, and wait for as long as docs/MIGRATION.md says; a row for this ip:port in leaf_workerid_alloc is adopted with its number and its time")
		needsDatabase = true
	case legacyLocal:
		t.workers(at)
	default:
		t.fail(mode, mode.value, fmt.Sprintf("must be %s, %s, %s or %s", legacyNormal, legacyRecycle, legacyMySQL, legacyLocal))
	}
	unused := []string{legacyZooKeeper, legacyWorkers}
	switch mode.value {
	case legacyNormal, legacyRecycle, "":
		unused = unused[1:]
	case legacyLocal:
		unused = unused[:1]
	}
	for _, key := range unused {
		if p := t.seen[key]; p.value != "" {
			t.note(p, "is ignored, because leaf.snowflake.mode="+cmp.Or(mode.value, legacyNormal))
		}
	}
	return needsDatabase
}

func (t *translator) set(key, source string, values ...string) {
	t.out.settings = append(t.out.settings, setting{key, values, source})
}

// port sets the port of the identity ip:port in ZooKeeper. It makes no server listen there.
func (t *translator) port() {
	p := t.seen[legacyPort]
	if p.value == "" {
		return // the identity has the port of the HTTP server
	}
	if n, err := strconv.ParseUint(p.value, 10, 16); err != nil || n == 0 {
		t.fail(p, p.value, "must be a port from 1 to 65535")
		return
	}
	t.set("snowflake.address", t.at(p), ":"+p.value)
}

// theirName is for a node that has lost the name which the others set: with a name of its own it would have their worker IDs.
const theirName = "If other nodes of this cluster set snowflake.name (LEAF_SNOWFLAKE_NAME), set it to theirs, and change nothing else. "

// zooKeeper reads the connect string and the name in the path. Nothing is set if they
// are wrong, so that one mistake is reported once.
func (t *translator) zooKeeper(at, kind string) {
	p := t.seen[legacyZooKeeper]
	if p.value == "" {
		p.key = legacyZooKeeper
		t.fail(p, "", "is missing or blank: it must name the servers of ZooKeeper, HOST:PORT,HOST:PORT")
		return
	}
	var servers []string
	for s := range strings.SplitSeq(p.value, ",") {
		s = strings.TrimSpace(s)
		if s != "" {
			servers = append(servers, s)
		}
	}
	name, set := t.seen[legacyName]
	name.key = legacyName
	switch {
	case !set && kind == RegistryZooKeeper:
		t.fail(name, "", "is missing: with ZooKeeper it is a part of the path. To the Java server it is then "+javaNull+": if Java servers have this file, too, or had it, write leaf.name="+javaNull+". By another name this node has worker IDs that they have")
		return
	case name.value == "":
		t.fail(name, "", "is missing or blank: with ZooKeeper it is a part of the path")
		return
	}
	t.set("snowflake.registry", at, kind)
	t.set("snowflake.registry-address", t.at(p), servers...)
	if kind == RegistryZooKeeper && name.value != t.javaName { // beside Java servers, or after them
		t.out.needs["snowflake.name"] = &Error{Key: name.key, Value: name.value, Source: t.at(name), Limit: fmt.Sprintf("is %q to the Java server, which keeps blanks behind a name and reads no UTF-8: another path of ZooKeeper, where the worker IDs are the same. "+
			theirName+"While Java servers use that path, stop all nodes that have run with this file, set snowflake.name to that name on all of them, and leave the file as it is. "+
			"If no Java server is left, leave the blank out, write each letter beyond ASCII as \\uXXXX, and save the file without a mark of UTF-8 (BOM). "+
			"In both cases start the nodes when the longest horizon has passed since the last stop"+orLater, t.javaName)}
		return
	}
	if kind == RegistryZooKeeper && placeholder.MatchString(name.value) {
		t.out.needs["snowflake.name"] = &Error{Key: name.key, Value: name.value, Source: t.at(name), Limit: "has a placeholder, which the build of the Java server may fill in: it then has another path of ZooKeeper, where the worker IDs are the same. " +
			"Use the leaf.properties out of the jar that runs. If the name stands there as it does here, set snowflake.name to it (LEAF_SNOWFLAKE_NAME)"}
		return
	}
	if kind == RegistryZooKeeper && !isPathName(name.value) {
		t.out.needs["snowflake.name"] = &Error{Key: name.key, Value: name.value, Source: t.at(name), Limit: "must have " + pathNameForm + ", although the Java server takes more. By another name this node has worker IDs that Java servers with this one have. " + theirName +
			"Else stop all of these, set snowflake.name to one new name on all nodes, do not run leaf worker init, start the nodes when the longest horizon has passed" + orLater + ", and start no Java server by this name again. While one runs, only segment mode can run beside it: snowflake.enable=false (LEAF_SNOWFLAKE_ENABLE)"}
		return
	}
	t.set("snowflake.name", t.at(name), name.value)
}

// workers reads the fork's map of ip:port to worker ID: {"10.1.46.33:8080":1}.
func (t *translator) workers(at string) {
	p := t.seen[legacyWorkers]
	p.key = legacyWorkers
	var byAddress map[string]*int64 // nil: null, which is no number, least of all 0
	err := json.Unmarshal([]byte(p.value), &byAddress)
	isNull := func(n *int64) bool { return n == nil }
	if err != nil || len(byAddress) == 0 || slices.ContainsFunc(slices.Collect(maps.Values(byAddress)), isNull) {
		t.fail(p, p.value, `must be a JSON object of ip:port and worker ID, such as {"10.1.46.33:8080":1}`)
		return
	}
	entries := make([]string, 0, len(byAddress))
	for _, address := range slices.Sorted(maps.Keys(byAddress)) {
		entries = append(entries, fmt.Sprintf("%s=%d", address, *byAddress[address]))
	}
	t.note(t.seen[legacyMode], "gives this node the worker ID of its ip:port: stop all nodes of the fork before, and wait for as long as docs/MIGRATION.md says, because each keeps the number of its first start, whatever the map says since, and nothing watches them: one with this number would issue the same IDs")
	t.set("snowflake.registry", at, RegistryStatic)
	t.set("snowflake.worker-map", t.at(p), entries...)
}
