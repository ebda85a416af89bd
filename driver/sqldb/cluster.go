package sqldb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"time"
)

// metaCluster is the row of leaf_meta that holds the cluster's ID.
const metaCluster = "cluster_id"

// ClusterID returns the ID of the cluster that uses this database as its first: 32 hex
// digits by chance, made by the first call of any node and never changed. It is "" for a
// database without leaf_meta, which only the Java server has set up. A copy of a database
// has the ID of the original. Every error may be retried.
func (s *Store) ClusterID(ctx context.Context) (id string, err error) {
	defer s.done(ctx, time.Now(), &err, "read the cluster's ID")
	l, err := s.detect(ctx)
	if err != nil || !l.meta {
		return "", err
	}
	id, err = s.storedCluster(ctx)
	if err != nil || id != "" {
		return id, err
	}
	var random [16]byte
	rand.Read(random[:]) // it never fails
	err = s.transact(ctx, func(conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, s.dialect.bind("INSERT INTO leaf_meta (name, value) VALUES (?, ?)"), metaCluster, hex.EncodeToString(random[:]))
		return err
	})
	if err != nil && s.dialect.kindOf(err) != kindDuplicate { // else another node was faster
		return "", fmt.Errorf("make the cluster's ID in leaf_meta: %w", err)
	}
	return s.storedCluster(ctx)
}

func (s *Store) storedCluster(ctx context.Context) (id string, err error) {
	_, err = queryRow(ctx, s.write, s.dialect.bind("SELECT value FROM leaf_meta WHERE name = ?"), []any{metaCluster}, []any{&id})
	if err != nil {
		return "", fmt.Errorf("read the cluster's ID in leaf_meta: %w", err)
	}
	return id, nil
}
