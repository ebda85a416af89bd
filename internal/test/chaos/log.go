package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/leaf-idgen/leaf/idlog"
)

// idLog writes what one client was given, one log for each process of its node: IDs
// of one process increase. It is used by its client alone.
type idLog struct {
	folder string // of the node
	node   string
	stream string
	fields *fields // nil if the IDs are no snowflake IDs
	strict bool    // the tags are in strict order: the log has the times of the calls

	writer *idlog.Writer // nil when there is none
	life   int           // of the process that writer is about
	files  []string
	ids    int
	spans  map[spanKey]*span

	unreasonable []string // IDs whose time makes no sense, the first of them
	odd          int      // how many in all
}

// newLog makes a log in a folder, which it creates.
func newLog(folder, node, stream string, f *fields) (*idLog, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	return &idLog{folder: folder, node: node, stream: stream, fields: f, spans: map[spanKey]*span{}}, nil
}

// write logs a reply. Life 0 means that its process is unknown: such a reply has a
// file of its own, since nothing is known of its order. Replies of a tag in strict order may be
// those of any node, so only their times say what their order must be.
func (l *idLog) write(space string, life int, ids []int64, call idlog.Call) error {
	if l.strict {
		life = 1
	} else {
		call = idlog.Call{}
	}
	if l.writer == nil || l.life != life || life == 0 {
		if err := l.close(); err != nil {
			return err
		}
		name := fmt.Sprintf("%s.%d.ids", l.stream, life)
		if life == 0 {
			name = fmt.Sprintf("%s.unknown-%d.ids", l.stream, len(l.files))
		}
		path := filepath.Join(l.folder, name)
		w, err := idlog.Create(path, idlog.Text)
		if err != nil {
			return err
		}
		l.writer, l.life, l.files = w, life, append(l.files, path)
	}
	arrival := time.Now()
	for _, id := range ids {
		if err := l.writer.Append(idlog.Record{Key: space, Lo: id, Hi: id, Call: call}); err != nil {
			return err
		}
		if l.fields != nil {
			l.look(life, id, arrival)
		}
	}
	l.ids += len(ids)
	return nil
}

// close ends the file. The next write begins another one.
func (l *idLog) close() error {
	if l.writer == nil {
		return nil
	}
	w := l.writer
	l.writer = nil
	return w.Close()
}

// look compares the fields of a snowflake ID with the time of its arrival.
func (l *idLog) look(life int, id int64, arrival time.Time) {
	at, worker, err := l.fields.of(id)
	if away := at.Sub(arrival); err != nil || away > l.fields.ahead || away < -l.fields.behind {
		l.odd++
		if len(l.unreasonable) < 5 {
			l.unreasonable = append(l.unreasonable, fmt.Sprintf("ID %d of worker %d has the time %s, %v from that of its arrival",
				id, worker, at.UTC().Format(time.RFC3339Nano), away.Round(time.Millisecond)))
		}
	}
	if life == 0 {
		return
	}
	k := spanKey{worker, life}
	s := l.spans[k]
	if s == nil {
		l.spans[k] = &span{at, at}
		return
	}
	if at.Before(s.first) {
		s.first = at
	}
	if at.After(s.last) {
		s.last = at
	}
}
