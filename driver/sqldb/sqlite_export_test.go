package sqldb

import "database/sql"

// Writer returns the pool of the connections that write.
func (s *Store) Writer() *sql.DB { return s.write }
