package main

import "testing"

// TestMedians: of three turns the middle one stays, and nothing that went wrong is lost.
func TestMedians(t *testing.T) {
	t.Parallel()
	turn := func(load string, goodput float64, peak int64) phase {
		return phase{load: load, goodput: goodput, tally: newTally(), memory: memory{peak: peak}}
	}
	turns := []phase{
		turn("64 callers", 900, 1), turn("320 callers", 100, 9),
		turn("64 callers", 1000, 3), turn("320 callers", 850, 7),
		turn("64 callers", 1100, 2), turn("320 callers", 900, 8),
	}
	for i := range turns {
		turns[i].twice, turns[i].noHint, turns[i].count[broken] = 1, 2, 3
	}
	turns[1].trouble = "reset by peer"
	got := medians(turns)
	if len(got) != 2 || got[0].load != "64 callers" || got[0].goodput != 1000 || got[0].peak != 3 || got[1].goodput != 850 || got[1].peak != 9 {
		t.Fatalf("%+v", got)
	}
	for _, p := range got {
		if p.twice != 3 || p.noHint != 6 || p.count[broken] != 9 {
			t.Errorf("%s: %+v", p.load, p.tally)
		}
	}
	if got[0].trouble != "" || got[1].trouble != "reset by peer" {
		t.Errorf("troubles %q and %q", got[0].trouble, got[1].trouble)
	}
}
