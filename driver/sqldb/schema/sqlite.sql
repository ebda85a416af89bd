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
  format      TEXT    NOT NULL DEFAULT '',
  id_order    TEXT    NOT NULL DEFAULT '',
  period      TEXT    NOT NULL DEFAULT '',
  period_zone TEXT    NOT NULL DEFAULT '',
  rate_limit  INTEGER NOT NULL DEFAULT 0,
  quota       INTEGER NOT NULL DEFAULT 0,
  blocked     INTEGER NOT NULL DEFAULT 0,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;

-- Limits of clients, as leaf_tag_option has those of tags.
CREATE TABLE IF NOT EXISTS leaf_client_option (
  client_name TEXT    NOT NULL PRIMARY KEY,
  rate_limit  INTEGER NOT NULL DEFAULT 0,
  quota       INTEGER NOT NULL DEFAULT 0,
  blocked     INTEGER NOT NULL DEFAULT 0,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;

CREATE TABLE IF NOT EXISTS leaf_meta (
  name        TEXT    NOT NULL PRIMARY KEY,
  value       TEXT    NOT NULL
) STRICT;

-- The registry of worker IDs: one namespace; per number a claim and a time bound, in
-- two tables because the bound must outlive the claim. leaf_worker_bound is never
-- emptied: if an administrator must empty it, no node may run.
CREATE TABLE IF NOT EXISTS leaf_worker_namespace (
  id          INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  name        TEXT    NOT NULL,
  fingerprint TEXT    NOT NULL,
  issue_from  INTEGER NOT NULL,
  incarnation TEXT    NOT NULL DEFAULT '',
  given       INTEGER NOT NULL DEFAULT 0,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;

CREATE TABLE IF NOT EXISTS leaf_worker_bound (
  id          INTEGER NOT NULL PRIMARY KEY,
  bound       INTEGER NOT NULL,
  version     TEXT    NOT NULL,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;

CREATE TABLE IF NOT EXISTS leaf_worker (
  id          INTEGER NOT NULL PRIMARY KEY,
  address     TEXT    NOT NULL,
  nonce       TEXT    NOT NULL,
  floor       INTEGER NOT NULL,
  bound       INTEGER NOT NULL,
  released    INTEGER NOT NULL,
  extends     INTEGER NOT NULL, -- not used, always false
  version     TEXT    NOT NULL,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;

CREATE TABLE IF NOT EXISTS leaf_worker_peer (
  nonce       TEXT    NOT NULL PRIMARY KEY,
  address     TEXT    NOT NULL,
  clock       TEXT    NOT NULL,
  number      INTEGER NOT NULL,
  expires     INTEGER NOT NULL,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;

-- The directory of nodes: where clients find the servers. A row ends by itself.
CREATE TABLE IF NOT EXISTS leaf_node (
  id          TEXT    NOT NULL PRIMARY KEY,
  entry       TEXT    NOT NULL,
  expires     INTEGER NOT NULL,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;

-- What nodes tell one another when the database loses commits, and what a repair asks.
CREATE TABLE IF NOT EXISTS leaf_repair (
  biz_tag     TEXT    NOT NULL PRIMARY KEY,
  asked       INTEGER NOT NULL,
  regress     INTEGER NOT NULL,
  repaired    INTEGER NOT NULL,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;

CREATE TABLE IF NOT EXISTS leaf_repair_node (
  biz_tag     TEXT    NOT NULL,
  node        TEXT    NOT NULL,
  asked       INTEGER NOT NULL,
  high        INTEGER NOT NULL,
  latched     INTEGER NOT NULL,
  seen        INTEGER NOT NULL,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (biz_tag, node)
) STRICT;

-- The audit log: administrative changes, the newest last. Old rows go with each new one.
CREATE TABLE IF NOT EXISTS leaf_audit (
  id          TEXT    NOT NULL PRIMARY KEY,
  node        TEXT    NOT NULL,
  who         TEXT    NOT NULL,
  address     TEXT    NOT NULL,
  operation   TEXT    NOT NULL,
  object      TEXT    NOT NULL,
  old_value   TEXT    NOT NULL,
  new_value   TEXT    NOT NULL,
  result      TEXT    NOT NULL,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;

-- Named tokens: the SHA-256 of each secret, and its roles. A node reads them with auth.named.
CREATE TABLE IF NOT EXISTS leaf_token (
  name        TEXT    NOT NULL PRIMARY KEY,
  digest      TEXT    NOT NULL,
  roles       TEXT    NOT NULL,
  created     INTEGER NOT NULL,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;

-- Which node serves which tags in strict order: tables of the form of those of worker IDs. A bound is
-- a lease in ms here. If they are emptied, those tags stop until the leases are over, and nothing repeats.
CREATE TABLE IF NOT EXISTS leaf_slot_namespace (
  id          INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  name        TEXT    NOT NULL,
  fingerprint TEXT    NOT NULL,
  issue_from  INTEGER NOT NULL,
  incarnation TEXT    NOT NULL DEFAULT '',
  given       INTEGER NOT NULL DEFAULT 0,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;

CREATE TABLE IF NOT EXISTS leaf_slot_bound (
  id          INTEGER NOT NULL PRIMARY KEY,
  bound       INTEGER NOT NULL,
  version     TEXT    NOT NULL,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;

CREATE TABLE IF NOT EXISTS leaf_slot (
  id          INTEGER NOT NULL PRIMARY KEY,
  address     TEXT    NOT NULL,
  nonce       TEXT    NOT NULL,
  floor       INTEGER NOT NULL,
  bound       INTEGER NOT NULL,
  released    INTEGER NOT NULL,
  extends     INTEGER NOT NULL, -- not used, always false
  version     TEXT    NOT NULL,
  update_time TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT;
