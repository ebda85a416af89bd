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
  update_time timestamp    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (biz_tag)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS leaf_meta (
  name        varchar(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  value       varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB;
