package sequence_test

import (
	"math"
	"testing"

	"github.com/leaf-idgen/leaf/internal/sequence"
)

// A section that may remember 8 entities serves many more, and each only ever gets larger numbers.
func TestEviction(t *testing.T) {
	_, a := one(t, sequence.Config{Step: 100, MaxResident: 8 * sequence.Sections})
	entities := inSection(3, 60)
	last := map[sequence.Entity]int64{}
	for round := range 20 {
		for i, e := range entities {
			for range 1 + i%4 {
				n := next(t, a, e)
				if n <= last[e] {
					t.Fatalf("round %d: entity %v got %d after %d", round, e, n, last[e])
				}
				last[e] = n
			}
			if p, err := a.Peek(t.Context(), e); err != nil || p <= last[e] {
				t.Fatalf("round %d: entity %v: peek %d, %v after %d", round, e, p, err, last[e])
			}
		}
	}
	st := a.Status()
	if st.Resident < 1 || st.Resident > 8 {
		t.Errorf("%d entities in memory, want at most 8", st.Resident)
	}
	if st.Evicted == 0 {
		t.Error("evicted positions are not counted")
	}
}

// An eviction costs the smallest jump that makes the room: a quiet entity in front does not push the others ahead.
func TestEvictionJumpsLittle(t *testing.T) {
	_, a := one(t, sequence.Config{Step: 10_000, MaxResident: 40 * sequence.Sections})
	entities := inSection(3, 300)
	front := entities[0]
	if _, err := a.NextN(t.Context(), front, 5000); err != nil {
		t.Fatal(err)
	}
	for _, e := range entities[1:] {
		if n := next(t, a, e); n > 40 {
			t.Fatalf("entity %v got %d as its first number", e, n)
		}
	}
	if n := next(t, a, front); n != 5001 {
		t.Errorf("the entity in front got %d, want 5001", n)
	}
}

// With room for one entity a section still works: the base passes each one.
func TestRoomForOne(t *testing.T) {
	_, a := one(t, sequence.Config{Step: 3, MaxResident: sequence.Sections})
	entities := inSection(3, 3)
	last := map[sequence.Entity]int64{}
	for i := range 100 {
		e := entities[i*i%3]
		if n := next(t, a, e); n <= last[e] {
			t.Fatalf("entity %v got %d after %d", e, n, last[e])
		} else {
			last[e] = n
		}
	}
}

// A position that is further ahead of the base than 32 bits can say raises the base.
func TestFarAhead(t *testing.T) {
	_, a := one(t, sequence.Config{Step: 100_000})
	entities := inSection(3, 2)
	front, behind := entities[0], entities[1]
	last := next(t, a, behind)
	for at := int64(0); at < math.MaxUint32+300_000; {
		r, err := a.NextN(t.Context(), front, 100_000)
		if err != nil || r.Lo <= at {
			t.Fatalf("%v after %d: %v", r, at, err)
		}
		at = r.Hi - 1
	}
	if n := next(t, a, behind); n <= last || n > math.MaxUint32 {
		t.Errorf("the entity behind got %d after %d", n, last)
	}
}
