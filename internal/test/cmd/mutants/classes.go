package main

import (
	"fmt"
	"slices"
	"strings"
)

// class is something that at least one mutant must break: a guarantee or a rule of
// docs/RULES.md, or a defect that a peer really had.
type class struct{ name, text string }

// classes are all of them, in the order of the table. Those of peers are named by the
// thread that reports them, or by the peer and a word.
var classes = slices.Concat(guarantees, rules, peers)

var guarantees = []class{
	{"guarantee 1", "a range comes only from the committed statement"},
	{"guarantee 2", "a range below the highest end seen is refused"},
	{"guarantee 3", "steps and sums are checked; max_id never decreases"},
	{"guarantee 4", "a worker ID is what one atomic claim returned"},
	{"guarantee 5", "a claim has an owner; a loss that is noticed stops issuing"},
	{"guarantee 6", "every snowflake ID lies below T, a successor starts at T"},
	{"guarantee 7", "local files are atomic, identified, checked and locked"},
	{"guarantee 8", "another epoch, layout or namespace refuses the start"},
	{"guarantee 9", "a disabled or failed mode never answers 2xx"},
	{"guarantee 10", "a caller waits up to its deadline, without spinning"},
	{"guarantee 11", "every call has a deadline; retries back off; all is bounded"},
	{"guarantee 12", "no mutex over I/O or a wait"},
	{"guarantee 13", "started with the database down: 503, and serving soon after it returns"},
	{"guarantee 14", "errors are distinct, and one table maps them"},
	{"guarantee 15", "a clean stop drains and gives unused tails back"},
}

// withoutMutants says why a rule is no class.
var withoutMutants = map[string]string{
	"rule L": "it excludes in writing what the code cannot notice; the simulation fails when an entry never shows",
}

var rules = []class{
	{"rule A", "a regress latches the tag until repaired"},
	{"rule B", "the own fence is durable before the first ID"},
	{"rule C", "the cluster fence: read, reserve, compare, swap, serve"},
	{"rule D", "T outlives the claim; a missing namespace may have been wiped"},
	{"rule E", "two bounds, neither grows without its keeper"},
	{"rule F", "floors are whole units; a jump of the clock is not believed"},
	{"rule G", "return in order, by one compare-and-set"},
	{"rule H", "a load in one message on MySQL, by the step believed"},
	{"rule I", "ZooKeeper in the original's layout"},
	{"rule J", "migration to and from Java"},
	{"rule K", "tags belong to one database, and names are compared bytewise"},
	{"rule M", "a fence counts ranges, not readings"},
	{"rule N", "a replicated statement means the same on every replica"},
	{"rule O", "a connection is used again after an acknowledged end only"},
	{"rule P", "a warning at the commit is an unknown outcome"},
	{"rule Q", "a file that uniqueness rests on is missed when it is gone"},
	{"rule R", "evidence of a regress does not fade"},
	{"rule S", "what a text says is safe when it is followed literally"},
	{"rule U", "whoever finds T gone knows that it was lost"},
	{"rule V", "what separates two ID spaces is compared at each renewal"},
	{"rule W", "shared with private does not mix"},
	{"rule X", "a tag in strict order has one owner; take first, then ask"},
	{"rule Y", "a number of a period is issued in its period"},
}

var peers = []class{
	// Leaf for Java.
	{"Leaf#108", "first-start race, every node of an empty registry runs as 0"},
	{"Leaf bypass", "the fallback to the local file skips the clock check"},
	{"Leaf#216", "3 s gap, only past times are recorded"},
	{"Leaf#97", "the local file has no time"},
	{"Leaf twins", "two nodes with one ip:port share a worker ID"},
	{"Leaf wiped", "a registry that was wiped goes unnoticed"},
	{"Leaf#187", "two environments mix up their registries"},
	{"Leaf#208", "a row that goes backwards is served"},
	{"Leaf step", "a step of 0, below 0, or too large"},
	{"Leaf zero", "a disabled mode answers 200 and 0"},
	{"Leaf engine", "a table without transactions"},
	{"Leaf rows", "the number of rows affected is ignored"},
	{"Leaf cache", "an ID may be answered from an HTTP cache"},
	{"Leaf dot", "the tag ends at its last dot"},
	{"Leaf 26e3965", "stale-step overlap: the second load uses the old step with the new row"},
	{"Leaf#84", "restarts with changing addresses exhaust the worker IDs"},
	{"Leaf#74", "an address or name with a hyphen"},
	{"Leaf#32", "a node registers as 127.0.0.1"},
	{"Leaf#57", "worker ID by modulo"},
	{"Leaf#40", "no comparison with the peers' clocks"},
	{"Leaf#112", "a step of the clock by a few milliseconds is an outage"},
	{"Leaf#153", "a caller spins for ever when the clock has stepped back"},
	{"Leaf#106", "negative IDs past 41 bits"},
	{"Leaf#1", "a caller that meets an empty buffer gets an error at once"},
	{"Leaf#30", "a waiting caller spins"},
	{"Leaf#15", "a restart throws away what is left of its ranges"},
	{"Leaf#111", "a step edited in the database never counts"},
	{"Leaf#204", "the last tag is never removed"},
	{"Leaf hang", "4.3-18: one hung load wedges its key for ever"},
	{"Leaf lock", "4.3-21: a lock is held over the load"},
	{"Leaf boot", "4.3-23: started with the database down, every key is unknown"},
	{"Leaf fork", "4.5-37: a worker ID is recycled before its owner has stopped"},

	// Others.
	{"tinyid#10", "the two statements of a load reach two databases"},
	{"tinyid#47", "a later range is served before an earlier one"},
	{"tinyid 200", "an error is answered with 200 and an empty body"},
	{"uid-generator#46", "the claim's answer is not read, the worker ID stays 0"},
	{"uid-generator#52", "a worker ID outside its bits makes two moments equal"},
	{"uid-generator#85", "a clock ahead, then a restart below the previous highest ID"},
	{"CosId#342", "a claim that is gone is not noticed"},
	{"CosId#1025", "a claim lowers the recorded time"},
	{"yitter#110", "renewal does not check whose claim it is"},
	{"sonyflake lock", "the clock is waited for with a lock held, by a caller who cannot leave"},
	{"sonyflake#72", "a worker ID is not masked and reaches into other fields"},
	{"bwmarrin#20", "the clock is monotonic within a process, nothing protects a restart"},
	{"pd#191", "the bound is stored after what it covers was issued"},
	{"pd#9171", "a former owner still writes"},
	{"vitess#5590", "a sequence that was lowered underneath is not validated"},
	{"vitess#3116", "stale cache: ranges of before a loss are served after it"},
	{"TiDB#46444", "a non-owner writes its stale maximum back on exit"},
	{"zitadel#10484", "the default worker ID is cut from the IP address"},
	{"shardingsphere#5822", "worker ID 0 after a failed initialisation"},
	{"twitter#6", "the sequence is reset before the timestamp is compared"},
	{"goLeaf#2", "load, then increment"},
	{"goLeaf max+1", "worker ID is the highest one plus 1"},
	{"goLeaf 0,nil", "a failed initialisation answers 0 without an error"},
	{"busyfree ready", "a range is taken for loaded after an error of the database"},
	{"busyfree tags", "tags that were just added are deleted"},
	{"JerryZhou343", "an error of the commit is ignored"},
	{"JerryZhou343 loop", "a caller whose context has ended goes on trying"},
}

// parseClasses reads the value of a line "Class:".
func parseClasses(value string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(value, ";") {
		name = strings.TrimSpace(name)
		if !slices.ContainsFunc(classes, func(c class) bool { return c.name == name }) {
			return nil, fmt.Errorf("line Class: %q is not in internal/test/cmd/mutants/classes.go", name)
		}
		names = append(names, name)
	}
	return names, nil
}
