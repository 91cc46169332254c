-- The policies of a process, if it has its own: see storage.EncodeRules.
ALTER TABLE {p}deployments ADD COLUMN rules LONGBLOB DEFAULT NULL;
