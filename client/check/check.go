package check

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/leaf-idgen/leaf"
)

// The two ways in which a service breaks its promise.
var (
	ErrRepeated   = errors.New("check: an ID came twice")
	ErrDecreasing = errors.New("check: IDs of one source went back")
)

// defaultMaxRanges is 16 MB for each tag at most.
const defaultMaxRanges = 1_000_000

// Config bounds a Checker.
type Config struct {
	MaxRanges int // entries per tag, default 1,000,000 (16 bytes each)
	MaxTags   int // beyond them IDs are counted as forgotten, default 100,000

	// MaxSources bounds how many sources are watched for steps back, per tag of each.
	// Beyond it all of them begin anew. Default 100,000.
	MaxSources int
}

// Checker remembers IDs. All methods are safe for concurrent use.
type Checker struct {
	cfg Config

	mu        sync.Mutex
	seen      map[string]*ranges
	last      map[[2]string]int64 // by source and tag
	forgotten int64
}

// New returns a Checker that has seen nothing.
func New(cfg Config) *Checker {
	cfg.MaxRanges = cmp.Or(cfg.MaxRanges, defaultMaxRanges)
	cfg.MaxTags = cmp.Or(cfg.MaxTags, 100_000)
	cfg.MaxSources = cmp.Or(cfg.MaxSources, 100_000)
	return &Checker{cfg: cfg, seen: map[string]*ranges{}, last: map[[2]string]int64{}}
}

// Observe notes one reply: IDs of a tag, in the order in which they came. Replies of one
// source must be shown in the order in which it sent them. tag may carry a mode, since
// IDs of two modes may be equal. The error is ErrRepeated or ErrDecreasing, the first
// that applies, with the first ID; all of the reply counts as seen in any case.
func (c *Checker) Observe(source, tag string, reply []leaf.Range) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	set := c.seen[tag]
	if set == nil {
		if len(c.seen) >= c.cfg.MaxTags {
			for _, r := range reply {
				c.forgotten += r.Len()
			}
			return nil
		}
		set = &ranges{}
		c.seen[tag] = set
	}
	var repeated, decreasing error
	key := [2]string{source, tag}
	last, known := c.last[key]
	for _, r := range reply {
		if r.Len() == 0 {
			continue
		}
		if known && r.Lo <= last && decreasing == nil {
			decreasing = fmt.Errorf("%w: tag %q: %d after %d from %s", ErrDecreasing, tag, r.Lo, last, source)
		}
		last, known = r.Hi-1, true
		if id, twice := set.add(r); twice && repeated == nil {
			repeated = fmt.Errorf("%w: tag %q: %d, the second time from %s", ErrRepeated, tag, id, source)
		}
	}
	if known {
		if _, old := c.last[key]; !old && len(c.last) >= c.cfg.MaxSources {
			clear(c.last) // streams come and go, and not every client says which has ended
		}
		c.last[key] = last
	}
	c.forgotten += set.forget(c.cfg.MaxRanges)
	if repeated != nil {
		return repeated
	}
	return decreasing
}

// End forgets a source that sends nothing any more. What came from it stays seen.
func (c *Checker) End(source string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.last {
		if key[0] == source {
			delete(c.last, key)
		}
	}
}

// Forgotten returns how many IDs cannot be noticed again: 0 says that the check was
// complete.
func (c *Checker) Forgotten() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forgotten
}
