package worker

import (
	"fmt"
	"maps"
	"slices"

	"github.com/leaf-idgen/leaf"
)

// reportLag is how much later than it says a driver takes another program's report of
// its time to be, ms (rule J). A floor that is further away stems from a wrong clock.
const reportLag = 10_000

// choose returns the record to overwrite, its Floor set to where the new owner may
// start; or, if the nonce holds one already, that record as it is.
func choose(records []Record, reserved []Adoptable, issueFrom int64, req Request) (Record, error) {
	known := make(map[int64]Record, len(records))
	for _, r := range records {
		if r.Nonce == req.Nonce && !r.Released {
			return r, nil
		}
		known[r.Number] = r
	}
	own, isOwn := previous(known, req)
	if slices.ContainsFunc(reserved, func(a Adoptable) bool { return a.Number == own.Number && (a.Damage != "" || a.Address != req.Address) }) {
		isOwn = false // another program gave it to another node, such as the address that this node had
	}
	if isOwn && own.Floor <= req.Now+req.Margin {
		return own, nil
	}
	all := candidates{now: req.Now, end: req.End}
	var taken []int64 // numbers of the range that are not unused
	others := 0       // of them, rows of another program
	var freed int64   // the lowest T of those that return when it and the margin have passed
	barred := make(map[int64]bool, len(reserved))
	for _, a := range reserved {
		if !barred[a.Number] && inRange(req.Numbers, a.Number) {
			taken = append(taken, a.Number)
			others++
		}
		barred[a.Number] = true
		switch r, ok := adopt(known, a, issueFrom, req); {
		case isOwn && a.Number == own.Number:
			all.put(own, true)
		case ok && r.Floor <= req.Now+req.Margin+reportLag:
			return r, nil
		case ok:
			all.put(r, true)
		}
	}
	damaged := 0
	for _, n := range slices.Sorted(maps.Keys(known)) {
		if barred[n] || !inRange(req.Numbers, n) {
			continue
		}
		taken = append(taken, n)
		r := known[n]
		switch {
		case r.Damage != "":
			damaged++
		case isOwn && n == own.Number:
			all.put(own, !r.Released)
		case r.free(req):
			r.Floor = r.Bound
			all.put(r, !r.Released)
		case freed == 0 || r.Bound < freed:
			freed = r.Bound
		}
	}
	all.putUnused(req.Numbers.Len()-int64(len(taken)), issueFrom)
	r, rank, ok := all.pick(req.Nonce)
	if !ok {
		return Record{}, full(req, others, damaged, all.past, freed)
	}
	if rank >= 0 {
		r = Record{Number: unusedAt(req.Numbers.Lo, rank, taken), Floor: issueFrom}
	}
	return r, nil
}

// free reports whether any process may take the number.
func (r Record) free(req Request) bool {
	return r.Released || req.Now-req.Margin >= r.Bound
}

// previous finds the claim that this data directory held last, if no node has
// claimed its number since. Its own file says more exactly than T what was issued,
// unless it lies below what the owner had issued when it renewed last: then it is an old copy.
func previous(known map[int64]Record, req Request) (Record, bool) {
	if req.Previous == nil || !inRange(req.Numbers, req.Previous.Number) {
		return Record{}, false
	}
	r, used := known[req.Previous.Number]
	if !used || !req.Previous.Made(r.Nonce) {
		return Record{}, false
	}
	switch {
	case r.Released:
		r.Floor = r.Bound
	case req.Previous.Inner < r.Floor:
		r.Floor = r.Bound
	default:
		r.Floor = min(r.Bound, req.Previous.Inner)
	}
	return r, true
}

// adopt finds a number that another program gave to this address.
func adopt(known map[int64]Record, a Adoptable, issueFrom int64, req Request) (Record, bool) {
	if a.Damage != "" || a.Address != req.Address || !inRange(req.Numbers, a.Number) {
		return Record{}, false
	}
	r, used := known[a.Number]
	if used && (r.Damage != "" || !r.free(req)) {
		return Record{}, false
	}
	if !used {
		r = Record{Number: a.Number, Bound: issueFrom}
	}
	r.Floor = max(r.Bound, a.Floor)
	return r, true
}

func inRange(r leaf.Range, n int64) bool { return r.Lo <= n && n < r.Hi }

func full(req Request, others, damaged, past int, freed int64) error {
	text := fmt.Sprintf("all %d worker IDs %d to %d are taken", req.Numbers.Len(), req.Numbers.Lo, req.Numbers.Hi-1)
	if others > 0 {
		text += fmt.Sprintf(", %d of them by rows of another program", others)
	}
	if damaged > 0 {
		text += fmt.Sprintf(", the records of %d cannot be read", damaged)
	}
	if past > 0 {
		text += fmt.Sprintf(", %d of them past the end of the layout, because the clock of the last owner was: these can never be used", past)
	}
	if freed > 0 {
		text += fmt.Sprintf("; unless renewed, the next one returns in %d s", max(0, freed-req.Now+req.Margin+999)/1000)
	}
	err := ErrFull
	if freed == 0 || req.Latest != 0 && freed > req.Latest {
		err = errNoneReturns
	}
	return fmt.Errorf("%w: %s (leaf worker list shows their owners)", err, text)
}
