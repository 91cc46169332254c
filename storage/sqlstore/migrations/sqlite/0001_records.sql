CREATE TABLE {p}log (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  newest INTEGER NOT NULL,
  oldest INTEGER NOT NULL
);

INSERT INTO {p}log (id, newest, oldest) VALUES (1, 0, 1);

CREATE TABLE {p}events (
  seq INTEGER PRIMARY KEY,
  n INTEGER NOT NULL,
  at INTEGER NOT NULL,
  token INTEGER NOT NULL,
  data BLOB NOT NULL
);

CREATE TABLE {p}markers (
  token INTEGER PRIMARY KEY,
  at INTEGER NOT NULL
);

CREATE TABLE {p}requests (
  id TEXT NOT NULL PRIMARY KEY,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX {p}requests_at ON {p}requests (at);

CREATE TABLE {p}deployments (
  process_guid TEXT NOT NULL PRIMARY KEY,
  domain TEXT NOT NULL,
  update_strategy INTEGER NOT NULL,
  instances INTEGER NOT NULL,
  active_definition_id TEXT NOT NULL,
  healthy_definition_id TEXT NOT NULL,
  tag_epoch INTEGER NOT NULL,
  tag_index INTEGER NOT NULL,
  other_definition_ids BLOB NOT NULL,
  settings BLOB NOT NULL
);

CREATE INDEX {p}deployments_domain ON {p}deployments (domain);

CREATE TABLE {p}definitions (
  process_guid TEXT NOT NULL,
  definition_id TEXT NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (process_guid, definition_id)
);

CREATE TABLE {p}actual_lrps (
  process_guid TEXT NOT NULL,
  idx INTEGER NOT NULL,
  definition_id TEXT NOT NULL,
  presence INTEGER NOT NULL,
  domain TEXT NOT NULL,
  cell_id TEXT NOT NULL,
  state INTEGER NOT NULL,
  tag_epoch INTEGER NOT NULL,
  tag_index INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (process_guid, idx, definition_id, presence)
) WITHOUT ROWID;

CREATE INDEX {p}actual_lrps_cell ON {p}actual_lrps (cell_id) WHERE cell_id <> '';

CREATE TABLE {p}tasks (
  guid TEXT NOT NULL PRIMARY KEY,
  domain TEXT NOT NULL,
  cell_id TEXT NOT NULL,
  state INTEGER NOT NULL,
  tag_epoch INTEGER NOT NULL,
  tag_index INTEGER NOT NULL,
  data BLOB NOT NULL
);

CREATE INDEX {p}tasks_cell ON {p}tasks (cell_id) WHERE cell_id <> '';

CREATE INDEX {p}tasks_state ON {p}tasks (state);

CREATE INDEX {p}tasks_domain ON {p}tasks (domain);

CREATE TABLE {p}domains (
  name TEXT NOT NULL PRIMARY KEY,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE {p}leases (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  owner TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (kind, name)
);

CREATE TABLE {p}quarantine (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  guid TEXT NOT NULL,
  idx INTEGER NOT NULL,
  definition_id TEXT NOT NULL,
  presence INTEGER NOT NULL,
  reason TEXT NOT NULL,
  data BLOB NOT NULL
);

CREATE TABLE {p}sealing_keys (
  label TEXT NOT NULL PRIMARY KEY,
  proof BLOB NOT NULL
);
