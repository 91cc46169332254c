CREATE TABLE IF NOT EXISTS {p}log (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  newest BIGINT NOT NULL,
  oldest BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

INSERT IGNORE INTO {p}log (id, newest, oldest) VALUES (1, 0, 1);

CREATE TABLE IF NOT EXISTS {p}events (
  seq BIGINT PRIMARY KEY,
  n BIGINT NOT NULL,
  at BIGINT NOT NULL,
  token BIGINT NOT NULL,
  data LONGBLOB NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {p}markers (
  token BIGINT PRIMARY KEY,
  at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {p}requests (
  id VARBINARY(255) NOT NULL PRIMARY KEY,
  seq BIGINT NOT NULL,
  at BIGINT NOT NULL,
  KEY {p}requests_at (at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {p}deployments (
  process_guid VARBINARY(255) NOT NULL PRIMARY KEY,
  domain VARBINARY(255) NOT NULL,
  update_strategy SMALLINT NOT NULL,
  instances INTEGER NOT NULL,
  active_definition_id VARBINARY(255) NOT NULL,
  healthy_definition_id VARBINARY(255) NOT NULL,
  tag_epoch BIGINT NOT NULL,
  tag_index BIGINT NOT NULL,
  other_definition_ids LONGBLOB NOT NULL,
  settings LONGBLOB NOT NULL,
  KEY {p}deployments_domain (domain)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {p}definitions (
  process_guid VARBINARY(255) NOT NULL,
  definition_id VARBINARY(255) NOT NULL,
  data LONGBLOB NOT NULL,
  PRIMARY KEY (process_guid, definition_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {p}actual_lrps (
  process_guid VARBINARY(255) NOT NULL,
  idx INTEGER NOT NULL,
  definition_id VARBINARY(255) NOT NULL,
  presence SMALLINT NOT NULL,
  domain VARBINARY(255) NOT NULL,
  cell_id VARBINARY(255) NOT NULL,
  state SMALLINT NOT NULL,
  tag_epoch BIGINT NOT NULL,
  tag_index BIGINT NOT NULL,
  data LONGBLOB NOT NULL,
  PRIMARY KEY (process_guid, idx, definition_id, presence),
  KEY {p}actual_lrps_cell (cell_id),
  KEY {p}actual_lrps_domain (domain)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {p}tasks (
  guid VARBINARY(255) NOT NULL PRIMARY KEY,
  domain VARBINARY(255) NOT NULL,
  cell_id VARBINARY(255) NOT NULL,
  state SMALLINT NOT NULL,
  tag_epoch BIGINT NOT NULL,
  tag_index BIGINT NOT NULL,
  data LONGBLOB NOT NULL,
  KEY {p}tasks_cell (cell_id),
  KEY {p}tasks_state (state),
  KEY {p}tasks_domain (domain)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {p}domains (
  name VARBINARY(255) NOT NULL PRIMARY KEY,
  expires_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {p}leases (
  kind VARBINARY(255) NOT NULL,
  name VARBINARY(255) NOT NULL,
  owner VARBINARY(255) NOT NULL,
  epoch BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  value LONGBLOB NOT NULL,
  PRIMARY KEY (kind, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {p}quarantine (
  id BIGINT PRIMARY KEY AUTO_INCREMENT,
  at BIGINT NOT NULL,
  kind VARBINARY(255) NOT NULL,
  guid VARBINARY(255) NOT NULL,
  idx INTEGER NOT NULL,
  definition_id VARBINARY(255) NOT NULL,
  presence SMALLINT NOT NULL,
  reason MEDIUMTEXT NOT NULL,
  data LONGBLOB NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {p}sealing_keys (
  label VARBINARY(255) NOT NULL PRIMARY KEY,
  proof LONGBLOB NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
