package memory

import (
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf/worker"
)

// InParts returns what a registry lists that reads its claims first and T later, as the one in ZooKeeper does. claims and bounds
// are two lists of a Registry, made in this order. A number whose claim was written between the two has its old claim, the new T,
// and the version of no other reading.
func InParts(claims, bounds []worker.Record) (records []worker.Record) {
	for _, b := range bounds {
		r := worker.Record{Number: b.Number}
		if at := indexOf(claims, b.Number); at >= 0 {
			r = claims[at]
		}
		switch {
		case b.Damage != "":
			r = b
		case r.Damage == "":
			claim, _ := cutVersion(r.Version)
			_, bound := cutVersion(b.Version)
			r.Bound, r.Version = b.Bound, claim+"/"+bound
		}
		records = append(records, r)
	}
	for _, c := range claims {
		if indexOf(bounds, c.Number) < 0 {
			records = append(records, worker.Record{Number: c.Number, Damage: "it has no T"})
		}
	}
	return records
}

func indexOf(records []worker.Record, number int64) int {
	return slices.IndexFunc(records, func(r worker.Record) bool { return r.Number == number })
}

// cutVersion returns the two parts of what versionLocked makes, for "" those of a number without claim and T.
func cutVersion(version string) (claim, bound string) {
	if version == "" {
		return "0", "0"
	}
	claim, bound, _ = strings.Cut(version, "/")
	return claim, bound
}
