-- The epoch of leases that are forgotten: see leases in docs/storage.md.
INSERT IGNORE INTO {p}leases (kind, name, owner, epoch, expires_at, value) VALUES ('', '', '', 0, 0, '');
