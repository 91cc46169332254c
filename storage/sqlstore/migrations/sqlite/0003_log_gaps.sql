-- Numbers of events that were never given: see events in docs/storage.md.
CREATE TABLE {p}gaps (
  first_seq INTEGER PRIMARY KEY,
  after_seq INTEGER NOT NULL
);
