package sim

import (
	"math/rand/v2"
	"time"
)

// panics plans times in which drivers panic: the calls of some nodes to a store, the board
// in it, a cluster fence or a registry. One run in three has such times. All that is drawn
// about them comes from dice, so the other runs are what they are without panics.
func (w *World) panics(dice *rand.Rand) {
	if dice.IntN(3) > 0 {
		return
	}
	for range 1 + dice.IntN(4) {
		w.sched.After(time.Duration(dice.Int64N(int64(Storm))), func() {
			chance := []float64{0.05, 0.3, 1}[dice.IntN(3)]
			for _, n := range w.nodes {
				if dice.IntN(2) == 0 {
					continue
				}
				for _, m := range w.modes {
					for _, l := range m.links(n) {
						l.Panic, l.Dice = chance, dice
						d := time.Duration(dice.Int64N(int64(2 * time.Minute)))
						w.sched.After(d, func() { l.Panic = 0 })
						if s, ok := m.(*snowflakeMode); ok {
							s.troubled = max(s.troubled, w.sched.Elapsed()+d)
						}
					}
				}
			}
		})
	}
}
