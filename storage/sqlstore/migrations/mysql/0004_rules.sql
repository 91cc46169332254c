-- The policies of a process, if it has its own: see storage.EncodeRules; its
-- history: see storage.EncodeRevisions; and its labels.
ALTER TABLE {p}deployments ADD COLUMN rules LONGBLOB DEFAULT NULL, ADD COLUMN revisions LONGBLOB DEFAULT NULL, ADD COLUMN labels LONGBLOB DEFAULT NULL;

-- When an instance was told to stop: see storage.EncodeStopping.
ALTER TABLE {p}actual_lrps ADD COLUMN stopping LONGBLOB DEFAULT NULL;

-- It costs each change of a task more than it saves: see docs/storage.md.
ALTER TABLE {p}tasks DROP INDEX {p}tasks_state;
