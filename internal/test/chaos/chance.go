package chaos

import (
	"math/rand/v2"
	"sync"
)

// chance is a seeded source that several goroutines use.
type chance struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func newChance(seed uint64) *chance {
	return &chance{rand: rand.New(rand.NewPCG(seed, 0))}
}

// below returns a number from 0 to n-1.
func (c *chance) below(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rand.IntN(n)
}
