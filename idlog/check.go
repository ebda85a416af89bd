package idlog

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// Check checks the logs in files: see [CheckSources]. A file that is named twice, also
// through a link, is an error: all of its IDs would be duplicates.
func Check(ctx context.Context, o Options, files ...string) (*Report, error) {
	logs := make([]Source, 0, len(files))
	infos := make([]os.FileInfo, 0, len(files))
	for _, f := range files {
		src, err := File(f)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(f)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(infos, func(other os.FileInfo) bool { return os.SameFile(info, other) }); i >= 0 {
			return nil, fmt.Errorf("idlog: %s and %s are one file", files[i], f)
		}
		logs, infos = append(logs, src), append(infos, info)
	}
	return CheckSources(ctx, o, logs...)
}

// CheckSources reads the logs and reports every ID that repeats, in one log or over
// several, every ID that is not larger than the one before it in its log, and with
// Options.Strict every call that got too small an ID for its time. A torn tail is in the report and is no error. An error means that there is no verdict: a log
// that cannot be read ([ErrBroken]), a disk that is too small ([ErrNoSpace]), too many
// keys ([ErrManyKeys]), or the end of ctx.
func CheckSources(ctx context.Context, o Options, logs ...Source) (_ *Report, err error) {
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	plan := o.plan(logs)
	o.Plan(plan)
	if plan.Free >= 0 && plan.Disk > plan.Free {
		return nil, fmt.Errorf("%w: up to %d bytes in %s, where %d are free", ErrNoSpace, plan.Disk, plan.Temp, plan.Free)
	}
	c := &collector{Options: o, numbers: map[string]uint32{}}
	c.ticker.last = time.Now()
	found, err := c.repeats(ctx, logs)
	if err != nil {
		return nil, err
	}
	var turned []turned
	if o.Strict {
		if turned, err = c.turned(ctx, logs); err != nil {
			return nil, err
		}
	}
	if err := c.locate(ctx, logs, found, turned); err != nil {
		return nil, err
	}
	c.report.total()
	return &c.report, nil
}

// repeats reads the logs, checks the order within each, and returns the first runs of IDs
// that repeat.
func (c *collector) repeats(ctx context.Context, logs []Source) ([]entry, error) {
	sw := &sweep{list: c.List}
	err := c.sort(ctx, logs, &sorter{}, "", func() error {
		for _, src := range logs {
			if err := c.log(ctx, src); err != nil {
				return err
			}
			c.ticker.next(src.Size)
		}
		sw.keys = c.report.Keys
		return nil
	}, sw.add)
	sw.closeRun()
	return sw.found, err
}

// sort calls read, which reads the logs, and then yield for all entries that read has added,
// in order. The names of both phases end with suffix.
func (c *collector) sort(ctx context.Context, logs []Source, s *sorter, suffix string, read func() error, yield func(entry) error) (err error) {
	size, known := knownSize(logs)
	s.temp, s.cap = c.Temp, c.bufferLen()
	defer func() {
		if closeErr := s.close(); err == nil && closeErr != nil {
			err = closeErr
		}
	}()
	c.sorter, c.buf = s, make([]entry, 0, c.firstBuffer(size, known))
	c.ticker.begin("read"+suffix, size, c.Progress)
	if err := read(); err != nil {
		return err
	}

	c.ticker.begin("merge"+suffix, c.ticker.records, c.Progress)
	n := 0
	buf := c.buf
	c.buf = nil
	err = s.finish(ctx, buf, c.mergeBytes(), func(e entry) error {
		if n++; n%checkEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			c.ticker.tick(int64(n), 0)
		}
		return yield(e)
	})
	c.report.Spilled = max(c.report.Spilled, s.spilled())
	return err
}

// ticker calls Progress about once a second.
type ticker struct {
	report  func(Progress)
	phase   string
	total   int64
	before  int64 // what earlier logs had
	records int64
	last    time.Time
}

func (t *ticker) begin(phase string, total int64, report func(Progress)) {
	t.report, t.phase, t.total, t.before = report, phase, total, 0
}

func (t *ticker) next(size int64) { t.before += size }

func (t *ticker) tick(done, records int64) {
	t.records += records
	if now := time.Now(); now.Sub(t.last) >= time.Second {
		t.last = now
		t.report(Progress{t.phase, t.before + done, t.total, t.records})
	}
}
