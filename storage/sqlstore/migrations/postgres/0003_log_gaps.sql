-- Numbers of events that were never given: see events in docs/storage.md.
CREATE TABLE {p}gaps (
  first_seq BIGINT PRIMARY KEY,
  after_seq BIGINT NOT NULL
);
