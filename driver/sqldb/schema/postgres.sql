-- Leaf for Go: tables for PostgreSQL.

CREATE TABLE IF NOT EXISTS leaf_alloc (
  biz_tag     varchar(128) COLLATE "C" NOT NULL PRIMARY KEY,
  max_id      bigint       NOT NULL DEFAULT 1,
  step        integer      NOT NULL,
  description varchar(256),
  update_time timestamptz  NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE IF NOT EXISTS leaf_tag_option (
  biz_tag     varchar(128) COLLATE "C" NOT NULL PRIMARY KEY,
  min_step    integer      NOT NULL DEFAULT 0,
  max_step    integer      NOT NULL DEFAULT 0,
  fixed_step  boolean      NOT NULL DEFAULT false,
  update_time timestamptz  NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE IF NOT EXISTS leaf_meta (
  name        varchar(64)  NOT NULL PRIMARY KEY,
  value       varchar(512) NOT NULL
);
