-- Leaf for Go: tables for MySQL 5.7, 8 and MariaDB.
-- leaf_alloc has the shape of the Java server's table; an existing one is used as it is.

CREATE TABLE IF NOT EXISTS leaf_alloc (
  biz_tag     varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  max_id      bigint       NOT NULL DEFAULT 1,
  step        int          NOT NULL,
  description varchar(256) CHARACTER SET utf8mb4 DEFAULT NULL,
  update_time timestamp    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (biz_tag)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS leaf_tag_option (
  biz_tag     varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  min_step    int          NOT NULL DEFAULT 0,
  max_step    int          NOT NULL DEFAULT 0,
  fixed_step  boolean      NOT NULL DEFAULT false,
  format      varchar(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  id_order    varchar(16)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  period      varchar(16)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  period_zone varchar(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  rate_limit  bigint       NOT NULL DEFAULT 0,
  quota       bigint       NOT NULL DEFAULT 0,
  blocked     boolean      NOT NULL DEFAULT false,
  update_time timestamp    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (biz_tag)
) ENGINE=InnoDB;

-- Limits of clients, as leaf_tag_option has those of tags.
CREATE TABLE IF NOT EXISTS leaf_client_option (
  client_name varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  rate_limit  bigint       NOT NULL DEFAULT 0,
  quota       bigint       NOT NULL DEFAULT 0,
  blocked     boolean      NOT NULL DEFAULT false,
  update_time timestamp    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (client_name)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS leaf_meta (
  name        varchar(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  value       varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB;

-- The registry of worker IDs: one namespace; per number a claim and a time bound, in
-- two tables because the bound must outlive the claim. leaf_worker_bound is never
-- emptied: if an administrator must empty it, no node may run.
CREATE TABLE IF NOT EXISTS leaf_worker_namespace (
  id          int          NOT NULL CHECK (id = 1),
  name        varchar(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  fingerprint varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  issue_from  bigint       NOT NULL,
  incarnation varchar(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  given       bigint       NOT NULL DEFAULT 0,
  update_time timestamp    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (id)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS leaf_worker_bound (
  id          bigint       NOT NULL,
  bound       bigint       NOT NULL,
  version     varchar(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  update_time timestamp    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (id)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS leaf_worker (
  id          bigint       NOT NULL,
  address     varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  nonce       varchar(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  floor       bigint       NOT NULL,
  bound       bigint       NOT NULL,
  released    boolean      NOT NULL,
  extends     boolean      NOT NULL, -- not used, always false
  version     varchar(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  update_time timestamp    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (id)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS leaf_worker_peer (
  nonce       varchar(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  address     varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  clock       varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  number      bigint       NOT NULL,
  expires     bigint       NOT NULL,
  update_time timestamp    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (nonce)
) ENGINE=InnoDB;

-- The directory of nodes: where clients find the servers. A row ends by itself.
CREATE TABLE IF NOT EXISTS leaf_node (
  id          varchar(64)   CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  entry       varchar(4096) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  expires     bigint        NOT NULL,
  update_time timestamp     NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (id)
) ENGINE=InnoDB;

-- What nodes tell one another when the database loses commits, and what a repair asks.
CREATE TABLE IF NOT EXISTS leaf_repair (
  biz_tag     varbinary(512) NOT NULL,
  asked       bigint         NOT NULL,
  regress     bigint         NOT NULL,
  repaired    bigint         NOT NULL,
  update_time timestamp      NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (biz_tag)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS leaf_repair_node (
  biz_tag     varbinary(512) NOT NULL,
  node        varchar(64)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  asked       bigint         NOT NULL,
  high        bigint         NOT NULL,
  latched     boolean        NOT NULL,
  seen        bigint         NOT NULL,
  update_time timestamp      NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (biz_tag, node)
) ENGINE=InnoDB;

-- The audit log: administrative changes, the newest last. Old rows go with each new one.
CREATE TABLE IF NOT EXISTS leaf_audit (
  id          varchar(64)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  node        varchar(256)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  who         varchar(256)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  address     varchar(256)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  operation   varchar(64)   CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  object      varchar(256)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  old_value   varchar(2048) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  new_value   varchar(2048) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  result      varchar(2048) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  update_time timestamp     NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (id)
) ENGINE=InnoDB;

-- Named tokens: the SHA-256 of each secret, and its roles. A node reads them with auth.named.
CREATE TABLE IF NOT EXISTS leaf_token (
  name        varchar(64)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  digest      varchar(64)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  roles       varchar(4096) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  created     bigint        NOT NULL,
  update_time timestamp     NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (name)
) ENGINE=InnoDB;

-- Which node serves which tags in strict order: tables of the form of those of worker IDs. A bound is
-- a lease in ms here. If they are emptied, those tags stop until the leases are over, and nothing repeats.
CREATE TABLE IF NOT EXISTS leaf_slot_namespace (
  id          int          NOT NULL CHECK (id = 1),
  name        varchar(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  fingerprint varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  issue_from  bigint       NOT NULL,
  incarnation varchar(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  given       bigint       NOT NULL DEFAULT 0,
  update_time timestamp    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (id)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS leaf_slot_bound (
  id          bigint       NOT NULL,
  bound       bigint       NOT NULL,
  version     varchar(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  update_time timestamp    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (id)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS leaf_slot (
  id          bigint       NOT NULL,
  address     varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  nonce       varchar(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  floor       bigint       NOT NULL,
  bound       bigint       NOT NULL,
  released    boolean      NOT NULL,
  extends     boolean      NOT NULL, -- not used, always false
  version     varchar(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  update_time timestamp    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (id)
) ENGINE=InnoDB;
