package sim

// WithRun returns c with another function in the place of Run, for tests of the
// runner itself.
func (c Campaign) WithRun(run func(seed uint64, opts Options) Result) Campaign {
	c.run = run
	return c
}

// ReadCorpus is for tests of its own.
var ReadCorpus = readCorpus
