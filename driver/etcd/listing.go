package etcd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf/worker"
)

// listing puts the claims and bounds of numbers together. What cannot be read is noted
// for its number, so that it keeps no other number from being claimed.
type listing struct {
	records  map[int64]worker.Record
	versions map[int64]version
	damage   map[int64]string // by number, -1: no number can be told
}

// number returns the number that key ends in. One that is not written as it must be is
// the damage of the number that it means.
func (l *listing) number(key, prefix string) (n int64, ok bool) {
	n, err := decodeNumber(key, prefix)
	if err == nil {
		return n, true
	}
	meant, parseErr := strconv.ParseInt(strings.TrimPrefix(key, prefix), 10, 64)
	if parseErr != nil || meant < 0 {
		meant = -1
	}
	l.damage[meant] = err.Error()
	return 0, false
}

func (l *listing) claim(key, prefix string, value []byte, revision int64) {
	n, ok := l.number(key, prefix)
	if !ok {
		return
	}
	var c claimValue
	if err := decode(key, value, &c); err != nil {
		l.damage[n] = err.Error()
	}
	l.records[n] = worker.Record{Number: n, Address: c.Address, Nonce: c.Nonce, Floor: c.Floor, Released: c.Released}
	l.versions[n] = version{claim: revision, text: string(value)}
}

func (l *listing) bound(key, prefix string, value []byte, revision int64) {
	n, ok := l.number(key, prefix)
	if !ok {
		return
	}
	record, v := l.records[n], l.versions[n]
	var err error
	if record.Bound, err = decodeBound(key, value); err != nil {
		l.damage[n] = err.Error()
	}
	record.Number, v.bound = n, revision
	l.records[n], l.versions[n] = record, v
}

// all returns the records. A claim without T is damaged too: nothing tells what its
// owner has issued.
func (l *listing) all(claims, bounds string) []worker.Record {
	list := make([]worker.Record, 0, len(l.records)+len(l.damage))
	for n, record := range l.records {
		if l.versions[n].bound == 0 && l.damage[n] == "" {
			l.damage[n] = fmt.Sprintf("etcd key \"%s%d\" exists and \"%s%d\" does not", claims, n, bounds, n)
		}
		if l.damage[n] == "" {
			record.Version = l.versions[n].String()
			list = append(list, record)
		}
	}
	for n, why := range l.damage {
		list = append(list, worker.Record{Number: n, Damage: why})
	}
	return list
}
