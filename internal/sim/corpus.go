package sim

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed testdata/seeds.txt
var corpus string

// Known is a seed that once failed.
type Known struct {
	Only  string // as in Options
	Seed  uint64
	Story string // what happened, and what fixed it
}

// Corpus returns the seeds of testdata/seeds.txt.
func Corpus() ([]Known, error) { return readCorpus(corpus) }

func readCorpus(text string) (known []Known, err error) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var k Known
		fields := strings.Fields(line)
		if len(fields) < 3 {
			return nil, fmt.Errorf("seeds.txt, line %d: want mode, seed and what happened", number)
		}
		switch fields[0] {
		case "any":
		case "segment", "snowflake":
			k.Only = fields[0]
		default:
			return nil, fmt.Errorf("seeds.txt, line %d: mode %q must be segment, snowflake or any", number, fields[0])
		}
		if _, err := fmt.Sscan(fields[1], &k.Seed); err != nil {
			return nil, fmt.Errorf("seeds.txt, line %d: seed %q: %w", number, fields[1], err)
		}
		k.Story = strings.Join(fields[2:], " ")
		known = append(known, k)
	}
	return known, nil
}
