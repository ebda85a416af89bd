package sqldb

import (
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// kind is what an error of a driver means to the store.
type kind int

const (
	kindOther       kind = iota // unreachable, refused, unknown: the outcome of a write is unknown
	kindNoTable                 // a table or a column is not there
	kindHidden                  // a table is not there or may not be read: the server does not tell which
	kindLogin                   // the user may not come in
	kindDenied                  // the user may not do it
	kindNoDatabase              // the database is not there
	kindPooling                 // a pooler in between has no transactions
	kindDuplicate               // a unique key exists
	kindTooBig                  // a number does not fit
	kindBadText                 // a text does not fit its column, or has a character that the column cannot hold
	kindReadOnly                // the server accepts no writes
	kindCutOff                  // the server is cut off from its group and carries out nothing
	kindBusy                    // another process writes; nothing was done
	kindSerialize               // rolled back because of a concurrent transaction
	kindUnsupported             // the server carries out no such statement; nothing was done
)

// missing reports whether a table or a column is not there for us.
func (k kind) missing() bool { return k == kindNoTable || k == kindHidden }

// explain returns err with the sentinel that its kind stands for.
func (s *Store) explain(err error) error {
	switch s.dialect.kindOf(err) {
	case kindNoTable, kindHidden:
		if !errors.Is(err, segment.ErrSchema) {
			missing := "the database has no usable table leaf_alloc or leaf_meta"
			if s.identity.get() != "" {
				missing += ": " + byOneNode
			}
			return s.schemaError(missing, err)
		}
	case kindTooBig:
		return fmt.Errorf("%w: the column max_id cannot hold the number: %w", leaf.ErrOverflow, err)
	}
	return err
}

// metaGone says what to do where leaf_meta is lost. A registry outside the store has an ID of its own, which no data directory gives it.
func (s *Store) metaGone() string {
	text := "the table leaf_meta is gone, or this user may not read it any more, and says whose the database is: restore it from a backup"
	if s.identity.alone {
		return text
	}
	return text + ", or " + byOneNode
}

// byOneNode is how a table is made again: a command that knows no ID makes another one, which the nodes refuse.
const byOneNode = "stop all nodes, and make it with --data-dir of one of them, which knows the ID of the cluster"

// lost says what to do where this node knows that there were tables, "" where it knows of none.
func (s *Store) lost() string {
	own := s.identity.get()
	if own == "" || s.identity.alone {
		return ""
	}
	return fmt.Sprintf(", and this node has taken ranges from the database of cluster %s: find out to which database the URL of the store leads, and correct the URL. "+
		"Only if those tables are lost for good, stop every node that used them, make new ones, by the command at the end and with --data-dir of one of these nodes, which gives them the ID of that cluster, and for one of several databases with --accept-rule --lost NAME, "+
		"and then, for each tag: leaf tag create TAG --start NUMBER, with %s", own, segment.AboveAll)
}

// applyCommand says how to make the tables. With one of several databases alone, the command would make it the only database of
// another cluster.
func (s *Store) applyCommand() string {
	if s.cfg.Several {
		return "run, with the settings of this node: leaf schema apply"
	}
	return fmt.Sprintf("run: leaf schema apply --store %q", s.Redacted())
}

// schemaError returns segment.ErrSchema with what is missing, the command that
// creates it, and the database's own words.
func (s *Store) schemaError(missing string, cause error) error {
	err := fmt.Errorf("%w: %s; %s", segment.ErrSchema, missing, s.applyCommand())
	if cause != nil {
		err = fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
