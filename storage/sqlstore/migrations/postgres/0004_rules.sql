-- The policies of a process, if it has its own: see storage.EncodeRules; its
-- history: see storage.EncodeRevisions; and its labels.
ALTER TABLE {p}deployments ADD COLUMN rules BYTEA DEFAULT NULL, ADD COLUMN revisions BYTEA DEFAULT NULL, ADD COLUMN labels BYTEA DEFAULT NULL;

-- When an instance was told to stop: see storage.EncodeStopping.
ALTER TABLE {p}actual_lrps ADD COLUMN stopping BYTEA DEFAULT NULL;

-- It costs each change of a task more than it saves: see docs/storage.md.
DROP INDEX {p}tasks_state;
