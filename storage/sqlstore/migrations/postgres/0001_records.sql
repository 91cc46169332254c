CREATE TABLE {p}log (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  newest BIGINT NOT NULL,
  oldest BIGINT NOT NULL
);

INSERT INTO {p}log (id, newest, oldest) VALUES (1, 0, 1);

CREATE TABLE {p}events (
  seq BIGINT PRIMARY KEY,
  n BIGINT NOT NULL,
  at BIGINT NOT NULL,
  token BIGINT NOT NULL,
  data BYTEA NOT NULL
);

CREATE TABLE {p}markers (
  token BIGINT PRIMARY KEY,
  at BIGINT NOT NULL
);

CREATE TABLE {p}requests (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  seq BIGINT NOT NULL,
  at BIGINT NOT NULL
);

CREATE INDEX {p}requests_at ON {p}requests (at);

CREATE TABLE {p}deployments (
  process_guid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  domain TEXT COLLATE "C" NOT NULL,
  update_strategy SMALLINT NOT NULL,
  instances INTEGER NOT NULL,
  active_definition_id TEXT COLLATE "C" NOT NULL,
  healthy_definition_id TEXT COLLATE "C" NOT NULL,
  tag_epoch BIGINT NOT NULL,
  tag_index BIGINT NOT NULL,
  other_definition_ids BYTEA NOT NULL,
  settings BYTEA NOT NULL
);

CREATE INDEX {p}deployments_domain ON {p}deployments (domain);

CREATE TABLE {p}definitions (
  process_guid TEXT COLLATE "C" NOT NULL,
  definition_id TEXT COLLATE "C" NOT NULL,
  data BYTEA NOT NULL,
  PRIMARY KEY (process_guid, definition_id)
);

CREATE TABLE {p}actual_lrps (
  process_guid TEXT COLLATE "C" NOT NULL,
  idx INTEGER NOT NULL,
  definition_id TEXT COLLATE "C" NOT NULL,
  presence SMALLINT NOT NULL,
  domain TEXT COLLATE "C" NOT NULL,
  cell_id TEXT COLLATE "C" NOT NULL,
  state SMALLINT NOT NULL,
  tag_epoch BIGINT NOT NULL,
  tag_index BIGINT NOT NULL,
  data BYTEA NOT NULL,
  PRIMARY KEY (process_guid, idx, definition_id, presence)
) WITH (fillfactor = 80);

CREATE INDEX {p}actual_lrps_cell ON {p}actual_lrps (cell_id) WHERE cell_id <> '';

CREATE TABLE {p}tasks (
  guid TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  domain TEXT COLLATE "C" NOT NULL,
  cell_id TEXT COLLATE "C" NOT NULL,
  state SMALLINT NOT NULL,
  tag_epoch BIGINT NOT NULL,
  tag_index BIGINT NOT NULL,
  data BYTEA NOT NULL
);

CREATE INDEX {p}tasks_cell ON {p}tasks (cell_id) WHERE cell_id <> '';

CREATE INDEX {p}tasks_state ON {p}tasks (state);

CREATE INDEX {p}tasks_domain ON {p}tasks (domain);

CREATE TABLE {p}domains (
  name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  expires_at BIGINT NOT NULL
);

CREATE TABLE {p}leases (
  kind TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  owner TEXT COLLATE "C" NOT NULL,
  epoch BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  value BYTEA NOT NULL,
  PRIMARY KEY (kind, name)
);

CREATE TABLE {p}quarantine (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  guid TEXT COLLATE "C" NOT NULL,
  idx INTEGER NOT NULL,
  definition_id TEXT COLLATE "C" NOT NULL,
  presence SMALLINT NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  data BYTEA NOT NULL
);

CREATE TABLE {p}sealing_keys (
  label TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  proof BYTEA NOT NULL
);
