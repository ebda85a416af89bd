-- Leaf for Go: tables for SQLite. STRICT keeps anything but a 64-bit integer out of max_id.

CREATE TABLE IF NOT EXISTS leaf_alloc (
  biz_tag     TEXT    NOT NULL PRIMARY KEY,
  max_id      INTEGER NOT NULL DEFAULT 1,
  step        INTEGER NOT NULL,
  description TEXT,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;

CREATE TABLE IF NOT EXISTS leaf_tag_option (
  biz_tag     TEXT    NOT NULL PRIMARY KEY,
  min_step    INTEGER NOT NULL DEFAULT 0,
  max_step    INTEGER NOT NULL DEFAULT 0,
  fixed_step  INTEGER NOT NULL DEFAULT 0,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;

CREATE TABLE IF NOT EXISTS leaf_meta (
  name        TEXT    NOT NULL PRIMARY KEY,
  value       TEXT    NOT NULL
) STRICT;
