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
  format      varchar(64)  NOT NULL DEFAULT '',
  id_order    varchar(16)  NOT NULL DEFAULT '',
  period      varchar(16)  NOT NULL DEFAULT '',
  period_zone varchar(64)  NOT NULL DEFAULT '',
  rate_limit  bigint       NOT NULL DEFAULT 0,
  quota       bigint       NOT NULL DEFAULT 0,
  blocked     boolean      NOT NULL DEFAULT false,
  update_time timestamptz  NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- Limits of clients, as leaf_tag_option has those of tags.
CREATE TABLE IF NOT EXISTS leaf_client_option (
  client_name varchar(128) COLLATE "C" NOT NULL PRIMARY KEY,
  rate_limit  bigint       NOT NULL DEFAULT 0,
  quota       bigint       NOT NULL DEFAULT 0,
  blocked     boolean      NOT NULL DEFAULT false,
  update_time timestamptz  NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE IF NOT EXISTS leaf_meta (
  name        varchar(64)  NOT NULL PRIMARY KEY,
  value       varchar(512) NOT NULL
);

-- The registry of worker IDs: one namespace; per number a claim and a time bound, in
-- two tables because the bound must outlive the claim. leaf_worker_bound is never
-- emptied: if an administrator must empty it, no node may run.
CREATE TABLE IF NOT EXISTS leaf_worker_namespace (
  id          integer      NOT NULL PRIMARY KEY CHECK (id = 1),
  name        varchar(64)  NOT NULL,
  fingerprint varchar(255) NOT NULL,
  issue_from  bigint       NOT NULL,
  incarnation varchar(64)  NOT NULL DEFAULT '',
  given       bigint       NOT NULL DEFAULT 0,
  update_time timestamptz  NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE IF NOT EXISTS leaf_worker_bound (
  id          bigint       NOT NULL PRIMARY KEY,
  bound       bigint       NOT NULL,
  version     varchar(64)  NOT NULL,
  update_time timestamptz  NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE IF NOT EXISTS leaf_worker (
  id          bigint       NOT NULL PRIMARY KEY,
  address     varchar(255) NOT NULL,
  nonce       varchar(64)  NOT NULL,
  floor       bigint       NOT NULL,
  bound       bigint       NOT NULL,
  released    boolean      NOT NULL,
  extends     boolean      NOT NULL, -- not used, always false
  version     varchar(64)  NOT NULL,
  update_time timestamptz  NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE IF NOT EXISTS leaf_worker_peer (
  nonce       varchar(64)  COLLATE "C" NOT NULL PRIMARY KEY,
  address     varchar(255) NOT NULL,
  clock       varchar(255) NOT NULL,
  number      bigint       NOT NULL,
  expires     bigint       NOT NULL,
  update_time timestamptz  NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- The directory of nodes: where clients find the servers. A row ends by itself.
CREATE TABLE IF NOT EXISTS leaf_node (
  id          varchar(64)   COLLATE "C" NOT NULL PRIMARY KEY,
  entry       varchar(4096) NOT NULL,
  expires     bigint        NOT NULL,
  update_time timestamptz   NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- What nodes tell one another when the database loses commits, and what a repair asks.
CREATE TABLE IF NOT EXISTS leaf_repair (
  biz_tag     varchar(128) COLLATE "C" NOT NULL PRIMARY KEY,
  asked       bigint       NOT NULL,
  regress     bigint       NOT NULL,
  repaired    bigint       NOT NULL,
  update_time timestamptz  NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE IF NOT EXISTS leaf_repair_node (
  biz_tag     varchar(128) COLLATE "C" NOT NULL,
  node        varchar(64)  COLLATE "C" NOT NULL,
  asked       bigint       NOT NULL,
  high        bigint       NOT NULL,
  latched     boolean      NOT NULL,
  seen        bigint       NOT NULL,
  update_time timestamptz  NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (biz_tag, node)
);

-- The audit log: administrative changes, the newest last. Old rows go with each new one.
CREATE TABLE IF NOT EXISTS leaf_audit (
  id          varchar(64)   COLLATE "C" NOT NULL PRIMARY KEY,
  node        varchar(256)  NOT NULL,
  who         varchar(256)  NOT NULL,
  address     varchar(256)  NOT NULL,
  operation   varchar(64)   NOT NULL,
  object      varchar(256)  NOT NULL,
  old_value   varchar(2048) NOT NULL,
  new_value   varchar(2048) NOT NULL,
  result      varchar(2048) NOT NULL,
  update_time timestamptz   NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- Named tokens: the SHA-256 of each secret, and its roles. A node reads them with auth.named.
CREATE TABLE IF NOT EXISTS leaf_token (
  name        varchar(64)   COLLATE "C" NOT NULL PRIMARY KEY,
  digest      varchar(64)   NOT NULL,
  roles       varchar(4096) NOT NULL,
  created     bigint        NOT NULL,
  update_time timestamptz   NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- Which node serves which tags in strict order: tables of the form of those of worker IDs. A bound is
-- a lease in ms here. If they are emptied, those tags stop until the leases are over, and nothing repeats.
CREATE TABLE IF NOT EXISTS leaf_slot_namespace (
  id          integer      NOT NULL PRIMARY KEY CHECK (id = 1),
  name        varchar(64)  NOT NULL,
  fingerprint varchar(255) NOT NULL,
  issue_from  bigint       NOT NULL,
  incarnation varchar(64)  NOT NULL DEFAULT '',
  given       bigint       NOT NULL DEFAULT 0,
  update_time timestamptz  NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE IF NOT EXISTS leaf_slot_bound (
  id          bigint       NOT NULL PRIMARY KEY,
  bound       bigint       NOT NULL,
  version     varchar(64)  NOT NULL,
  update_time timestamptz  NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE IF NOT EXISTS leaf_slot (
  id          bigint       NOT NULL PRIMARY KEY,
  address     varchar(255) NOT NULL,
  nonce       varchar(64)  NOT NULL,
  floor       bigint       NOT NULL,
  bound       bigint       NOT NULL,
  released    boolean      NOT NULL,
  extends     boolean      NOT NULL, -- not used, always false
  version     varchar(64)  NOT NULL,
  update_time timestamptz  NOT NULL DEFAULT CURRENT_TIMESTAMP
);
