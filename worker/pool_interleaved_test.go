package worker_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/worker"
)

// TestPoolInterleaved lets three processes claim, renew and release a few numbers, one call to the store at a time. The
// seed decides whose turn it is, and which calls are lost or late, so that a failure can be repeated. Half of the seeds
// read T later than the claims, as from ZooKeeper, and half delete records or the namespace. In a quarter, failovers lose
// what was written since the last write that was acknowledged. In an eighth, backups are restored beside the processes, and
// the namespace is deleted with it, as docs/GUARANTEES.md says. Never may two claims of a number have a moment in common.
// Each of the holes that were found here has a test of its own: TestPoolClaimWhoseTIsReadLater (seed 128),
// TestPoolLossBesideFirstRecords (seed 114587) and TestPoolClaimThatIsNotOnTheStandby (seed 3057).
func TestPoolInterleaved(t *testing.T) {
	t.Parallel()
	long.Plain(t)
	seeds := long.Load(uint64(2_000), 300_000)
	for seed := range seeds {
		x := newInterleaving(seed)
		x.run()
		if twice := x.twice(); twice != "" {
			t.Fatalf("seed %d: %s\n%s", seed, twice, strings.Join(x.log, "\n"))
		}
	}
}

// Moments of an interleaving, in ms from now.
const (
	walkHorizon = 100
	walkMargin  = 5
	walkQuiet   = walkHorizon + 4*walkMargin
)

const walkers = 3

// interleaving is one run. What it holds belongs to the process whose turn it is.
type interleaving struct {
	rng     *rand.Rand
	now     int64 // ms
	store   *memory.Registry
	numbers leaf.Range
	inParts bool // T is read later than the claims
	deletes bool
	standby bool     // failovers lose what was not acknowledged
	promote func()   // sets the store back to the last write that was acknowledged
	backups bool     // some are restored
	restore []func() // each sets the store back to a backup
	late    []func() // calls that arrive later
	tenures []*tenure
	log     []string
	asks    chan *walker // each asks for a turn; nil: it has ended
}

// tenure is the time for which a process may issue with a number.
type tenure struct {
	nonce   string
	number  int64
	of, end int64 // [of, end), ms
}

// walker is one process, and its handle on the store.
type walker struct {
	worker.Records

	x      *interleaving
	name   string
	ahead  int64 // of its clock, ms
	turn   chan struct{}
	before *worker.Previous
}

func newInterleaving(seed uint64) *interleaving {
	x := &interleaving{
		rng: rand.New(rand.NewPCG(seed, 7)), now: 1_000_000, store: memory.NewRegistry(), asks: make(chan *walker),
		inParts: seed%2 == 0, deletes: seed%4 > 1, standby: seed%8 < 2, backups: seed%16/2 == 2,
	}
	x.numbers = leaf.Range{Lo: 1, Hi: 2 + x.rng.Int64N(2)}
	return x
}

// run gives the processes turns until all have ended.
func (x *interleaving) run() {
	if err := worker.NewPool(x.store.Open()).Init(context.Background(), poolSpace); err != nil {
		panic(err)
	}
	x.promote = x.store.Backup()
	for i := range walkers {
		w := &walker{Records: x.store.Open(), x: x, name: fmt.Sprint("p", i), turn: make(chan struct{})}
		if w.ahead = x.rng.Int64N(walkMargin + 1); !x.deletes && !x.backups { // T alone needs no clock that is right
			w.ahead *= x.rng.Int64N(40)
		}
		go func() {
			w.live()
			x.asks <- nil
		}()
	}
	var waiting []*walker
	for active, alive := walkers, walkers; ; active = 1 {
		for ; active > 0; active-- {
			if w := <-x.asks; w != nil {
				waiting = append(waiting, w)
			} else {
				alive--
			}
		}
		if alive == 0 {
			return
		}
		x.happen()
		slices.SortFunc(waiting, func(a, b *walker) int { return strings.Compare(a.name, b.name) })
		next := x.rng.IntN(len(waiting))
		w := waiting[next]
		waiting = slices.Delete(waiting, next, next+1)
		w.turn <- struct{}{}
	}
}

// happen lets time pass, and something be done by others than the processes.
func (x *interleaving) happen() {
	number := x.numbers.Lo + x.rng.Int64N(x.numbers.Len())
	switch r := x.rng.IntN(40); {
	case r == 0:
		x.now += x.rng.Int64N(3 * walkHorizon / 2)
		x.note("now %d", x.now)
	case r == 1 && len(x.late) > 0:
		next := x.rng.IntN(len(x.late))
		arrive := x.late[next]
		x.late = slices.Delete(x.late, next, next+1)
		arrive()
	case r == 2 && x.rng.IntN(3) == 0:
		err := worker.NewPool(x.store.Open()).Free(context.Background(), number)
		x.note("an operator releases %d: %v", number, err)
		x.acknowledge(err)
	case r == 3 && x.deletes:
		x.delete(number)
	case r == 3 && x.standby:
		x.note("the standby takes over")
		x.promote()
	case r == 3 && x.backups && len(x.restore) > 0:
		x.note("a backup is restored, and its namespace deleted")
		x.restore[x.rng.IntN(len(x.restore))]()
		x.store.Rename()
	case r == 4 && x.backups:
		x.note("backup")
		x.restore = append(x.restore, x.store.Backup())
	default:
		x.now += x.rng.Int64N(3)
	}
}

func (x *interleaving) delete(number int64) {
	switch x.rng.IntN(4) {
	case 0:
		x.note("all is deleted")
		x.store.Wipe()
	case 1:
		x.note("the records are deleted")
		x.store.Forget()
	case 2:
		x.note("the namespace is deleted")
		x.store.Rename()
	case 3:
		x.note("the claim of %d is deleted", number)
		x.store.DeleteClaim(number)
	}
}

// acknowledge notes that the answer to a write has arrived: the standby has all that was written before.
func (x *interleaving) acknowledge(err error) {
	if x.standby && err == nil {
		x.promote = x.store.Backup()
	}
}

func (x *interleaving) note(format string, args ...any) {
	x.log = append(x.log, fmt.Sprintf(format, args...))
}

// twice names two claims of one number that have a moment in common, "" if there are none.
func (x *interleaving) twice() string {
	for i, a := range x.tenures {
		for _, b := range x.tenures[:i] {
			if a.number == b.number && max(a.of, b.of) < min(a.end, b.end) {
				return fmt.Sprintf("%+v beside %+v", *a, *b)
			}
		}
	}
	return ""
}

// live is the life of the process: three sessions.
func (w *walker) live() {
	for session := range 3 {
		nonce := fmt.Sprintf("%s/%d", w.name, session)
		for range 6 {
			w.wait()
			if own, err := worker.NewPool(w).Claim(context.Background(), w.request(nonce)); err == nil {
				w.hold(own)
				break
			}
		}
	}
}

func (w *walker) clock() int64 { return w.x.now + w.ahead }

func (w *walker) request(nonce string) worker.Request {
	now := w.clock()
	return worker.Request{
		Namespace: poolSpace, Address: w.name + ":80", Nonce: nonce, Numbers: w.x.numbers, Now: now, Bound: now + walkHorizon,
		Margin: walkMargin, Quiet: now + walkQuiet, QuietLater: func() int64 { return w.clock() + walkQuiet }, Previous: w.before,
	}
}

// hold renews a claim a few times, and then releases it, or crashes.
func (w *walker) hold(own worker.Record) {
	pool, ctx := worker.NewPool(w), context.Background()
	held := &tenure{own.Nonce, own.Number, min(own.Bound, max(own.Floor, w.clock())), own.Bound}
	w.x.tenures = append(w.x.tenures, held)
	w.x.note("%s has %+v", w.name, own)
	lost := false
	for range w.x.rng.IntN(4) {
		w.wait()
		next, err := pool.Renew(ctx, own, w.clock()+walkHorizon)
		if lost = errors.Is(err, worker.ErrLost); lost {
			break
		}
		if err == nil {
			own, held.end = next, max(held.end, next.Bound)
			w.x.note("%s renewed %+v", w.name, own)
		}
	}
	now := min(held.end, max(held.of, w.clock()))
	switch {
	case lost:
		held.end = now
		w.remember(own, held)
	case w.x.rng.IntN(2) == 0:
		held.end = now
		w.x.note("%s released %d at %d: %v", w.name, own.Number, now, pool.Release(ctx, own, now))
		own.Bound = now
		w.remember(own, held)
	case w.x.rng.IntN(3) == 0: // it crashes, and its disk survives
		w.remember(own, held)
	}
}

// remember keeps what the next session knows of this one.
func (w *walker) remember(own worker.Record, held *tenure) {
	w.before = &worker.Previous{
		Number: own.Number, Nonce: own.Nonce, Inner: held.end, Bound: own.Bound, Incarnation: own.Incarnation, Quiet: w.clock() + walkQuiet,
	}
}

// wait asks for a turn.
func (w *walker) wait() {
	w.x.asks <- w
	<-w.turn
}

// during makes one call in a turn of the process, or loses it.
func during[T any](w *walker, what string, writes bool, call func() (T, error)) (T, error) {
	var none T
	w.wait()
	switch r := w.x.rng.IntN(100); {
	case r < 4:
		w.x.note("%s %s: the request is lost", w.name, what)
		return none, errWire
	case r < 12:
		_, err := call()
		w.x.note("%s %s: %v, and the reply is lost", w.name, what, err)
		return none, errWire
	case r < 16 && writes:
		w.x.note("%s %s: late", w.name, what)
		w.x.late = append(w.x.late, func() {
			_, err := call()
			w.x.note("%s %s: arrived: %v", w.name, what, err)
		})
		return none, errWire
	}
	answer, err := call()
	w.x.note("%s %s: %+v, %v", w.name, what, answer, err)
	return answer, err
}

// Namespace implements worker.Records.
func (w *walker) Namespace(ctx context.Context, want *worker.StoredNamespace) (*worker.StoredNamespace, error) {
	return during(w, "namespace", want != nil, func() (*worker.StoredNamespace, error) { return w.Records.Namespace(ctx, want) })
}

// Amend implements worker.Records.
func (w *walker) Amend(ctx context.Context, old, next worker.StoredNamespace) error {
	_, err := during(w, "amend", true, func() (struct{}, error) { return struct{}{}, w.Records.Amend(ctx, old, next) })
	w.x.acknowledge(err)
	return err
}

// Put implements worker.Records.
func (w *walker) Put(ctx context.Context, r worker.Record) (string, error) {
	version, err := during(w, fmt.Sprintf("put %+v", r), true, func() (string, error) { return w.Records.Put(ctx, r) })
	w.x.acknowledge(err)
	return version, err
}

// List implements worker.Records.
func (w *walker) List(ctx context.Context) ([]worker.Record, error) {
	list := func() ([]worker.Record, error) {
		records, err := w.Records.List(ctx)
		slices.SortFunc(records, func(a, b worker.Record) int { return cmp.Compare(a.Number, b.Number) })
		return records, err
	}
	claims, err := during(w, "list", false, list)
	if err != nil || !w.x.inParts {
		return claims, err
	}
	bounds, err := during(w, "list T", false, list)
	return memory.InParts(claims, bounds), err
}
