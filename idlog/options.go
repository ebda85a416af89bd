package idlog

import (
	"fmt"
	"os"
	"time"
)

// Options say how to check. The zero value is ready to use.
type Options struct {
	// OneSpace makes all keys one: IDs must be distinct over all of them, as those of
	// snowflake generators are. Each log is then one ordered stream, whatever its keys.
	OneSpace bool

	// AnyOrder leaves the order of IDs unchecked, for logs in which the replies to
	// concurrent requests are mixed.
	AnyOrder bool

	// Strict checks real-time order, too: if one call of a key ended before another one
	// began, in whatever logs, the IDs of the second are larger than those of the first.
	// Every record must have the times of its call, see [Call].
	Strict bool

	// ClockError is how far the clock of each machine may be from the true time: with
	// Strict, a call ended before another one began only if more than twice this lies
	// between. 0, for times of one clock, to 1 h.
	ClockError time.Duration

	// List is how many duplicates, and how many violations of each order, are listed
	// with their places. All are counted. 0 means 10, a negative number none.
	List int

	// Memory is the limit for buffers, in bytes; the program around them needs some
	// 20 MB more. 0 means 1 GiB; at least 1 MiB. Less memory makes the check slower,
	// not less exact.
	Memory int64

	// Temp is the folder of the temporary file, which is not needed if the records fit
	// into Memory. It is at most as large as the logs up to 54 thousand records with 1 MiB
	// of Memory, 220 million with 64 MiB, and 7 billion with 1 GiB. Beyond, each further
	// pass of the merge adds the size of the logs (Plan.Disk).
	// Empty means os.TempDir().
	Temp string

	// Plan, if set, is called once before anything is read.
	Plan func(Plan)

	// Progress, if set, is called about once a second from the goroutine of the caller.
	Progress func(Progress)
}

// Plan is what a check will need.
type Plan struct {
	Logs  int
	Bytes int64 // of all logs
	Disk  int64 // largest size of the temporary file; 0 if there will be none
	Free  int64 // bytes free in Temp; -1 if unknown
	Temp  string
}

// Progress is how far a check is.
type Progress struct {
	Phase   string // "read", "merge", with Strict "read times" and "merge times", "locate"
	Done    int64  // bytes, in the phases of merging records
	Total   int64  // at most, in the same unit; 0 if unknown
	Records int64  // read so far
}

const (
	defaultMemory = 1 << 30
	minMemory     = 1 << 20
	defaultList   = 10

	maxClockError = time.Hour
)

func (o Options) withDefaults() (Options, error) {
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if o.Memory < minMemory {
		return o, fmt.Errorf("idlog: memory limit %d: must be at least %d bytes", o.Memory, minMemory)
	}
	if o.List == 0 {
		o.List = defaultList
	}
	o.List = max(o.List, 0)
	if o.ClockError < 0 || o.ClockError > maxClockError {
		return o, fmt.Errorf("idlog: clock error %v: must be 0 to %v", o.ClockError, maxClockError)
	}
	if o.Temp == "" {
		o.Temp = os.TempDir()
	}
	if o.Plan == nil {
		o.Plan = func(Plan) {}
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	return o, nil
}

// plan computes what the check of these logs needs.
func (o *Options) plan(logs []Source) Plan {
	p := Plan{Logs: len(logs), Temp: o.Temp, Free: -1}
	p.Bytes, _ = knownSize(logs)
	// A record has at least two bytes in either format. In the temporary file it has
	// no more than in its log: there the distances between IDs are smaller.
	if records := p.Bytes / 2; records > int64(o.bufferLen()) {
		limit := int64(fanIn(o.mergeBytes()))
		times := int64(1) // that a record is written, see reduce
		for runs := records/int64(o.bufferLen()) + 1; runs > limit; runs = (runs + limit - 1) / limit {
			times++
		}
		if times > 1 {
			times++ // the last merge of a pass may take runs that this pass has made
		}
		p.Disk = times * p.Bytes
		if free, err := freeSpace(o.Temp); err == nil {
			p.Free = free
		}
	}
	return p
}

// bufferLen is the number of entries in each of the two sort buffers.
func (o *Options) bufferLen() int { return int(o.Memory / 16 * 5 / entrySize) }

// keyBytes is the memory for keys.
func (o *Options) keyBytes() int64 { return o.Memory / 8 }

// mergeBytes is the memory of a merge, which needs none of the sort buffers.
func (o *Options) mergeBytes() int64 { return o.Memory / 4 }
