-- The policies of a process, if it has its own: see storage.EncodeRules.
ALTER TABLE {p}deployments ADD COLUMN rules BLOB DEFAULT NULL;

-- Its history: see storage.EncodeRevisions.
ALTER TABLE {p}deployments ADD COLUMN revisions BLOB DEFAULT NULL;

ALTER TABLE {p}deployments ADD COLUMN labels BLOB DEFAULT NULL;

-- When an instance was told to stop: see storage.EncodeStopping.
ALTER TABLE {p}actual_lrps ADD COLUMN stopping BLOB DEFAULT NULL;

-- It costs each change of a task more than it saves: see docs/storage.md.
DROP INDEX {p}tasks_state;
